"""One connection of HTTP/2 that sends frames as fast as it can, for each kind of frame, beside a client of HTTP/1.1.

Time would measure the machine. What is counted is the work of the process, in calls of functions, from a request of
HTTP/1.1 to its answer. A hundred milliseconds are about half a million of them. Frames that ask for nothing end their
connection; those that make more work than they look are worked through, a few at a time.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import hpack
import pytest
import trio

from support.effort import count
from support.processes import WAIT_SECONDS_MAX
from support.transport import get, running

from .test_http2 import frame

FLOOD_BYTES = 256 * 1024
REQUESTS = count("requests_beside_floods")
FLOODS = 20
CALLS_MAX = 150_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"test"), (b":path", b"/")]
FRAME_OF_GOAWAY = 17
GOAWAY_START = struct.pack(">I", 8 << 8 | 7)
ENHANCE_YOUR_CALM = struct.pack(">I", 11)
CANCEL = struct.pack(">I", 8)


def blocks(
    fields: Callable[[int], list[tuple[bytes, bytes]]], *, huffman: bool = True
) -> Iterator[tuple[int, bytes]]:
    """Streams and the header blocks of their requests, as one encoder makes them.

    The same fields with the same table are the same block: to encode each anew took longer than all the rest.
    """
    encoder = hpack.Encoder()
    block, encoded = b"", None
    for stream_id in range(1, 2**31, 2):
        asked = fields(stream_id), list(encoder.header_table.dynamic_entries)
        if asked != encoded:
            block, encoded = encoder.encode([*GET, *asked[0]], huffman=huffman), asked
        yield stream_id, block


def requests(fields: Callable[[int], list[tuple[bytes, bytes]]], *, huffman: bool = True) -> Iterator[bytes]:
    for stream_id, block in blocks(fields, huffman=huffman):
        yield frame(1, 4 if len(block) > 16_384 else 5, stream_id, block)


def requests_that_are_reset(fields: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for stream_id, block in blocks(lambda _: fields):
        yield frame(1, 5, stream_id, block) + frame(3, 0, stream_id, CANCEL)


def requests_that_have_us_reset() -> Iterator[bytes]:
    """Each depends on itself."""
    for stream_id, block in blocks(lambda _: []):
        yield frame(1, 0x25, stream_id, struct.pack(">IB", stream_id, 1) + block)


def a_body_of(data: bytes) -> Iterator[bytes]:
    yield frame(1, 4, 1, next(blocks(lambda _: []))[1])
    while True:
        yield data


def continuations(payload: bytes) -> Iterator[bytes]:
    yield frame(1, 0, 1, next(blocks(lambda _: []))[1])
    while True:
        yield frame(9, 0, 1, payload)


def priorities() -> Iterator[bytes]:
    while True:
        for stream_id in range(1, 1_800, 2):
            yield frame(2, 0, stream_id, struct.pack(">IB", stream_id + 2, 1))


def again(data: bytes) -> Iterator[bytes]:
    while True:
        yield data


COUNTED_FRAMES: dict[str, Callable[[], Iterator[bytes]]] = {
    "settings": lambda: again(frame(4, 0, 0, struct.pack(">HIHI", 4, 65_535, 4, 65_534))),
    "window updates": lambda: again(frame(8, 0, 0, struct.pack(">I", 1))),
    "frames of an unknown kind": lambda: again(frame(0xBB, 0, 0, b"")),
    "pings": lambda: again(frame(6, 0, 0, bytes(8))),
    "acknowledged pings": lambda: again(frame(6, 1, 0, bytes(8))),
    "priorities of 900 streams": priorities,
    "resets": lambda: requests_that_are_reset([]),
    "resets by us": requests_that_have_us_reset,
    "empty data": lambda: a_body_of(frame(0, 0, 1, b"")),
    "padding": lambda: a_body_of(frame(0, 8, 1, b"\x00")),
    "window updates of a stream": lambda: a_body_of(frame(8, 0, 1, struct.pack(">I", 1))),
    "empty continuations": lambda: continuations(b""),
    "continuations": lambda: continuations(b"\x00\x01a\x01b" * 100),
    "references to a long header": lambda: requests_that_are_reset([(b"a", b"x" * 3_500)] * 4),
    "headers that decode to too much": lambda: requests(lambda _: [(b"a", b"x" * 3_500)] * 40),
}
WORK: dict[str, Callable[[], Iterator[bytes]]] = {
    "long settings": lambda: again(frame(4, 0, 0, struct.pack(">HI", 4, 65_535) * 2_000)),
    "settings nobody knows": lambda: again(
        frame(4, 0, 0, b"".join(struct.pack(">HI", number, 1) for number in range(2_000, 4_000)))
    ),
    "many fields": lambda: requests(lambda _: [(b"a", b"")] * 95),
    "more fields than allowed": lambda: requests(lambda _: [(b"a", b"%d" % n) for n in range(400)]),
    "fields that replace the table": lambda: requests(
        lambda number: [(b"a%d" % n, b"%d" % number) for n in range(90)], huffman=False
    ),
    "huffman codes": lambda: requests(lambda number: [(b"a", b"%d" % number * 1_000)]),
    "fields as long as can be": lambda: requests(lambda _: [(b"referer", b"x" * 15_000)]),
    "data in single bytes": lambda: a_body_of(frame(0, 0, 1, b"x")),
}
QUICK = {"long settings", "many fields", "data in single bytes"}
"""Of these, what tier 1 has: frames of a connection, of a request and of a body."""


def flood_of(frames: Iterator[bytes]) -> bytes:
    data = bytearray(PREFACE)
    while len(data) < FLOOD_BYTES:
        data += next(frames)
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


class Flood:
    """A client that sends until the server cuts it. received: what it was answered, once the connection has ended."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ended = trio.Event()
        self.received = b""

    async def run(self, client) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, client)
            with suppress(trio.BrokenResourceError):
                await client.send(self.data)

    async def _read(self, client) -> None:
        self.received = await client.ends()
        self.ended.set()


async def check_works_beside(transport) -> None:
    """None of some requests of HTTP/1.1 takes much work of the server's."""
    client = await transport.connect()
    with counting_calls() as calls:
        for _ in range(REQUESTS):
            before = calls.count
            await client.send(get())
            assert (await client.answer()).status == 200
            assert calls.count - before < CALLS_MAX


@pytest.mark.parametrize("kind", COUNTED_FRAMES)
async def test_a_flood_leaves_time_for_others_and_is_ended(kind: str):
    flood = Flood(flood_of(COUNTED_FRAMES[kind]()))
    async with running() as transport, trio.open_nursery() as nursery:
        nursery.start_soon(flood.run, await transport.connect())
        await check_works_beside(transport)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await flood.ended.wait()
        nursery.cancel_scope.cancel()
    assert flood.received[-FRAME_OF_GOAWAY:][:4] == GOAWAY_START
    assert flood.received.endswith(ENHANCE_YOUR_CALM)


@pytest.mark.parametrize(
    "kind", [each if each in QUICK else pytest.param(each, marks=pytest.mark.tier2) for each in WORK]
)
async def test_frames_that_make_work_leave_time_for_others(kind: str):
    flood = Flood(flood_of(WORK[kind]()))
    async with running() as transport, trio.open_nursery() as nursery:
        nursery.start_soon(flood.run, await transport.connect())
        await check_works_beside(transport)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "kind", ["more fields than allowed", pytest.param("many fields", marks=pytest.mark.tier2)]
)
async def test_many_that_make_work_take_turns(kind: str):
    """What one connection may make others wait for is not multiplied by the number of connections."""
    flood = flood_of(WORK[kind]())
    async with running() as transport, trio.open_nursery() as nursery:
        for _ in range(FLOODS):
            nursery.start_soon(Flood(flood).run, await transport.connect())
        await check_works_beside(transport)
        nursery.cancel_scope.cancel()
