"""When a connection is used again, when it is closed, and how many there are."""

import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from queue import SimpleQueue

import pytest
import trio
import trustme

from forq_trio import AsyncForqClient, ForqClient, ForqUnreachable
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.client.sync_pool import Pool
from forq_trio.client.sync_waits import Signal
from forq_trio.model.bounds.client import CLIENT_CONNECTIONS_MAX
from support.real_server import SECRET
from support.scripted_server import Peer, Script, answering, scripted

from .conftest import calls_of

DONE = b"HTTP/1.1 204 No Content\r\n\r\n"
ASK = ClientRequest("GET", "/healthcheck", (), b"", 30.0)


def connections(script: Script) -> list[int]:
    """The connections by which the requests came."""
    return [script.requests.get_nowait()[0] for _ in range(script.requests.qsize())]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


def test_a_connection_is_used_again_after_a_whole_answer(kind: str):
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with scripted(answering(DONE, chunked, plain, DONE)) as script:
        with calls_of(kind, script.url) as call:
            for _ in range(4):
                call("healthcheck")
        assert connections(script) == [0] * 4
        assert script.ended.get() == 0  # closed with the client


@pytest.mark.parametrize("answer", [b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", DONE + DONE])
def test_a_connection_is_not_used_again(kind: str, answer: bytes):
    """Nobody takes what is behind an answer for the next one. Which answers end one is tested with their reader."""
    with scripted(answering(answer)) as script:
        with calls_of(kind, script.url) as call:
            for _ in range(3):
                call("healthcheck")
        assert connections(script) == [0, 1, 2]


def test_what_comes_between_two_requests_is_no_answer(kind: str):
    """A server may say 408 before it closes an idle connection."""
    said: SimpleQueue[None] = SimpleQueue()

    def serve(peer: Peer, number: int, script: Script) -> None:
        while request := peer.request():
            script.requests.put((number, request))
            peer.send(DONE)
            if number == 0:
                script.ended.get()  # the test says when
                peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
                said.put(None)

    with scripted(serve) as script:
        with calls_of(kind, script.url) as call:
            call("healthcheck")
            script.ended.put(0)
            said.get()
            call("healthcheck")
        assert connections(script) == [0, 1]


def test_a_connection_that_the_server_closed_is_noticed_before_a_request(kind: str):
    def serve(peer: Peer, number: int, script: Script) -> None:
        script.requests.put((number, peer.request()))
        peer.send(DONE)

    with scripted(serve) as script:
        with calls_of(kind, script.url) as call:
            for _ in range(3):
                call("healthcheck")
                script.ended.get()
        assert connections(script) == [0, 1, 2]


def test_a_request_that_got_no_answer_is_not_repeated(kind: str):
    """The connection was good when the request was sent: the server may have carried it out."""
    with scripted(answering(DONE, b"")) as script:
        with calls_of(kind, script.url) as call:
            call("healthcheck")
            with pytest.raises(ForqUnreachable, match="closed without an answer") as caught:
                call("healthcheck")
            assert caught.value.sent is True
        assert connections(script) == [0, 0]


def test_an_answer_that_ends_early(kind: str):
    """Wherever it does; each place is tested with the reader."""

    def serve(peer: Peer, number: int, script: Script) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}")

    with (
        scripted(serve) as script,
        calls_of(kind, script.url) as call,
        pytest.raises(ForqUnreachable, match="before the answer was whole") as caught,
    ):
        call("queues")
    assert caught.value.sent is True


def test_a_refusal_that_comes_before_the_whole_request_is_heard(kind: str):
    """The server has closed; what it said before is still there to be read."""
    refusal = (
        b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 51\r\n\r\n"
        b'{"code":"bad_request.body.content.exceeds_limit"}  '
    )

    def serve(peer: Peer, number: int, script: Script) -> None:
        peer.socket.recv(1)
        peer.send(refusal)
        peer.socket.shutdown(1)
        while peer.socket.recv(65_536):
            pass

    with (
        scripted(serve) as script,
        calls_of(kind, script.url) as call,
        pytest.raises(Exception, match="longer than"),
    ):
        call("produce", "orders", "x" * 3_000_000)


def test_a_path_before_ours_and_a_user_in_the_url(kind: str):
    with scripted(answering(DONE)) as script:
        url = script.url.replace("http://", "http://me:pass%20word@") + "/forq/"
        with calls_of(kind, url, "key") as call:
            call("healthcheck")
        head = script.requests.get()[1].decode()
    assert head.startswith("GET /forq/healthcheck HTTP/1.1\r\n")
    assert f"\r\nHost: {script.url.removeprefix('http://')}\r\n" in head
    assert f"\r\nAuthorization: Basic {b64encode(b'me:pass word').decode()}\r\n" in head
    assert "\r\nX-API-Key: key\r\n" in head


def test_a_proxy_is_asked_for_the_whole_url(kind: str, monkeypatch: pytest.MonkeyPatch):
    with scripted(answering(DONE)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("http://", "http://me:secret@"))
        with calls_of(kind, "http://forq.example:81") as call:
            call("healthcheck")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with scripted(answering(DONE)) as server, calls_of(kind, server.url) as call:
            call("healthcheck")
            assert server.requests.qsize() == 1
        ((_, request),) = [proxy.requests.get_nowait() for _ in range(proxy.requests.qsize())]
    assert request.startswith(b"GET http://forq.example:81/healthcheck HTTP/1.1\r\nHost: forq.example:81\r\n")
    assert b"\r\nProxy-Authorization: Basic " + b64encode(b"me:secret") + b"\r\n" in request


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize("proxy_scheme", ["http", "https"])
def test_a_server_with_tls_behind_a_proxy(
    kind: str, proxy_scheme: str, authority: trustme.CA, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    """The proxy opens a tunnel; what goes through it, it cannot read."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("forq.example", "127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    asked: SimpleQueue[bytes] = SimpleQueue()

    def serve(peer: Peer, number: int, script: Script) -> None:
        if proxy_scheme == "https":
            peer = TlsPeer(peer, context)
        asked.put(peer.request())
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner = TlsPeer(peer, context)
        while request := inner.request():
            asked.put(request)
            inner.send(DONE)

    with scripted(serve) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("http", proxy_scheme, 1))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with calls_of(kind, "https://forq.example") as call:
            call("healthcheck")
            call("healthcheck")
    assert asked.get().startswith(b"CONNECT forq.example:443 HTTP/1.1\r\nHost: forq.example:443\r\n\r\n")
    assert [asked.get()[:17] for _ in range(asked.qsize())] == [b"GET /healthcheck "] * 2


class TlsPeer(Peer):
    """The server's end of TLS over another peer."""

    def __init__(self, below: Peer, context: ssl.SSLContext) -> None:
        super().__init__(below.socket)
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._run(self._tls.do_handshake)

    def send(self, data: bytes) -> None:
        self._run(lambda: self._tls.write(data))

    def receive(self) -> bytes:
        try:
            return self._run(lambda: self._tls.read(65_536))
        except ssl.SSLError:
            return b""

    def _run(self, step: Callable[[], object]) -> object:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._below.send(self._outgoing.read())
                data = self._below.receive()
                self._incoming.write(data) if data else self._incoming.write_eof()
            else:
                self._below.send(self._outgoing.read())
                return result


def test_the_session_tickets_of_tls_are_no_answer(authority: trustme.CA, tmp_path, monkeypatch):
    """They may come after the answer that they should have come before."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    def serve(peer: Peer, number: int, script: Script) -> None:
        inner = TlsPeer(peer, context)
        while request := inner.request():
            script.requests.put((number, request))
            inner.send(DONE)

    with scripted(serve) as script:
        with ForqClient(script.url.replace("http", "https"), SECRET) as client:
            for _ in range(3):
                client.healthcheck()
        assert connections(script) == [0, 0, 0]


def test_connections_are_bounded_and_given_out_in_order(monkeypatch: pytest.MonkeyPatch):
    """Who waits for a connection gets the first that is free, before those who come later."""
    waiting, wait = SimpleQueue[None](), Signal.wait
    go_on = threading.Semaphore(0)

    def wait_and_say(signal: Signal, seconds: float) -> bool:
        waiting.put(None)
        return wait(signal, seconds)

    monkeypatch.setattr(Signal, "wait", wait_and_say)

    def serve(peer: Peer, number: int, script: Script) -> None:
        while request := peer.request():
            script.requests.put((number, request))
            go_on.acquire()
            peer.send(DONE)

    with scripted(serve) as script:
        pool = Pool(script.url)
        threads = [
            threading.Thread(target=pool.exchange, args=(ClientRequest("GET", f"/{number}", (), b"", 30.0),))
            for number in range(CLIENT_CONNECTIONS_MAX + 3)
        ]
        for thread in threads[:CLIENT_CONNECTIONS_MAX]:
            thread.start()
        for _ in range(CLIENT_CONNECTIONS_MAX):
            script.requests.get()
        for thread in threads[CLIENT_CONNECTIONS_MAX:]:
            thread.start()
            waiting.get()
        assert script.requests.qsize() == 0
        late = []
        for _ in range(3):
            go_on.release()
            late.append(script.requests.get()[1].split(b" ")[1])
        assert late == [b"/%d" % (CLIENT_CONNECTIONS_MAX + number) for number in range(3)]
        go_on.release(CLIENT_CONNECTIONS_MAX)
        for thread in threads:
            thread.join()
        pool.close()


def test_without_a_free_connection_a_request_is_not_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("forq_trio.client.sync_pool.CLIENT_CONNECTIONS_MAX", 0)
    with ForqClient("http://127.0.0.1:1", SECRET) as client:
        monkeypatch.setattr(Signal, "wait", lambda signal, seconds: False)
        with pytest.raises(ForqUnreachable, match="connections of the client are in use") as caught:
            client.healthcheck()
    assert caught.value.sent is False


async def test_a_cancelled_wait_for_a_connection_takes_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("forq_trio.client.aio_pool.CLIENT_CONNECTIONS_MAX", 1)
    go_on = threading.Semaphore(0)

    def serve(peer: Peer, number: int, script: Script) -> None:
        while request := peer.request():
            script.requests.put((number, request))
            go_on.acquire()
            peer.send(DONE)

    with scripted(serve) as script:
        async with AsyncForqClient(script.url, SECRET) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.healthcheck)
            await trio.to_thread.run_sync(script.requests.get)
            with trio.CancelScope() as scope:
                nursery.start_soon(trio.testing.wait_all_tasks_blocked)
                scope.cancel()
                await client.healthcheck()
            async with trio.open_nursery() as waiters:
                waiters.start_soon(client.healthcheck)
                await trio.testing.wait_all_tasks_blocked()
                waiters.cancel_scope.cancel()
            go_on.release(2)
            await client.healthcheck()


def test_an_answer_is_what_came():
    answer = b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc"
    with scripted(answering(answer)) as script:
        pool = Pool(script.url)
        assert pool.exchange(ASK) == HttpAnswer(200, {"x-a": "b", "content-length": "3"}, b"abc")
        pool.close()
