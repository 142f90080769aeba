"""Draining: idle connections go after a moment, requests under way are answered, what remains is cut."""

import errno
import socket

import pytest
import trio
import trio.testing

from forq_trio.http.message import Response
from forq_trio.http.transport.http2 import frames
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from support.transport import Running, get, post

from .test_http2_rules import PING, SETTINGS, frames_behind, number, request


@pytest.fixture
async def transport(nursery):
    release = trio.Event()
    unsent = []

    async def handler(request):
        if request.path == "/wait":
            await release.wait()
        return Response(200, request.body, on_unsent=lambda: unsent.append(request.path))

    server = Server(
        handler, await open_listeners("127.0.0.1", 0), on_error=lambda error: unsent.append(error)
    )
    await nursery.start(server.serve)
    transport = Running(server)
    transport.release, transport.unsent = release, unsent
    yield transport
    await transport.close()


async def test_drain(transport):
    new, idle, busy, half = [await transport.connect() for _ in range(4)]
    await idle.send(get())
    await idle.answer()
    await half.send(get() + post(b"1234")[:-2])
    await half.answer()
    await busy.send(get("/wait") + get("/never"))
    await trio.testing.wait_all_tasks_blocked()
    port = transport.port
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.server.drain, 10)
        assert await new.ends() == b""
        assert await idle.ends() == b""
        with pytest.raises(OSError, match="all attempts to connect"):
            await trio.open_tcp_stream("127.0.0.1", port)
        transport.release.set()
        await half.send(b"34")
        for client in (busy, half):
            answer = await client.answer()
            assert (answer.status, answer.headers[b"connection"]) == (200, b"close")
            assert await client.ends() == b""
    assert transport.server.connections == 0
    assert transport.unsent == []


async def test_drain_cuts_what_takes_too_long(transport):
    busy = await transport.connect()
    await busy.send(get("/wait"))
    await trio.testing.wait_all_tasks_blocked()
    await transport.server.drain(0.05)
    assert await busy.ends() == b""
    assert transport.server.connections == 0


async def test_drain_gives_up_requests_that_come_no_further(transport):
    """Over HTTP/2 their clients may send them elsewhere at once."""
    clients = [await transport.connect() for _ in range(3)]
    head = request((b":method", b"POST"), flags=4)
    await frames_behind(clients[0], frames.PREFACE + SETTINGS + head + PING, [frames.PING])
    await clients[1].send(post(b"1234")[:-2])
    await clients[2].send(get()[:-2])
    await trio.testing.wait_all_tasks_blocked()
    assert await transport.server.drain(60)
    assert number(frames.REFUSED_STREAM) in await clients[0].ends()
    for client in clients[1:]:
        assert (await client.answer()).status == 408


async def test_drain_of_an_idle_server_and_twice(transport):
    await transport.server.drain(10)
    await transport.server.drain(10)
    assert transport.server.ports == ()


async def test_to_stop_accepting_at_once(nursery):
    """Before the tasks that accept have run for the first time."""

    class Started:
        def started(self, value: None = None) -> None:
            server.stop_accepting()

    server = Server(pytest.fail, await open_listeners("127.0.0.1", 0), on_error=pytest.fail)
    nursery.start_soon(server.serve, Started())
    await trio.testing.wait_all_tasks_blocked()
    assert await server.drain(0)


async def test_cancelling_serve_cuts_everything():
    async def handler(request):
        await trio.sleep_forever()

    server = Server(handler, await open_listeners("127.0.0.1", 0), on_error=lambda error: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        transport = Running(server)
        client = await transport.connect()
        await client.send(get())
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert transport.server.connections == 0
    assert await client.ends() == b""
    await transport.close()


async def test_a_port_in_use_is_an_error():
    (listener,) = await open_listeners("127.0.0.1", 0)
    with listener, pytest.raises(OSError, match=f"Errno {errno.EADDRINUSE}"):
        await open_listeners("127.0.0.1", listener.getsockname()[1])


async def test_a_request_that_was_sent_before_the_drain_is_answered(transport):
    """A kept connection looks idle until its bytes are read; its client cannot know that it came too late."""
    with socket.create_connection(("127.0.0.1", transport.port)) as kept:
        while not transport.server.connections:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        kept.sendall(post(b"just in time"))
        await transport.server.drain(10)
        answer = kept.recv(1_000)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: close\r\n" in answer
    assert answer.endswith(b"just in time")


async def test_a_request_on_a_kept_connection_while_others_finish_is_answered(transport):
    kept, busy = [await transport.connect() for _ in range(2)]
    await kept.send(get())
    await kept.answer()
    await busy.send(get("/wait"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.server.drain, 10)
        await trio.testing.wait_all_tasks_blocked()
        await kept.send(post(b"a moment later"))
        answer = await kept.answer()
        assert (answer.headers[b"connection"], answer.body) == (b"close", b"a moment later")
        transport.release.set()


async def test_who_has_connected_before_the_drain_is_answered(transport):
    """The kernel accepts for us: such a client has sent its request and knows nothing of our listener."""
    with socket.create_connection(("127.0.0.1", transport.port)) as connected:
        connected.sendall(get())
        transport.server.stop_accepting()
        await transport.server.drain(10)
        assert connected.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
