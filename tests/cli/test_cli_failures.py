"""What a command says when it fails: the real reason, and what to do about it. Nobody sees a traceback."""

import os
import pty
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from client.fake_time import Clock
from forq_trio import ForqClient
from support.in_process import in_process_server
from support.proxy import Answer, Proxy
from support.real_server import environment

from .conftest import NOWHERE, Forq
from .test_cli_processes import command


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot be reached is tried again for a second, which passes at once. No proxy is set."""
    Clock(monkeypatch)
    for name in (
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        *(f"{kind}_proxy" for kind in ("http", "https", "all", "no")),
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with TLS, and the certificate of who issued its own."""
    authority, trusted = trustme.CA(), tmp_path_factory.mktemp("tls") / "ca.pem"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(trusted)
    with in_process_server(ssl_context=context) as url:
        yield url, trusted


def told(forq: Forq, url: str) -> tuple[int, str]:
    outcome = forq("queues", "--url", url)
    assert outcome.out == ""
    return outcome.code, outcome.err


def test_certificates(forq: Forq, encrypted: tuple[str, Path], monkeypatch: pytest.MonkeyPatch):
    url, trusted = encrypted
    code, sentence = told(forq, url)
    assert code == 3
    assert sentence.startswith(f"forq: the certificate of the server at {url} is not trusted (")
    assert sentence.endswith("; SSL_CERT_FILE can name the authorities to trust\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    other_name = told(forq, url.replace("127.0.0.1", "localhost"))[1]
    assert other_name.count("is another's (") == other_name.count("not valid for 'localhost')\n") == 1
    assert forq("queues", "--url", url).code == 0
    for useless in ("/does/not/exist", __file__):
        monkeypatch.setenv("SSL_CERT_FILE", useless)
        code, sentence = told(forq, url)
        assert code == 2
        assert sentence.startswith(f"forq: SSL_CERT_FILE: {useless} cannot be used (")


def test_the_wrong_one_of_http_and_https(forq: Forq, url: str, encrypted: tuple[str, Path]):
    code, sentence = told(forq, encrypted[0].replace("https", "http"))
    assert (code, sentence.partition("; ")[2]) == (3, "one with TLS has a URL with https\n")
    code, sentence = told(forq, url.replace("http", "https"))
    assert code == 3
    assert sentence.startswith("forq: no TLS connection can be made to https://")
    assert sentence.endswith("; is it http://?\n")


def test_hosts_that_are_not_known(forq: Forq):
    code, sentence = told(forq, "http://nowhere.invalid")
    assert code == 3
    assert sentence.startswith(
        "forq: no server can be reached at http://nowhere.invalid: the host is not known ("
    )
    assert told(forq, "http://a..b")[0] == 2
    assert told(forq, "http://ä b")[0] == 2


def test_nobody_at_the_default_address_is_told_with_how_to_name_another(
    forq: Forq, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", f"http://me:password@{NOWHERE.removeprefix('http://')}")
    code, sentence = told(forq, "http://localhost:8080")
    assert code == 3
    assert sentence == (
        f"forq: no server can be reached at http://localhost:8080 through the proxy {NOWHERE} (Connection refused);"
        " FORQ_URL or --url names another place\n"
    )


def test_proxies(forq: Forq, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", url)
    code, sentence = told(forq, "https://example.org")
    assert code == 3
    assert sentence.startswith(f"forq: the proxy {url} makes no connection to https://example.org (")
    assert sentence.endswith("; NO_PROXY names hosts without one\n")
    for useless in ("ftp://127.0.0.1:1", "socks5://127.0.0.1:1"):
        monkeypatch.setenv("HTTP_PROXY", useless)
        code, sentence = told(forq, url)
        assert code == 2
        assert sentence.startswith("forq: the proxy of the environment cannot be used: ")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(200, b"<html>"), "the answer is not one of Forq's, so the URL may be another service's"),
        (Answer(404, b"<html>"), "answered HTTP 404; is this the URL of a Forq server?"),
        (Answer(401, b"<html>"), "answered HTTP 401; is this the URL of a Forq server?"),
    ],
)
def test_something_else_answers(connected: Forq, proxy: Proxy, answer: Answer, sentence: str):
    proxy.spoiled.append(answer)
    outcome = connected("queues")
    assert outcome.code == 1
    assert sentence in outcome.err


def test_a_server_that_makes_no_keys_for_clients_of_sqs(connected: Forq, proxy: Proxy):
    proxy.spoiled.append(Answer(201, b'{"name": "shop", "token": "t"}'))
    outcome = connected("token", "create", "shop", "--scope", "produce", "--sqs")
    assert (outcome.code, outcome.out) == (1, "")
    assert "the server makes no keys for clients of Amazon SQS; the token shop is made" in outcome.err


@pytest.mark.parametrize(("status", "may_be_stored"), [(301, False), (404, False), (500, True), (502, True)])
def test_whether_a_send_that_something_else_answers_is_stored(
    connected: Forq, proxy: Proxy, queue: str, status: int, may_be_stored: bool
):
    proxy.spoiled.append(Answer(status, b"<html>"))
    outcome = connected("send", queue, "x")
    assert outcome.code == (3 if status == 502 else 1)
    assert ("whether the message is stored is not known" in outcome.err) == may_be_stored


def test_a_path_that_the_server_does_not_have(forq: Forq, url: str):
    """It is not that nothing was found."""
    assert told(forq, f"{url}/sub") == (1, "forq: nothing is served at /sub/api/v1/queues (not_found.path)\n")


def test_text_that_is_not_utf8(connected: Forq, queue: str):
    outcome = connected("send", queue, "\udcff")
    assert (outcome.code, "the request has text that is not UTF-8" in outcome.err) == (1, True)
    outcome = connected("dead", "edit", f"{queue}-dlq", "x", "--content", "-", stdin=b"\xff")
    assert (outcome.code, outcome.err) == (1, "forq: the content on stdin is not UTF-8\n")


@pytest.mark.process
def test_a_terminal_that_cannot_show_it(url: str, client: ForqClient, queue: str):
    """Into a pipe it would be UTF-8."""
    env = environment(FORQ_URL=url, PYTHONIOENCODING="latin-1:strict")
    client.produce(queue, "10 €")
    ours, terminal = pty.openpty()
    try:
        done = subprocess.run(
            command("receive", queue), env=env, stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=60
        )
    finally:
        os.close(terminal)
        os.close(ours)
    sentence = "forq: the output has characters that latin-1 lacks; PYTHONUTF8=1 makes it UTF-8\n"
    assert (done.returncode, done.stderr) == (1, sentence)


def test_dead_letters_of_a_queue_are_looked_for_where_they_are(connected: Forq, queue: str):
    connected("send", queue, "x")
    outcome = connected("dead", "list", queue)
    assert outcome.code == 1
    assert "; those of the queue orders, for example, are in orders-dlq\n" in outcome.err


def test_the_dead_letter_queue_of_a_queue_is_named_if_it_is_there(
    connected: Forq, client: ForqClient, queue: str
):
    client.produce(queue, "x", max_attempts=1)
    (received,) = client.receive(queue)
    client.nack(queue, received.receipt)
    own = f"{queue}-dlq"
    assert client.receive(own)
    outcome = connected("dead", "list", queue)
    code = "bad_request.dlq_only_operation at queue"
    said = f"forq: {queue} takes no dead letters; its own are in {own} ({code})\n"
    assert (outcome.code, outcome.err) == (1, said)
    client.configure(
        queue, dead_letter_queue=f"{queue}-elsewhere"
    )  # which the caller may not be allowed to know
    assert "elsewhere" not in connected("dead", "list", queue).err


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (("dead", "list", "q-dlq"), "'max_attempts_reached', 'message_expired', 'queue_full'"),
        (("dead", "redrive", "q-dlq"), "'max_attempts_reached', 'message_expired', 'queue_full'"),
        (("dead", "delete", "q-dlq"), "'max_attempts_reached', 'message_expired', 'queue_full'"),
        (("history", "list", "q"), "'failed', 'overflow', 'dlq_full', 'consumer'"),
    ],
)
def test_a_reason_that_does_not_exist(forq: Forq, command: tuple[str, ...], known: str):
    outcome = forq(*command, "--reason", "max_attempts", "--url", NOWHERE)
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        f"forq: Invalid value for '--reason': 'max_attempts' is not one of {known}.",
    )


@pytest.mark.parametrize("command", [("queues",), ("health",), ("send", "q", "x")])
def test_without_a_url_a_command_asks_where_the_settings_say(
    forq: Forq, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    file = tmp_path / "forq.toml"
    file.write_text(f"server.api_addr = {url.removeprefix('http://')!r}\n")
    monkeypatch.setenv("FORQ_CONFIG", str(file))
    assert forq(*command).code == 0
    monkeypatch.setenv("FORQ_API_ADDR", NOWHERE.removeprefix("http://"))
    outcome = forq(*command)
    assert (outcome.code, NOWHERE in outcome.err) == (3, True)
    monkeypatch.setenv("FORQ_URL", url)
    assert forq(*command).code == 0
    assert forq(*command, "--url", NOWHERE).code == 3
    monkeypatch.delenv("FORQ_URL")
    file.write_text("[server")
    assert forq(*command).err == f"forq: {file}: is not valid TOML\n"
