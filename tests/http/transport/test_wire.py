"""What a wire does in one turn of the event loop."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
import trio

from forq_trio.http.message import Response
from forq_trio.http.transport.wire import SocketWire
from forq_trio.model import limits
from support.transport import echo, get, post, running

LONG = b"0123456789abcdef" * (256 * limits.KIB // 16) * 16


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        for end in (ours, theirs):
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * limits.MIB)
        yield ours, theirs


async def test_little_of_a_long_answer_is_handed_over_at_once(pair) -> None:
    """Copying 4 MiB into the system takes milliseconds, in which nobody else is served."""
    wire = SocketWire(pair[0])
    assert 0 < wire.send_now(LONG) <= limits.SEND_NOW_BYTES_MAX
    assert 0 < await wire.send_some(memoryview(LONG)) <= limits.SEND_NOW_BYTES_MAX


async def test_other_tasks_run_between_the_portions(pair) -> None:
    turns: list[int] = []
    theirs = trio.socket.from_stdlib_socket(pair[1])

    async def read() -> None:
        left = len(LONG)
        while left:
            left -= len(await theirs.recv(limits.MIB))

    async def others() -> None:
        while True:
            turns.append(0)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        async with trio.open_nursery() as reading:
            reading.start_soon(read)
            await SocketWire(pair[0]).send_all(LONG)
        # One between two portions; the last may find the nursery's end first.
        assert len(turns) >= len(LONG) // limits.SEND_NOW_BYTES_MAX - 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [limits.SEND_PORTION_BYTES - 1, limits.SEND_PORTION_BYTES + 1, len(LONG)])
async def test_answers_of_any_length_arrive_whole(size) -> None:
    async def handler(request):
        return await echo(request) if request.method == "POST" else Response(200, LONG[:size])

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get("/long") + post(b"next"))
        assert (await client.answer()).body == LONG[:size]
        assert (await client.answer()).body == b"POST /?\nnext"
        await client.send(b"HEAD /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await client.answer("HEAD")
        assert answer.headers[b"content-length"] == str(size).encode()
        assert await client.ends() == b""
