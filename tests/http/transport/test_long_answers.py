"""Answers that the system's buffers do not take at once."""

import socket
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from forq_trio.http.message import Response
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.http.transport.poller import Poller
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


class Sending:
    """Instead of a protocol. left: how many bytes are not sent."""

    works = False

    def __init__(self) -> None:
        self.left = len(LONG)
        self.portions: list[int] = []
        self.done = trio.Event()

    def sent(self, sent_bytes: int) -> None:
        self.portions.append(sent_bytes)
        self.left -= sent_bytes
        if not self.left:
            self.done.set()

    def end(self) -> None: ...


async def test_a_long_answer_is_handed_over_in_portions_between_which_others_run(pair, nursery) -> None:
    """Copying 4 MiB into the system takes milliseconds, in which nobody else is served."""
    poller, passes = Poller(), 0
    services: Any = SimpleNamespace(
        poller=poller, config=TransportConfig(), now=trio.current_time, on_error=pytest.fail
    )
    nursery.start_soon(poller.run)
    connection = HttpSocket(services, pair[0], "192.0.2.1", OpenConnections(1))
    sending = connection._protocol = Sending()
    theirs = trio.socket.from_stdlib_socket(pair[1])

    async def read() -> None:
        left = len(LONG)
        while left:
            left -= len(await theirs.recv(limits.MIB))

    async def others() -> None:
        nonlocal passes
        while True:
            passes += 1
            await trio.lowlevel.checkpoint()

    nursery.start_soon(others)
    nursery.start_soon(read)
    sending.sent(connection.send(LONG))
    await sending.done.wait()
    assert max(sending.portions) <= limits.SEND_NOW_BYTES_MAX
    assert passes >= len(sending.portions) - 1
    connection.close()
    poller.close()


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
