"""Time-outs: what trickles in is cut, what is idle is closed without a word."""

from math import inf

import pytest
import trio
import trio.testing

from forq_trio.http.message import Response
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2.frames import PREFACE
from support.transport import get, post, running

QUICK = TransportConfig(
    header_seconds=0.1, body_seconds=0.1, idle_seconds=0.1, send_seconds=0.1, linger_seconds=0.1
)
SLOW_CASES = {"head": get()[:-2], "method": b"PO", "body": post(b"1234")[:-2]}


@pytest.mark.parametrize("name", SLOW_CASES)
async def test_an_unfinished_request_is_answered_408(name):
    async with running(config=QUICK) as transport:
        client = await transport.connect()
        await client.send(get("/whole") + SLOW_CASES[name])
        assert (await client.answer()).status == 200
        answer = await client.answer()
        assert (answer.status, answer.headers[b"connection"]) == (408, b"close")
        assert await client.ends() == b""


@pytest.mark.parametrize(
    ("start", "limit"), [(get("/", "A: x")[:-4], 10), (post(b"x" * 1000)[:-1000], 45)], ids=["head", "body"]
)
async def test_a_slow_loris_gains_nothing_by_trickling(start, limit, mock_clock):
    async with running(seconds=inf) as transport:
        client = await transport.connect()
        await client.send(start)
        for _ in range(9):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(limit / 10)
            await client.send(b"x")
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(limit / 10 + 0.2)
        assert (await client.answer()).status == 408


@pytest.mark.parametrize(
    "before", [b"", get(), b"PRI", b"\r\n"], ids=["new", "used", "preface", "blank line"]
)
async def test_an_idle_connection_is_closed_silently(before):
    async with running(config=QUICK) as transport:
        client = await transport.connect()
        await client.send(before)
        if before == get():
            await client.answer()
        assert await client.ends() == b""


async def test_the_default_limits_to_the_moment(mock_clock):
    """10 s for a head, 45 s for a body, 5 minutes idle."""
    async with running(seconds=inf) as transport:
        idle, head, body = [await transport.connect() for _ in range(3)]
        await head.send(get()[:-2])
        await head.arrived()
        await body.send(post(b"1234")[:-2])
        await body.arrived()

        async def open_at(seconds):
            mock_clock.jump(seconds - trio.current_time() + began)
            await trio.testing.wait_all_tasks_blocked()
            return transport.server.connections

        began = trio.current_time()
        assert await open_at(9.9) == 3
        assert await open_at(10.1) == 3  # Answered, and lingering until the client closes.
        assert (await head.answer()).status == 408
        await head.close()
        assert await open_at(44.9) == 2
        await open_at(45.1)
        assert (await body.answer()).status == 408
        await body.close()
        assert await open_at(299.9) == 1
        assert await open_at(300.1) == 0
        assert await idle.ends() == b""


async def test_a_client_that_does_not_read_is_cut_and_the_response_reported_unsent():
    unsent = trio.Event()

    async def handler(request):
        return Response(200, b"x" * 30_000_000, on_unsent=unsent.set)

    async with running(handler, QUICK) as transport:
        client = await transport.connect()
        await client.send(get())
        await unsent.wait()
        assert len(await client.ends()) < 30_000_000


async def test_a_handler_may_take_its_time(mock_clock):
    release = trio.Event()

    async def handler(request):
        await release.wait()
        return Response(200)

    async with running(handler, seconds=inf) as transport:
        client = await transport.connect()
        await client.send(get())
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1_000)
        await trio.testing.wait_all_tasks_blocked()
        release.set()
        assert (await client.answer()).status == 200


@pytest.mark.parametrize("start", [b"nonsense\r\n\r\n", PREFACE + b"x" * 9])
async def test_without_time_to_linger_a_refusal_closes_at_once(start, mock_clock):
    async with running(config=TransportConfig(linger_seconds=0), seconds=inf) as transport:
        client = await transport.connect()
        await client.send(start)
        assert await client.ends()
        await transport.until_nobody_is_connected()
