"""`forq health`: one sentence and an exit code for a server that works, answers, or is not there."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
import trustme

from forq_trio.app import _url
from forq_trio.client.server_urls import configured_url
from forq_trio.config.load import load
from forq_trio.model import limits
from forq_trio.model.durations import parse_duration
from support.in_process import in_process_server
from support.real_server import SECRET, environment

from .conftest import NOWHERE, Forq


@pytest.fixture
def keyless(connected: Forq, monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, told where the server is and no secret."""
    monkeypatch.delenv("FORQ_AUTH_SECRET")
    return connected


@contextmanager
def answering(*answers: str) -> Iterator[str]:
    """The URL of what gives one request after the other these answers; an empty one is none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4_096)
                    connection.sendall(answer.replace("\n", "\r\n").encode())
                    if not answer:
                        connection.recv(1)  # until the command gives up

        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def said(status: str, body: str = "", *headers: str) -> str:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\n".join([*lines, "", body])


@pytest.mark.parametrize("arguments", [(), ("--sends",)])
def test_a_server_that_works(keyless: Forq, url: str, arguments: tuple[str, ...]):
    outcome = keyless("health", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{url} works.\n", "")


def test_a_server_that_is_alive(keyless: Forq, url: str):
    outcome = keyless("health", "--live")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{url} is alive.\n", "")


def test_a_server_over_tls_whose_certificate_is_for_another_name(
    forq: Forq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It is asked by the name localhost, for which certificates are rarely made out."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("queue.example.org").configure_cert(context)
    with in_process_server(ssl_context=context) as url:
        monkeypatch.setenv("FORQ_URL", url)
        assert forq("health").out == f"{url} works.\n"


def test_nobody_is_there(forq: Forq):
    for arguments in ((), ("--live",)):
        outcome = forq("health", "--url", NOWHERE, *arguments)
        sentence = f"forq: {NOWHERE} cannot be reached: Connection refused\n"
        assert (outcome.code, outcome.out, outcome.err) == (3, "", sentence)


def test_nobody_answers_in_time(forq: Forq):
    with answering("") as url:
        outcome = forq("health", "--url", url, "--timeout", "50ms")
    assert (outcome.code, outcome.err) == (3, f"forq: {url} does not answer\n")


REFUSED = '{"status": "ok", "sendsRefused": "storage_full"}'


def test_a_full_disk_is_told_and_fails_only_who_asks_for_sends(forq: Forq):
    """Whoever restarts what is not healthy would restart a server in vain that is the only one to free space."""
    words = "works, but: The disk is full, sends are refused"
    with answering(said("200 OK", REFUSED)) as url:
        outcome = forq("health", "--url", url)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{url} {words}.\n", "")
    with answering(said("200 OK", REFUSED)) as url:
        outcome = forq("health", "--url", url, "--sends")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"forq: {url} {words}\n")


def test_the_time_out_is_for_the_whole_answer(forq: Forq):
    """A server that says a byte now and then has answered no more than one that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                while not given_up.wait(0.01):
                    connection.sendall(b"H")

        given_up, thread = Event(), Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        outcome = forq("health", "--url", url, "--timeout", "100ms")
        given_up.set()
        thread.join()
    assert (outcome.code, outcome.err) == (3, f"forq: {url} does not answer\n")


def test_what_a_server_says_moves_no_cursor(forq: Forq):
    with answering(said("503 x", '{"message": "a\\u001b[2J\\nforq: fine"}')) as url:
        assert (
            forq("health", "--url", url).err == f"forq: {url} answers, but does not work: a?[2J?forq: fine\n"
        )
    with answering(said("200 OK", '{"sendsRefused": "a\\u001b[2Jb"}')) as url:
        assert forq("health", "--url", url).out == f"{url} works, but: a?[2Jb.\n"


@pytest.mark.parametrize(
    "answer",
    [
        said("503 x", '{"code": "forq.unhealthy", "message": "The database is away."}'),
        said("503 x", '{"code": "forq.unhealthy"}', "X-Forq-Error-Message: The database is away."),
    ],
)
def test_a_server_without_its_database(forq: Forq, answer: str):
    with answering(answer) as url:
        outcome = forq("health", "--url", url)
    sentence = f"forq: {url} answers, but does not work: The database is away.\n"
    assert (outcome.code, outcome.out, outcome.err) == (1, "", sentence)


@pytest.mark.parametrize("body", ["", "not JSON", "[]", '{"message": 7}'])
def test_what_is_in_front_of_a_server_may_say_nothing(forq: Forq, body: str):
    with answering(said("503 x", body)) as url:
        outcome = forq("health", "--url", url)
    assert (outcome.code, outcome.err) == (1, f"forq: {url} answers, but does not work\n")
    with answering(said("200 OK", body)) as url:
        assert forq("health", "--url", url).code == 0


def test_something_else_answers(forq: Forq):
    with answering(said("404 Not Found")) as url:
        outcome = forq("health", "--live", "--url", url)
    sentence = f"forq: {url} answers /livez with 404: is it this server?\n"
    assert (outcome.code, outcome.err) == (1, sentence)
    with answering("SSH-2.0-OpenSSH_9.2p1\n") as url:
        outcome = forq("health", "--url", url)
    assert outcome.code == 3
    assert outcome.err.startswith(f"forq: {url} cannot be reached: ")


def test_a_wrong_command_line(forq: Forq, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert forq("health", "--live", "--sends").code == 2
    outcome = forq("health", "--url", "ftp://me:hunter2@host")
    assert outcome.code == 2
    assert "hunter2" not in outcome.err
    monkeypatch.setenv("FORQ_API_ADDR", "localhost:0")  # any free port: nobody knows which
    assert forq("health").code == 2
    monkeypatch.setenv("FORQ_CONFIG", str(tmp_path / "missing.toml"))
    outcome = forq("health")
    sentence = f"forq: {tmp_path}/missing.toml: cannot be read (No such file or directory)\n"
    assert (outcome.code, outcome.err) == (2, sentence)
    for text in ("[server", "a = " + "[" * 3_000):
        (tmp_path / "missing.toml").write_text(text)
        assert forq("health").err == f"forq: {tmp_path}/missing.toml: is not valid TOML\n"


def test_the_wait_is_longer_than_a_health_check_takes(forq: Forq):
    (line,) = [line for line in forq("health", "--help").out.splitlines() if "[default: " in line]
    assert (
        parse_duration(line.rpartition("[default: ")[2].removesuffix("]")) > limits.HEALTH_SECONDS_MAX * 1_000
    )


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A certificate and its key in one file."""
    path = tmp_path / "server.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(path)
    return path


@pytest.mark.parametrize(
    "address", [None, ":9000", "0.0.0.0:9000", "[::]:9000", "[::1]:9000", "queue.example:9000"]
)
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("in_file", [False, True])
def test_the_url_is_that_of_a_server_with_the_same_settings(
    tmp_path: Path, pem: Path, address: str | None, tls: bool, in_file: bool
):
    """`forq health` reads the two settings without those that read all."""
    keys = {"server.api_addr": address, "tls.tls_cert": pem, "tls.tls_key": pem}
    given = {key: str(value) for key, value in keys.items() if value and (tls or key == "server.api_addr")}
    if in_file:
        lines = [f"{key} = {value!r}\n" for key, value in given.items()]
        (tmp_path / "forq.toml").write_text(f"server.auth_secret = {SECRET!r}\n{''.join(lines)}")
        environ = {"FORQ_CONFIG": str(tmp_path / "forq.toml")}
    else:
        environ = {f"FORQ_{key.partition('.')[2].upper()}": value for key, value in given.items()}
        environ["FORQ_AUTH_SECRET"] = SECRET
    config = load(environ=environ).config
    assert configured_url(environ) == _url(config, config.api_addr, config.api_addr.port)


def test_a_port_alone_may_be_a_number_in_the_file(tmp_path: Path):
    (tmp_path / "forq.toml").write_text("server.api_addr = 1234\n")
    assert configured_url({"FORQ_CONFIG": str(tmp_path / "forq.toml")}) == "http://localhost:1234"


def test_a_variable_goes_before_the_file(tmp_path: Path):
    (tmp_path / "forq.toml").write_text("server.api_addr = ':1'\n")
    environ = {"FORQ_CONFIG": str(tmp_path / "forq.toml"), "FORQ_API_ADDR": ":2"}
    assert configured_url(environ) == "http://localhost:2"


HEAVY = {
    "pydantic",
    "msgspec",
    "trio",
    "anyio",
    "httpx",
    "httptools",
    "rich",
    "apsw",
    "structlog",
    "tomllib",
    "json",
}


def test_it_imports_little(url: str):
    """Its time is that of imports, and it runs every half minute for years."""
    program = (
        "import sys\nfrom forq_trio.cli.commands import run\n"
        "assert run(['health', '--live']) == 0\nprint(*{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment(FORQ_URL=url), capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()


def test_it_asks_again_until_the_server_works(forq: Forq):
    with answering(said("503 x"), said("200 OK")) as url:
        outcome = forq("health", "--url", url, "--wait", "1min")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{url} works.\n", "")
    outcome = forq("health", "--url", NOWHERE, "--wait", "300ms")
    assert outcome.code == 3
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "works."),
        (1, "works, but: another server on its database has another FORQ_AUTH_SECRET."),
        (2, "works, but: 2 other servers on its database have another FORQ_AUTH_SECRET."),
    ],
)
def test_other_secrets_are_told(forq: Forq, count: int, words: str):
    with answering(
        said("200 OK", f'{{"status": "ok", "sendsRefused": null, "otherSecrets": {count}}}')
    ) as url:
        outcome = forq("health", "--url", url, "--sends")
    assert (outcome.code, outcome.out) == (0, f"{url} {words}\n")
