"""All request bodies of a server together have a bound: nobody fills its memory with bodies that never end."""

import gc
import tracemalloc

from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2.protocol import Http2Protocol
from forq_trio.model.budget import Budget
from forq_trio.model.holders import OWNER
from support.transport import post, running

from .test_http2 import Http2Client

BODY = b"x" * 60_000
CONFIG = TransportConfig(bodies_bytes_max=100_000)


def test_what_is_given_back_can_be_taken_again() -> None:
    budget = Budget(10)
    assert budget.change(OWNER, 10)
    assert not budget.change(OWNER, 1)
    assert budget.change(OWNER, -11)
    assert budget.used == 0


async def test_a_body_beyond_the_budget_is_refused_and_the_next_one_is_not() -> None:
    async with running(config=CONFIG) as transport:
        first, second, third = [await transport.connect() for _ in range(3)]
        await first.send(post(BODY)[:-1])
        await first.arrived()
        await second.send(post(BODY)[:-1])
        refused = await second.answer()
        assert refused.status == 503
        assert await second.ends() == b""
        await first.send(BODY[-1:])
        assert (await first.answer()).body.endswith(BODY)
        await third.send(post(BODY)[:-1])
        await third.arrived()
        await third.send(BODY[-1:])
        assert (await third.answer()).status == 200


async def test_a_client_that_leaves_gives_its_share_back() -> None:
    async with running(config=CONFIG) as transport:
        for _ in range(3):
            client = await transport.connect()
            await client.send(post(BODY)[:-1])
            await client.arrived()
            await client.close()
            await transport.until_nobody_is_connected()


async def test_nothing_is_kept_of_a_refused_body_while_its_client_reads_the_answer() -> None:
    clients = 20
    async with running(config=TransportConfig(bodies_bytes_max=1)) as transport:
        tracemalloc.start()
        try:
            for _ in range(clients):
                client = await transport.connect()
                await client.send(post(BODY)[:-1])
                assert (await client.answer()).status == 503
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < clients * len(BODY) // 2


async def test_http2_keeps_nothing_that_it_has_read() -> None:
    async with running(config=TransportConfig(bodies_bytes_max=1)) as transport:
        assert await post_over_http2(transport) == 503
        (protocol,) = [each for each in gc.get_objects() if type(each) is Http2Protocol]
        assert protocol._data == b""


async def test_http2_shares_the_budget() -> None:
    async with running(config=CONFIG) as transport:
        holding = await transport.connect()
        await holding.send(post(BODY)[:-1])
        await holding.arrived()
        assert await post_over_http2(transport) == 503
        await holding.send(BODY[-1:])
        assert (await holding.answer()).status == 200
        assert await post_over_http2(transport) == 200


async def post_over_http2(transport) -> int:
    client = Http2Client((await transport.connect()).stream)
    await client.start()
    return (await client.answer(await client.request("POST", body=BODY))).status
