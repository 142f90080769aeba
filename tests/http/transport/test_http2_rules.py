"""The rules of RFC 9113, each with what a client that breaks it is told, and what we refuse of what is allowed."""

import struct
from collections.abc import Sequence

import hpack

from forq_trio.http.message import Response
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2 import frames
from forq_trio.model import limits
from support.transport import ERROR_BODIES, running

from .test_http2 import frame, http2

PSEUDO = ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"test"), (b":path", b"/"))
PING = frame(frames.PING, 0, 0, b"the end!")
SETTINGS = frames.settings_frame({})


def request(*fields: tuple[bytes, bytes], stream_id: int = 1, flags: int = 5, before: bytes = b"") -> bytes:
    """HEADERS of a request; `fields` follow those of a GET, and replace them by their names."""
    names = {name for name, _ in fields if name.startswith(b":")}
    block = hpack.Encoder().encode([*[each for each in PSEUDO if each[0] not in names], *fields])
    return frame(frames.HEADERS, flags, stream_id, before + block)


def without(name: bytes) -> bytes:
    return frame(1, 5, 1, hpack.Encoder().encode([each for each in PSEUDO if each[0] != name]))


def number(value: int) -> bytes:
    return struct.pack(">I", value)


POST = request((b":method", b"POST"), flags=4)
ENDED = request()

CONNECTION_FAULTS = {
    "a frame that is too long": (POST + frame(0, 0, 1, bytes(16_385)), frames.FRAME_SIZE_ERROR),
    "data without a stream": (frame(0, 0, 0, b"x"), frames.PROTOCOL_ERROR),
    "headers without a stream": (request(stream_id=0), frames.PROTOCOL_ERROR),
    "headers on a stream of the server's": (request(stream_id=2), frames.PROTOCOL_ERROR),
    "headers on a stream that was passed over": (
        request(stream_id=5) + request(stream_id=3),
        frames.PROTOCOL_ERROR,
    ),
    "data on an idle stream": (frame(0, 0, 1, b"x"), frames.PROTOCOL_ERROR),
    "a reset of an idle stream": (frame(3, 0, 1, number(8)), frames.PROTOCOL_ERROR),
    "a window of an idle stream": (frame(8, 0, 1, number(1)), frames.PROTOCOL_ERROR),
    "another frame within a header block": (request(flags=1) + PING, frames.PROTOCOL_ERROR),
    "a continuation of another stream": (request(flags=1) + frame(9, 4, 3, b""), frames.PROTOCOL_ERROR),
    "a continuation of nothing": (frame(9, 4, 1, b""), frames.PROTOCOL_ERROR),
    "a header block beyond all bounds": (
        request(flags=1) + 3 * frame(9, 0, 1, bytes(16_000)),
        frames.ENHANCE_YOUR_CALM,
    ),
    "a field that is in no table": (frame(1, 5, 1, b"\xff\x80\x01"), frames.COMPRESSION_ERROR),
    "a third change of the table's size": (
        frame(1, 5, 1, b"\x20\x3f\xe1\x1f\x20\x82"),
        frames.COMPRESSION_ERROR,
    ),
    "more padding than data": (POST + frame(0, 8, 1, b"\x05x"), frames.PROTOCOL_ERROR),
    "padding without its length": (POST + frame(0, 8, 1, b""), frames.FRAME_SIZE_ERROR),
    "a priority that is cut off": (frame(1, 0x25, 1, bytes(4)), frames.FRAME_SIZE_ERROR),
    "a priority of another length": (frame(2, 0, 1, bytes(4)), frames.FRAME_SIZE_ERROR),
    "a priority without a stream": (frame(2, 0, 0, bytes(5)), frames.PROTOCOL_ERROR),
    "a reset of another length": (POST + frame(3, 0, 1, bytes(3)), frames.FRAME_SIZE_ERROR),
    "settings of a stream": (frame(4, 0, 1, b""), frames.PROTOCOL_ERROR),
    "settings of another length": (frame(4, 0, 0, bytes(5)), frames.FRAME_SIZE_ERROR),
    "settings in an acknowledgement": (frame(4, 1, 0, bytes(6)), frames.FRAME_SIZE_ERROR),
    "a push that is neither on nor off": (frames.settings_frame({2: 2}), frames.PROTOCOL_ERROR),
    "a window that is too large": (frames.settings_frame({4: 2**31}), frames.FLOW_CONTROL_ERROR),
    "frames that are too small": (frames.settings_frame({5: 16_383}), frames.PROTOCOL_ERROR),
    "frames that are too large": (frames.settings_frame({5: 2**24}), frames.PROTOCOL_ERROR),
    "a push": (frame(5, 4, 1, number(2)), frames.PROTOCOL_ERROR),
    "a ping of a stream": (frame(6, 0, 1, bytes(8)), frames.PROTOCOL_ERROR),
    "a ping of another length": (frame(6, 0, 0, bytes(7)), frames.FRAME_SIZE_ERROR),
    "an end of a stream": (frame(7, 0, 1, bytes(8)), frames.PROTOCOL_ERROR),
    "an end that is cut off": (frame(7, 0, 0, bytes(7)), frames.FRAME_SIZE_ERROR),
    "a window that grows by nothing": (frame(8, 0, 0, number(0)), frames.PROTOCOL_ERROR),
    "a window that grows beyond its bound": (frame(8, 0, 0, number(2**31 - 1)), frames.FLOW_CONTROL_ERROR),
    "a window of another length": (frame(8, 0, 0, bytes(3)), frames.FRAME_SIZE_ERROR),
}

STREAM_FAULTS = {
    "data behind the end": (ENDED + frame(0, 0, 1, b"x"), frames.STREAM_CLOSED),
    "headers behind the end": (ENDED + request(), frames.STREAM_CLOSED),
    "trailers that are not the end": (POST + request(flags=4), frames.PROTOCOL_ERROR),
    "trailers with a pseudo-header": (POST + request(), frames.PROTOCOL_ERROR),
    "a window that grows by nothing": (POST + frame(8, 0, 1, number(0)), frames.PROTOCOL_ERROR),
    "a window that grows beyond its bound": (
        POST + frame(8, 0, 1, number(2**31 - 1)),
        frames.FLOW_CONTROL_ERROR,
    ),
    "a stream that depends on itself": (request(flags=0x25, before=number(1) + b"\0"), frames.PROTOCOL_ERROR),
    "a priority on itself": (POST + frame(2, 0, 1, number(1) + b"\0"), frames.PROTOCOL_ERROR),
    "no method": (without(b":method"), frames.PROTOCOL_ERROR),
    "no scheme": (without(b":scheme"), frames.PROTOCOL_ERROR),
    "no path": (without(b":path"), frames.PROTOCOL_ERROR),
    "no authority and no host": (without(b":authority"), frames.PROTOCOL_ERROR),
    "an empty path": (request((b":path", b"")), frames.PROTOCOL_ERROR),
    "a method that is no word": (request((b":method", b"G T")), frames.PROTOCOL_ERROR),
    "a method beyond ASCII": (request((b":method", b"G\xc9T")), frames.PROTOCOL_ERROR),
    "a method twice": (request((b":path", b"/"), (b":path", b"/")), frames.PROTOCOL_ERROR),
    "a pseudo-header of answers": (request((b":status", b"200")), frames.PROTOCOL_ERROR),
    "a pseudo-header behind others": (request((b"a", b"b"), (b":path", b"/")), frames.PROTOCOL_ERROR),
    "another host": (request((b"host", b"other")), frames.PROTOCOL_ERROR),
    "capitals": (request((b"Name", b"x")), frames.PROTOCOL_ERROR),
    "an empty name": (request((b"", b"x")), frames.PROTOCOL_ERROR),
    "a name with a colon": (request((b"a:b", b"x")), frames.PROTOCOL_ERROR),
    "a line break": (request((b"a", b"x\r\ny")), frames.PROTOCOL_ERROR),
    "a null": (request((b"a", b"x\0")), frames.PROTOCOL_ERROR),
    "a blank at the start": (request((b"a", b" x")), frames.PROTOCOL_ERROR),
    "a blank at the end": (request((b"a", b"x\t")), frames.PROTOCOL_ERROR),
    "a header of the connection's": (request((b"connection", b"close")), frames.PROTOCOL_ERROR),
    "a coding of HTTP/1.1": (request((b"transfer-encoding", b"chunked")), frames.PROTOCOL_ERROR),
    "te with more than trailers": (request((b"te", b"trailers, gzip")), frames.PROTOCOL_ERROR),
    "a length that is none": (request((b"content-length", b"-1"), flags=4), frames.PROTOCOL_ERROR),
    "two lengths": (
        request((b"content-length", b"1"), (b"content-length", b"2"), flags=4),
        frames.PROTOCOL_ERROR,
    ),
    "a length without a body": (request((b"content-length", b"1")), frames.PROTOCOL_ERROR),
    "a body that is too short": (
        request((b"content-length", b"2"), flags=4) + frame(0, 1, 1, b"x"),
        frames.PROTOCOL_ERROR,
    ),
}

REFUSED = {
    "CONNECT": (
        frame(1, 5, 1, hpack.Encoder().encode([(b":method", b"CONNECT"), (b":authority", b"a:1")])),
        501,
    ),
    "a target that is too long": (request((b":path", b"/" + b"x" * 9_000)), 414),
    "headers that are too long": (request((b"a", b"x" * 16_300)), 431),
    "too many headers": (request(*[(b"a", b"%d" % n) for n in range(101)]), 431),
    "a length that is too great": (request((b"content-length", b"9000000"), flags=4), 413),
    "an expectation": (request((b"expect", b"something")), 417),
    "a fragment": (request((b":path", b"/#part")), 400),
    "no path": (request((b":path", b"x")), 400),
    "a path beyond ASCII": (request((b":path", b"/\xc9")), 400),
}

SERVED = {
    "padding": frame(1, 0xD, 1, b"\x03" + ENDED[9:] + bytes(3)),
    "a method that nobody knows": request((b":method", b"BREW")),
    "all of a server's methods": request((b":method", b"OPTIONS"), (b":path", b"*")),
    "te": request((b"te", b"trailers")),
    "the same host": request((b"host", b"test")),
    "two changes of the table's size": frame(1, 5, 1, b"\x20\x3f\xe1\x1f" + ENDED[9:]),
    "trailers": POST + frame(1, 5, 1, hpack.Encoder().encode([(b"checksum", b"x")])),
    "the same length twice": request((b"content-length", b"0"), (b"content-length", b"0")),
    "a block of many frames": b"".join(
        [
            frame(1, 1, 1, ENDED[9:12]),
            *[frame(9, 0, 1, ENDED[at : at + 1]) for at in range(12, len(ENDED))],
            frame(9, 4, 1, b""),
        ]
    ),
}


async def frames_until(transport, sent: bytes, end: Sequence[int]) -> dict[int, tuple[int, bytes]]:
    """Connect and send, and read frames until one of a type in `end` comes; returns the last frame of each type."""
    return await frames_behind(await transport.connect(), frames.PREFACE + sent, end)


async def frames_behind(client, sent: bytes, end: Sequence[int]) -> dict[int, tuple[int, bytes]]:
    """The same on a connection that is open; nothing must be left to read of what was sent before."""
    await client.send(sent)
    received, last = b"", {}
    while not any(kind in last for kind in end):
        while len(received) < 9 or len(received) < 9 + frames.read_frame_header(received, 0)[0]:
            more = await client.stream.receive_some()
            assert more, "the connection ended"
            received += more
        length, kind, _, stream_id = frames.read_frame_header(received, 0)
        last[kind] = stream_id, received[9 : 9 + length]
        received = received[9 + length :]
    return last


def status(block: bytes) -> int:
    return int(dict(hpack.Decoder().decode(block, raw=True))[b":status"])


async def test_what_ends_a_connection():
    async with running() as transport:
        for name, (sent, code) in CONNECTION_FAULTS.items():
            last = await frames_until(transport, SETTINGS + sent, [frames.GOAWAY])
            assert last[frames.GOAWAY][1][4:] == number(code), name


async def test_a_connection_begins_with_settings():
    async with running() as transport:
        for first in (PING, ENDED, frame(4, 1, 0, b"")):
            last = await frames_until(transport, first, [frames.GOAWAY])
            assert last[frames.GOAWAY][1] == number(0) + number(frames.PROTOCOL_ERROR)


async def test_what_resets_a_stream():
    async with running() as transport:
        for name, (sent, code) in STREAM_FAULTS.items():
            last = await frames_until(transport, SETTINGS + sent + PING, [frames.GOAWAY, frames.PING])
            assert last.get(frames.RST_STREAM) == (1, number(code)), name
            assert frames.GOAWAY not in last, name


async def test_what_is_refused():
    async with running() as transport:
        for name, (sent, refused) in REFUSED.items():
            last = await frames_until(transport, SETTINGS + sent + PING, [frames.GOAWAY, frames.DATA])
            assert status(last[frames.HEADERS][1]) == refused, name
            assert last[frames.DATA][1] == ERROR_BODIES[refused], name


async def test_what_is_served():
    async with running() as transport:
        for name, sent in SERVED.items():
            last = await frames_until(transport, SETTINGS + sent, [frames.GOAWAY, frames.DATA])
            assert status(last[frames.HEADERS][1]) == 200, name


async def test_frames_on_a_stream_that_we_have_reset_are_no_mistake():
    """They were on their way when we reset it."""
    late = frame(0, 0, 1, bytes(100)) + request() + frame(3, 0, 1, number(8)) + frame(8, 0, 1, number(1))
    async with running(config=TransportConfig(linger_seconds=0.1)) as transport:
        client = await transport.connect()
        too_long = request((b"content-length", b"9000000"), flags=4)
        last = await frames_behind(client, frames.PREFACE + SETTINGS + too_long, [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (1, number(frames.NO_ERROR))
        last = await frames_behind(client, late + PING, [frames.GOAWAY, frames.PING])
        assert frames.GOAWAY not in last


async def test_a_client_that_waits_before_it_sends_its_body_is_told_to_go_on():
    async with running() as transport:
        sent = SETTINGS + request((b":method", b"POST"), (b"expect", b"100-continue"), flags=4)
        last = await frames_until(transport, sent, [frames.HEADERS])
        assert status(last[frames.HEADERS][1]) == 100


async def test_a_table_that_the_client_makes_smaller_is_said_to_be_empty():
    """Without that a strict client ends the connection (RFC 7541 section 4.2)."""
    async with running() as transport:
        last = await frames_until(transport, frames.settings_frame({1: 0}) + ENDED, [frames.HEADERS])
        decoder = hpack.Decoder()
        decoder.max_allowed_table_size = 0
        assert (b":status", b"200") in decoder.decode(last[frames.HEADERS][1], raw=True)


async def test_a_window_that_the_client_makes_smaller_and_larger_again():
    async with running(config=TransportConfig(send_seconds=60)) as transport:
        client = await http2(transport)
        client.h2.update_settings({4: 0})
        stream_id = await client.request("POST", body=b"x" * 1_000)
        while stream_id not in client.answers:
            await client.receive()
        assert client.answers[stream_id].body == b""
        client.h2.update_settings({4: 100_000})
        await client.flush()
        assert (await client.answer(stream_id)).body.endswith(b"x" * 1_000)


async def test_the_authority_is_the_host_and_repeated_headers_are_joined():
    async def handler(request_):
        return Response(200, request_.headers[b"host"] + b" " + request_.headers[b"a"])

    async with running(handler) as transport:
        sent = SETTINGS + request((b"a", b"1"), (b"a", b"2"))
        last = await frames_until(transport, sent, [frames.DATA])
        assert last[frames.DATA][1] == b"test 1, 2"


async def test_more_streams_than_allowed_are_refused_and_may_be_sent_again():
    async with running(config=TransportConfig(body_seconds=60)) as transport:
        stream_ids = [1 + 2 * n for n in range(limits.HTTP2_STREAMS_MAX + 1)]
        opened = b"".join(request((b":method", b"POST"), stream_id=each, flags=4) for each in stream_ids)
        last = await frames_until(transport, SETTINGS + opened, [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (stream_ids[-1], number(frames.REFUSED_STREAM))
