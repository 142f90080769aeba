"""What one connection of HTTP/2 may take: memory, handlers, time. And that none of it is left when it has ended."""

import tracemalloc
from contextlib import suppress
from math import inf

import hpack
import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2 import frames
from forq_trio.http.transport.http2.connection import Http2Connection
from forq_trio.http.transport.http2.frame_allowance import FrameAllowance
from forq_trio.http.transport.http2.protocol import Http2Protocol
from forq_trio.http.transport.http2.stream import Http2Stream
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.model import limits
from support.garbage import without_collections
from support.transport import Client, running

from .test_http2 import frame
from .test_http2_rules import PING, PSEUDO, SETTINGS, frames_behind, frames_until, number, request, status

LEAVING = {
    "its answer": request(),
    "half a header block": request(flags=1),
    "half a body": request((b":method", b"POST"), flags=4) + frame(0, 0, 1, b"x"),
    "a long poll": request((b":path", b"/wait")),
    "a fault": frame(0, 0, 0, b"x"),
    "a refused stream": request((b"A", b"b")),
}
MIB = limits.MIB
KINDS = (HttpSocket, Http2Connection, Http2Protocol, Http2Stream, Request)


def burst(allowance: FrameAllowance, now: float) -> int:
    """How many frames may be sent at once."""
    sent = 0
    with suppress(frames.ConnectionFault):
        while True:
            allowance.spend(now)
            sent += 1
    return sent


def test_an_allowance_is_a_burst_and_a_rate_and_a_share_of_answers():
    allowance = FrameAllowance(now=0.0)
    assert burst(allowance, now=0.0) == limits.HTTP2_ALLOWANCE_FRAMES_MAX
    allowance.earn(1 + limits.HTTP2_ALLOWANCE_FRAMES_PER_ANSWER)
    assert burst(allowance, now=0.0) == limits.HTTP2_ALLOWANCE_FRAMES_PER_ANSWER
    steady = FrameAllowance(now=0.0)
    for second in range(1, 1_000):
        for _ in range(int(limits.HTTP2_ALLOWANCE_FRAMES_PER_SECOND)):
            steady.spend(float(second))
    week = 7 * 86_400.0
    assert burst(steady, now=week) <= 2 * limits.HTTP2_ALLOWANCE_FRAMES_MAX


NEVER_READ = {
    "bodies": (Response(200, bytes(100_000)), limits.HTTP2_STREAMS_MAX * 100_000 + MIB),
    "headers": (Response(204, headers=((b"long", b"x" * 5_000),)), MIB),
}


@pytest.mark.parametrize("what", NEVER_READ)
async def test_who_never_reads_is_not_read_from(what: str, mock_clock):
    """Requests stay unread when as much as is allowed waits to be sent; then the connection is cut."""
    response, bytes_max = NEVER_READ[what]
    asked = 0

    async def handler(request_):
        nonlocal asked
        asked += 1
        return Response(response.status, bytes(len(response.body)), headers=response.headers)

    data = frames.PREFACE + SETTINGS + frame(8, 0, 0, number(2**30))
    start, block = request()[:5], request()[9:]  # encoded once: 50,000 times took most of the test's time
    data += b"".join(start + number(1 + 2 * each) + block for each in range(50_000))

    async def send_too_much(client: Client) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await client.send(data)

    config = TransportConfig()
    async with running(handler, config, seconds=inf) as transport, trio.open_nursery() as nursery:
        client = await transport.connect()
        tracemalloc.start()
        try:
            nursery.start_soon(send_too_much, client)
            while asked < limits.HTTP2_STREAMS_MAX:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(0.05)
            mock_clock.jump(config.send_seconds + 1)
            await transport.until_nobody_is_connected()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < bytes_max
    assert limits.HTTP2_STREAMS_MAX <= asked < 5_000


LONG = (b"a", b"x" * 3_900)  # in the table of the connection once, then a reference of one byte


def with_long_heads(count: int, times: int) -> bytes:
    """Requests whose bodies never come, with a head of `times` long fields each."""
    encoder = hpack.Encoder()
    blocks = [encoder.encode([(b":method", b"POST"), *PSEUDO[1:], *[LONG] * times]) for _ in range(count)]
    return b"".join(frame(frames.HEADERS, 4, 1 + 2 * n, block) for n, block in enumerate(blocks))


async def test_heads_that_wait_for_bodies_are_counted():
    """Some bytes stand for a head of 16 KiB, a connection has 250 of them, and no key was looked at yet."""
    kept = 5
    config = TransportConfig(bodies_bytes_max=kept * 13_000, body_seconds=60)
    async with running(config=config) as transport:
        last = await frames_until(transport, SETTINGS + with_long_heads(kept + 1, 3), [frames.HEADERS])
        stream_id, block = last[frames.HEADERS]
        assert stream_id == 1 + 2 * kept
        assert status(block) == 503


@pytest.mark.parametrize("times", [3, 4])
async def test_requests_that_are_refused_or_wait_take_little_memory(times: int):
    """Three long fields are a head that waits for its body within the budget, four are too much: 431."""
    config = TransportConfig(bodies_bytes_max=MIB // 2, body_seconds=60, send_seconds=60)
    async with running(config=config) as transport:
        client = await transport.connect()
        tracemalloc.start()
        try:
            sent = frames.settings_frame({4: 0}) + with_long_heads(limits.HTTP2_STREAMS_MAX, times)
            await frames_behind(client, frames.PREFACE + sent + PING, [frames.PING])
            now, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert now < 2 * MIB


@pytest.mark.parametrize("length", [(), ((b"content-length", b"1000000"),)])
async def test_a_client_may_end_a_request_that_was_refused(length):
    """Many clients see no answer that comes with a reset: what they still send is read, and the stream ends well."""
    async with running(config=TransportConfig(body_bytes_max=100_000)) as transport:
        client = await transport.connect()
        head = request((b":method", b"POST"), *length, flags=4)
        body = b"".join(frame(frames.DATA, 0, 1, bytes(10_000)) for _ in range(99))
        sent = frames.PREFACE + SETTINGS + head + body + frame(frames.DATA, 1, 1, bytes(10_000)) + PING
        last = await frames_behind(client, sent, [frames.PING])
        assert frames.RST_STREAM not in last
        last = await frames_behind(client, request(stream_id=3), [frames.HEADERS])
        assert last[frames.HEADERS][0] == 3


async def test_a_request_that_was_refused_and_goes_on_is_reset():
    config = TransportConfig(body_bytes_max=10, linger_seconds=0.1)
    async with running(config=config) as transport:
        client = await transport.connect()
        sent = frames.PREFACE + SETTINGS + request((b":method", b"POST"), flags=4) + frame(0, 0, 1, bytes(11))
        last = await frames_behind(client, sent, [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (1, number(frames.NO_ERROR))
        assert last[frames.HEADERS][0] == 1


async def test_streams_that_were_reset_count_while_their_handlers_run():
    """Else a client starts any number of handlers by resetting each request (CVE-2023-44487)."""
    release, running_now, most = trio.Event(), 0, 0

    async def handler(request_):
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        await release.wait()
        running_now -= 1
        return NO_CONTENT

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS)
        for stream_id in range(1, 2 * limits.HTTP2_STREAMS_MAX + 101, 2):
            await client.send(request((b":method", b"POST"), stream_id=stream_id))
            await trio.testing.wait_all_tasks_blocked()
            await client.send(frames.reset_frame(stream_id, frames.CANCEL))
        await trio.testing.wait_all_tasks_blocked()
        release.set()
    assert most == limits.HTTP2_STREAMS_MAX


@pytest.mark.parametrize("begun", [request(flags=1), request()[:-1], request()[:5]])
async def test_headers_have_to_be_whole_in_time(begun: bytes):
    async with running(config=TransportConfig(header_seconds=0.1)) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + begun)
        assert (await client.ends()).endswith(number(frames.ENHANCE_YOUR_CALM))


async def test_a_slow_reader_of_one_answer_loses_that_stream_alone():
    async with running(big, TransportConfig(send_seconds=0.2)) as transport:
        client = await transport.connect()
        slow = request((b":path", b"/long"))
        sent = frames.PREFACE + frames.settings_frame({4: 10}) + slow
        last = await frames_behind(client, sent, [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (1, number(frames.CANCEL))
        assert last[frames.DATA] == (1, b"x" * 10)
        last = await frames_behind(client, request(stream_id=3), [frames.DATA, frames.GOAWAY])
        assert last[frames.DATA] == (3, b"short")


async def big(request_):
    return Response(200, b"x" * 1_000 if request_.path == "/long" else b"short")


@pytest.mark.parametrize("leaving", LEAVING)
async def test_a_connection_that_has_ended_leaves_nothing_to_collect(leaving: str):
    async def handler(request_):
        if request_.path == "/wait":
            async with request_.cancelled_on_disconnect():
                await trio.sleep_forever()
        return Response(200, b"x")

    with without_collections(*KINDS) as alive:
        async with running(handler) as transport:
            for _ in range(3):
                client = await transport.connect()
                await client.send(frames.PREFACE + SETTINGS + LEAVING[leaving])
                await client.arrived()
                await client.close()
            await transport.until_nobody_is_connected()
            assert alive() == []
