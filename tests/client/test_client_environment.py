"""A client that is not told where the server is reads FORQ_URL and FORQ_AUTH_SECRET, as the commands do."""

from pathlib import Path

import pytest

from forq_trio import AsyncForqClient, ForqClient, ForqUnreachable, InvalidSecret, InvalidServerUrl, WrongKey
from forq_trio.client.failures import ConnectFailed
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from support.fake_transport import FakeTransport
from support.real_server import SECRET

CLIENTS = (ForqClient, AsyncForqClient)
OTHER = "http://127.0.0.1:1"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without our variables."""
    for name in ("FORQ_URL", "FORQ_API_ADDR", "FORQ_CONFIG", "FORQ_AUTH_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def refused(*url: str) -> ForqClient:
    """A client where no server is, whatever its URL."""

    def refuse(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("Connection refused")

    return ForqClient(*url, retry_seconds=0, transport=FakeTransport(refuse))


def test_it_finds_the_server_of_the_environment(environ: pytest.MonkeyPatch, url: str, queue: str):
    environ.setenv("FORQ_URL", url)
    environ.setenv("FORQ_AUTH_SECRET", SECRET)
    with ForqClient() as client:
        assert client.produce(queue, "x").sequence > 0
    with ForqClient(retry_seconds=0) as client:
        assert [each.content for each in client.peek(queue)] == ["x"]


async def test_so_does_the_asynchronous_one(environ: pytest.MonkeyPatch, url: str, queue: str):
    environ.setenv("FORQ_URL", url)
    environ.setenv("FORQ_AUTH_SECRET", SECRET)
    async with AsyncForqClient() as client:
        await client.produce(queue, "x")


def test_an_argument_goes_first(environ: pytest.MonkeyPatch, url: str, queue: str):
    environ.setenv("FORQ_URL", OTHER)
    environ.setenv("FORQ_AUTH_SECRET", "wrong")
    with ForqClient(url, SECRET) as client:
        client.produce(queue, "x")
    with ForqClient(url) as client, pytest.raises(WrongKey):
        client.produce(queue, "x")
    with ForqClient(url, "") as client, pytest.raises(WrongKey, match="was given no secret"):
        client.produce(queue, "x")


def test_where_nobody_said_where_the_server_is_the_error_names_the_variable(environ: pytest.MonkeyPatch):
    words = r"^no server can be reached at http://localhost:8080 .*; FORQ_URL is not set, which names another place$"
    with refused() as client, pytest.raises(ForqUnreachable, match=words):
        client.healthcheck()
    words = rf"^no server can be reached at {OTHER} \([\w ]+\)$"
    with refused(OTHER) as client, pytest.raises(ForqUnreachable, match=words):
        client.healthcheck()
    environ.setenv("FORQ_URL", OTHER)
    with refused() as client, pytest.raises(ForqUnreachable, match=words):
        client.healthcheck()


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_url_the_server_is_where_its_settings_say(
    environ: pytest.MonkeyPatch, url: str, tmp_path: Path, client: type[ForqClient]
):
    """As for all commands."""
    (tmp_path / "forq.toml").write_text(
        f"server.api_addr = {url.removeprefix('http://')!r}\n", encoding="utf-8"
    )
    environ.setenv("FORQ_CONFIG", str(tmp_path / "forq.toml"))
    environ.setenv("FORQ_AUTH_SECRET", SECRET)
    with ForqClient() as blocking:
        blocking.queues()
    environ.setenv("FORQ_API_ADDR", "127.0.0.1:1")  # goes before the file
    with refused() as blocking, pytest.raises(ForqUnreachable, match=rf"at {OTHER} \([\w ]+\)$"):
        blocking.healthcheck()
    environ.setenv("FORQ_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(
        InvalidServerUrl, match=r"/missing\.toml: cannot be read \(No such file or directory\)$"
    ):
        client()
    environ.setenv("FORQ_URL", url)  # goes before both
    client()


def test_where_nobody_said_what_the_secret_is_the_refusal_names_the_variable(
    environ: pytest.MonkeyPatch, url: str
):
    environ.setenv("FORQ_URL", url)
    with ForqClient() as client:
        client.healthcheck()
        with pytest.raises(WrongKey, match=r"this client was given no secret \(FORQ_AUTH_SECRET\)$"):
            client.queues()


def test_where_the_secret_of_the_environment_is_wrong_the_refusal_names_the_variable(
    environ: pytest.MonkeyPatch, url: str
):
    environ.setenv("FORQ_AUTH_SECRET", "wrong")
    with ForqClient(url) as client, pytest.raises(WrongKey, match=r"the key of FORQ_AUTH_SECRET$"):
        client.queues()
    with ForqClient(url, "wrong") as client, pytest.raises(WrongKey, match=r"says the server at \S+$"):
        client.queues()
    with ForqClient(url, SECRET) as client:
        client.queues()  # five wrong keys in a row would lock this address out


@pytest.mark.parametrize("client", CLIENTS)
def test_what_cannot_be_used_is_told_at_once(environ: pytest.MonkeyPatch, client: type[ForqClient]):
    environ.setenv("FORQ_AUTH_SECRET", f'"{SECRET}"')
    with pytest.raises(InvalidSecret, match=r"^FORQ_AUTH_SECRET has quotes around it"):
        client()
    environ.setenv("FORQ_URL", "localhost:8080")
    environ.setenv("FORQ_AUTH_SECRET", SECRET)
    with pytest.raises(InvalidServerUrl, match="is not the URL of a server, such as http://localhost:8080"):
        client()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_secret_may_be_in_a_file(
    environ: pytest.MonkeyPatch, url: str, tmp_path: Path, client: type[ForqClient]
):
    environ.delenv("FORQ_AUTH_SECRET", raising=False)
    environ.setenv("FORQ_URL", url)
    environ.setenv("FORQ_AUTH_SECRET_FILE", str(tmp_path / "secret"))
    with pytest.raises(InvalidSecret, match=r"^FORQ_AUTH_SECRET_FILE '.*' cannot be read \(No such file"):
        client()
    (tmp_path / "secret").write_text(f"{SECRET}\n", encoding="utf-8")
    client()
    with ForqClient() as blocking:
        blocking.queues()  # not refused


def test_an_empty_variable_counts_as_not_set(environ: pytest.MonkeyPatch):
    environ.setenv("FORQ_URL", "")
    with refused() as client, pytest.raises(ForqUnreachable, match="at http://localhost:8080 "):
        client.healthcheck()
