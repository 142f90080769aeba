"""A waiting consumer gets a message the moment there is one: contract F3.

Time stands still unless a test moves it, so what arrives without that arrived at once.
"""

import pytest
import trio

from forq_trio import NewMessage
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages.types import QueueCounts
from support.actors import T0

from .face import NOBODY
from .waiter import park, park_poll
from .words import MINUTE, SECOND, attempt_all_but_one

NOTICED_AFTER = 10
"""Milliseconds that a client has waited when it leaves."""

either_way = pytest.mark.parametrize("parked", [park, park_poll], ids=["receive", "poll"])


@either_way
async def test_f3_a_send_wakes_it(face, parked) -> None:
    async with trio.open_nursery() as nursery:
        waiter = await parked(face, nursery)
        sent = await face.send("hello")
        assert await waiter.contents() == ["hello"]
        message = await face.message(sent.id)
        assert (message.status, message.lease_until) == ("processing", T0 + 5 * MINUTE)


@either_way
async def test_f3_a_delay_that_ends_wakes_it(face, parked) -> None:
    await face.send("due", process_after=T0 + SECOND)
    async with trio.open_nursery() as nursery:
        waiter = await parked(face, nursery)
        await still_waits_then(face, waiter, SECOND, "due")


async def test_f5_a_back_off_that_ends_wakes_it(face) -> None:
    await face.send("again")
    await face.nack((await face.take()).receipt)
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await still_waits_then(face, waiter, SECOND, "again")


async def test_f6_a_lease_that_ends_wakes_it(face) -> None:
    await face.send("abandoned")
    await face.poll()
    await face.advance(5 * MINUTE - 10 * SECOND)
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await still_waits_then(face, waiter, 10 * SECOND, "abandoned")


async def still_waits_then(face, waiter, ms: int, content: str) -> None:
    """Nothing comes until `ms` have passed; then the message does, with no more time."""
    await face.advance(ms - 1)
    assert await face.waiting() == 1
    face.jump(1)
    assert await waiter.contents() == [content]


async def test_a_release_wakes_it(face) -> None:
    await face.send("back")
    held = await face.take()
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await face.release(held.receipt)
        assert await waiter.contents() == ["back"]


async def test_a_lease_that_is_given_up_wakes_it(face) -> None:
    await face.send("back")
    held = await face.take()
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        assert await face.extend(held.receipt, lease_ms=0) == [T0]
        assert await waiter.contents() == ["back"]


async def test_f7_a_message_that_fails_wakes_who_waits_for_dead_letters(face) -> None:
    await face.send("poison")
    await attempt_all_but_one(face)
    last = await face.take()
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery, "q-dlq")
        await face.nack(last.receipt)
        assert await waiter.contents() == ["poison"]


async def test_f3_one_message_wakes_one_of_many(face) -> None:
    async with trio.open_nursery() as nursery:
        waiters = [await park(face, nursery) for _ in range(5)]
        await face.send("only")
        await waiters[0].contents()
        await face.advance(0)
        assert [waiter.got for waiter in waiters] == [["only"], None, None, None, None]
        assert await face.waiting() == 4
        assert await face.counts() == QueueCounts(processing=1)
        nursery.cancel_scope.cancel()


async def test_f3_first_come_first_served(face) -> None:
    async with trio.open_nursery() as nursery:
        waiters = [await (park, park_poll)[number % 2](face, nursery) for number in range(6)]
        for number in range(3):
            await face.send(str(number))
        await face.send_many([NewMessage(str(number)) for number in range(3, 6)])
        assert [await waiter.contents() for waiter in waiters] == [[str(number)] for number in range(6)]


async def test_f3_a_batch_serves_everybody_before_it_fills_anybody(face) -> None:
    async with trio.open_nursery() as nursery:
        greedy = await park(face, nursery, most=10)
        modest = await park(face, nursery, most=1)
        await face.send_many([NewMessage(content) for content in "abc"])
        assert await greedy.contents() == ["a", "b"]
        assert await modest.contents() == ["c"]


async def test_f3_a_message_of_another_queue_wakes_nobody(face) -> None:
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await face.send(queue="other")
        await face.advance(0)
        assert await face.waiting() == 1
        assert waiter.got is None
        nursery.cancel_scope.cancel()


@either_way
async def test_f3_the_wait_is_over_after_30_seconds(face, parked) -> None:
    async with trio.open_nursery() as nursery:
        waiter = await parked(face, nursery)
        await face.advance(WAIT_MS_MAX - 1)
        assert await face.waiting() == 1
        face.jump(1)
        assert await waiter.contents() == []
    await face.send("too late for that one")
    assert await face.counts() == QueueCounts(ready=1)


async def test_each_waits_as_long_as_it_said(face) -> None:
    async with trio.open_nursery() as nursery:
        long = await park(face, nursery, wait_ms=20)
        short = await park(face, nursery, wait_ms=10)
        face.jump(10)
        assert await short.contents() == []
        assert await face.waiting() == 1
        face.jump(10)
        assert await long.contents() == []


@either_way
async def test_who_leaves_is_not_served_and_loses_nothing(face, parked) -> None:
    async with trio.open_nursery() as nursery:
        leaver = await parked(face, nursery)
        stays = await parked(face, nursery)
        await face.advance(NOTICED_AFTER)
        leaver.leave()
        await face.has_parked(1)
        await face.send("mine")
        assert await stays.contents() == ["mine"]
    assert leaver.got is None


@either_way
async def test_who_leaves_last_leaves_an_empty_line(face, parked) -> None:
    async with trio.open_nursery() as nursery:
        leaver = await parked(face, nursery)
        await face.advance(NOTICED_AFTER)
        leaver.leave()
        await face.has_parked(0)
    await face.send()
    assert (await face.take()).attempts == 1
    assert await face.counts("nobody-ever-used") == NOBODY
