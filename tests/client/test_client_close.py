"""Closing a client ends what waits in it, wherever it is closed from."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest
import trio

from forq_trio import AsyncForqClient, ClientClosed, ForqClient
from forq_trio.client import sync_waits
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import ConnectFailed
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.client.sync_pool import Pool
from support.fake_transport import AsyncFakeTransport, FakeTransport
from support.real_server import SECRET
from support.scripted_server import Peer, Script, scripted

from .test_client_connections import ASK

SECONDS_MAX = 20.0  # below the 25.6 s for which a receive went on after the client was closed


def silent(peer: Peer, number: int, script: Script) -> None:
    """Hear requests, and never answer."""
    while request := peer.request():
        script.requests.put((number, request))


class Caller:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as problem:
            self._ended.put(problem)
        else:
            self._ended.put(None)

    def problem(self) -> BaseException | None:
        """How the call ended."""
        ended = self._ended.get(timeout=SECONDS_MAX)
        self._thread.join()
        return ended


def test_from_another_thread():
    with scripted(silent) as script:
        client = ForqClient(script.url, SECRET)
        callers = [Caller(lambda: client.receive("orders")) for _ in range(5)]
        for _ in callers:
            script.requests.get()
        client.close()
        assert [type(each.problem()) for each in callers] == [ClientClosed] * 5
        with pytest.raises(ClientClosed) as caught:
            client.receive("orders")
        assert caught.value.code == "client.closed"


@pytest.fixture
def on_signal():
    """Has a function called when the server gets a request, in the thread that waits for the answer."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda act: signal.signal(signal.SIGTERM, lambda number, frame: act())
    signal.signal(signal.SIGTERM, before)


def terminating(peer: Peer, number: int, script: Script) -> None:
    """Hear a request, and send the process SIGTERM instead of an answer."""
    while request := peer.request():
        script.requests.put((number, request))
        os.kill(os.getpid(), signal.SIGTERM)


def test_from_a_signal_handler(on_signal):
    with scripted(terminating) as script:
        client = ForqClient(script.url, SECRET)
        on_signal(client.close)
        with pytest.raises(ClientClosed):
            client.receive("orders")


def test_a_handler_that_raises_leaves_the_call_at_once(on_signal):
    """And nothing is repeated."""

    def leave() -> None:
        raise SystemExit(3)

    with scripted(terminating) as script:
        on_signal(leave)
        with pytest.raises(SystemExit) as caught, ForqClient(script.url, SECRET) as client:
            client.receive("orders")
        assert caught.value.code == 3
        assert script.ended.get() == 0
        assert script.requests.qsize() == 1


def test_a_handler_that_raises_leaves_the_pause_between_two_tries(on_signal, monkeypatch: pytest.MonkeyPatch):
    tries = []

    def refuse(request: ClientRequest) -> HttpAnswer:
        tries.append(request)
        raise ConnectFailed("refused")

    def leave() -> None:
        raise SystemExit(3)

    wait = sync_waits.Signal.wait

    def wait_and_be_told(self: sync_waits.Signal, seconds: float) -> bool:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGTERM)).start()
        return wait(self, SECONDS_MAX)

    on_signal(leave)
    monkeypatch.setattr(sync_waits.Signal, "wait", wait_and_be_told)
    with pytest.raises(SystemExit), ForqClient(transport=FakeTransport(refuse)) as client:
        client.receive("orders")
    assert len(tries) == 1


def test_in_the_pause_between_two_tries(monkeypatch: pytest.MonkeyPatch):
    waiting, wait = SimpleQueue[None](), sync_waits.Signal.wait

    def wait_long(self: sync_waits.Signal, seconds: float) -> bool:
        waiting.put(None)
        return wait(self, 10 * SECONDS_MAX)

    def refuse(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("refused")

    monkeypatch.setattr(sync_waits.Signal, "wait", wait_long)
    client = ForqClient(transport=FakeTransport(refuse))
    caller = Caller(client.healthcheck)
    waiting.get()
    client.close()
    assert isinstance(caller.problem(), ClientClosed)


def test_in_the_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("forq_trio.client.sync_pool.CLIENT_CONNECTIONS_MAX", 1)
    waiting, wait = SimpleQueue[None](), sync_waits.Signal.wait

    def wait_and_say(self: sync_waits.Signal, seconds: float) -> bool:
        waiting.put(None)
        return wait(self, seconds)

    monkeypatch.setattr(sync_waits.Signal, "wait", wait_and_say)
    with scripted(silent) as script:
        pool = Pool(script.url)
        callers = [Caller(lambda: pool.exchange(ASK))]
        script.requests.get()
        callers += [Caller(lambda: pool.exchange(ASK)) for _ in range(2)]
        waiting.get()
        waiting.get()
        pool.close()
        assert [type(each.problem()) for each in callers] == [ClientClosed] * 3


def test_while_it_connects(monkeypatch: pytest.MonkeyPatch):
    """Nobody takes the connection: the queue of the listener is full."""
    waiting, wait = SimpleQueue[None](), sync_waits.wait_writable

    def wait_and_say(sock: socket.socket, deadline: Deadline) -> None:
        waiting.put(None)
        wait(sock, Deadline(10 * SECONDS_MAX, sync_waits.now))

    monkeypatch.setattr(sync_waits, "wait_writable", wait_and_say)
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        pool = Pool(f"http://127.0.0.1:{listener.getsockname()[1]}")
        caller = Caller(lambda: pool.exchange(ASK))
        waiting.get()
        pool.close()
        assert isinstance(caller.problem(), ClientClosed)


def test_by_another_task_of_trio():
    async def main(script: Script) -> None:
        client = AsyncForqClient(script.url, SECRET)

        async def receive() -> None:
            with pytest.raises(ClientClosed):
                await client.receive("orders")

        with trio.fail_after(SECONDS_MAX):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receive)
                await trio.to_thread.run_sync(script.requests.get)
                await client.aclose()

    with scripted(silent) as script:
        trio.run(main, script)


def test_by_another_task_of_asyncio():
    async def main(script: Script) -> None:
        client = AsyncForqClient(script.url, SECRET)
        receiving = asyncio.create_task(client.receive("orders"))
        await asyncio.to_thread(script.requests.get)
        await client.aclose()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(receiving, SECONDS_MAX)

    with scripted(silent) as script:
        asyncio.run(main(script))


async def test_by_another_task_in_the_pause_between_two_tries(mock_clock: trio.testing.MockClock):
    """On a clock that stands still."""

    def refuse(request: ClientRequest) -> HttpAnswer:
        raise ConnectFailed("refused")

    client = AsyncForqClient(transport=AsyncFakeTransport(refuse), retry_seconds=100)

    async def ask() -> None:
        with pytest.raises(ClientClosed):
            await client.healthcheck()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await client.aclose()
