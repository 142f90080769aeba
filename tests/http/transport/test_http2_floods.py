"""One connection of HTTP/2 that sends frames as fast as it can, for each kind of frame, beside a client of HTTP/1.1.

Time would measure the machine. What is counted is the work of the process, in calls of functions, from a request of
HTTP/1.1 to its answer. A hundred milliseconds are about half a million of them.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import hpack
import pytest
import trio

from support.transport import get, running

from .test_http2 import frame

FLOOD_BYTES = 256 * 1024
REQUESTS = 20
CALLS_MAX = 300_000
CALLS_WITHOUT_FLOOD = 5_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"test"), (b":path", b"/")]


def requests_that_are_reset(*more: tuple[bytes, bytes]) -> Iterator[bytes]:
    encoder = hpack.Encoder()
    for stream_id in range(1, 2**31, 2):
        yield frame(1, 5, stream_id, encoder.encode([*GET, *more]))
        yield frame(3, 0, stream_id, struct.pack(">I", 8))


def again(data: bytes) -> Iterator[bytes]:
    while True:
        yield data


FLOODS: dict[str, Callable[[], Iterator[bytes]]] = {
    "settings": lambda: again(frame(4, 0, 0, struct.pack(">HIHI", 4, 65_535, 4, 65_534))),
    "window updates": lambda: again(frame(8, 0, 0, struct.pack(">I", 1))),
    "frames of an unknown kind": lambda: again(frame(0xBB, 0, 0, b"")),
    "pings": lambda: again(frame(6, 0, 0, bytes(8))),
    "priorities": lambda: again(frame(2, 0, 1, b"\0\0\0\0\x05")),
    "resets": requests_that_are_reset,
    "references to a long header": lambda: requests_that_are_reset(*[(b"a", b"x" * 3_500)] * 4),
}


def flood_of(kind: str) -> bytes:
    data = bytearray(PREFACE)
    for portion in FLOODS[kind]():
        data += portion
        if len(data) > FLOOD_BYTES:
            break
    return bytes(data)


class Calls:
    """Counts calls of functions."""

    count = 0

    def __call__(self, *_: object) -> None:
        self.count += 1


@contextmanager
def counting_calls() -> Iterator[Calls]:
    calls = Calls()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def flood(client, data: bytes) -> None:
    """Send until the server cuts the connection, and read what it answers."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, client)
        try:
            await client.send(data)
        except trio.BrokenResourceError:
            return


async def drain(client) -> None:
    await client.ends()


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_leaves_time_for_others(kind: str):
    data = flood_of(kind)
    async with running() as transport:
        flooding, other = await transport.connect(), await transport.connect()
        works = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood, flooding, data)
            with counting_calls() as calls:
                for _ in range(REQUESTS):
                    before = calls.count
                    await other.send(get())
                    assert (await other.answer()).status == 200
                    works.append(calls.count - before)
            nursery.cancel_scope.cancel()
    assert CALLS_WITHOUT_FLOOD < max(works) < CALLS_MAX
