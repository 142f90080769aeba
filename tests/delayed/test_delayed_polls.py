"""Polls: one, many, and waiting."""

import pytest
import trio

from forq_trio.delayed import DeliveryType, Scheduled

from .letters import ACQUIRE_MS, A, B, Letter, after, take, take_all

FIRST, REDELIVERY = DeliveryType.FIRST, DeliveryType.REDELIVERY


async def test_d17_an_empty_queue_has_nothing(queue) -> None:
    assert await queue.try_poll() is None


async def test_d18_a_due_message_comes_with_its_key_source_and_time(queue, face) -> None:
    await queue.offer_or_update("k", A)
    await face.advance(1_234)
    envelope = await take(queue)
    assert (envelope.payload, envelope.message_id, envelope.source) == (A, "k", "mail.Letter")
    assert (envelope.timestamp, envelope.delivery_type) == (after(1.234), FIRST)


async def test_d19_d20_a_message_comes_in_its_millisecond_and_not_before(queue, face) -> None:
    await queue.offer_or_update("k", A, after(3))
    await face.advance(2_999)
    assert await queue.try_poll() is None
    await face.advance(1)
    assert (await take(queue)).timestamp == after(3)


async def test_d21_messages_come_in_the_order_of_their_times(queue, face) -> None:
    for key, seconds in (("3", 3), ("1", 1), ("2", 2)):
        await queue.offer_or_update(key, A, after(seconds))
    await face.advance(3_000)
    assert [(await take(queue)).message_id for _ in range(3)] == ["1", "2", "3"]


async def test_d21_also_after_an_update(queue, face) -> None:
    for key, seconds in (("a", 1), ("b", 2)):
        await queue.offer_or_update(key, A, after(seconds))
    await queue.offer_or_update("a", A, after(3))
    await face.advance(3_000)
    assert await take_all(queue) == ["b", "a"]


async def test_d29_a_waiting_poll_gets_what_another_offers(queue, face) -> None:
    got = []

    async def wait() -> None:
        got.append(await queue.poll())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await face.has_parked(1, queue.name)
        await queue.offer_or_update("k", A)
    assert got[0].payload == A


async def test_d29_a_waiting_poll_gets_what_falls_due(queue, face) -> None:
    await queue.offer_or_update("k", A, after(10))
    got = []

    async def wait() -> None:
        got.append(await queue.poll())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await face.has_parked(1, queue.name)
        await face.advance(10_000)
    assert got[0].timestamp == after(10)


async def test_d29_a_poll_waits_longer_than_one_request(queue, face) -> None:
    got = []

    async def wait() -> None:
        got.append(await queue.poll())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for _ in range(3):
            await face.has_parked(1, queue.name)
            await face.advance(30_000)
        await face.has_parked(1, queue.name)
        await queue.offer_or_update("k", A)
    assert got[0].timestamp == after(90)


async def test_d29_a_waiting_poll_can_be_cancelled_and_takes_nothing(queue, face) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.poll)
        await face.has_parked(1, queue.name)
        nursery.cancel_scope.cancel()
    while await face.waiting(queue.name):
        await face.advance(100)
    await queue.offer_or_update("k", A)
    assert (await take(queue)).delivery_type is FIRST


@pytest.mark.parametrize("number", [5, 100, 250])
async def test_d30_many_come_oldest_first_and_one_ack_removes_all(queue, face, number) -> None:
    await offer(queue, 250 if number == 250 else max(10, number))
    await face.advance(1_000)
    batch = await queue.try_poll_many(number)
    assert [each.message_id for each in batch.messages] == [f"{n:03}" for n in range(number)]
    assert batch.payload == [Letter("anna", n) for n in range(number)]
    await batch.acknowledge()
    await batch.acknowledge()
    assert len(await take_all(queue)) == max(10, number) - number


async def offer(queue, number: int) -> None:
    order = sorted(range(number), key=lambda n: n * 7919 % number)
    offers = [Scheduled(f"{n:03}", Letter("anna", n), after(n / 1_000)) for n in order]
    assert {each.outcome for each in await queue.offer_batch(offers)} == {"created"}


@pytest.mark.parametrize("number", [0, -1])
async def test_d30_none_are_asked_for(queue, number) -> None:
    await queue.offer_or_update("k", A)
    batch = await queue.try_poll_many(number)
    assert (batch.messages, batch.payload, batch.delivery_type, batch.timestamp) == ((), [], FIRST, None)
    await batch.acknowledge()
    assert (await take(queue)).delivery_type is FIRST


async def test_d30_an_update_among_many_stays(queue) -> None:
    await queue.offer_or_update("a", A)
    await queue.offer_or_update("b", A)
    batch = await queue.try_poll_many(2)
    await queue.offer_or_update("a", B)
    await batch.acknowledge()
    assert await take_all(queue) == ["a"]


async def test_d31_many_are_a_redelivery_if_one_is(queue, face) -> None:
    await queue.offer_or_update("a", A)
    assert (await queue.try_poll_many(5)).delivery_type is FIRST
    await face.advance(ACQUIRE_MS)
    await queue.offer_or_update("b", A)
    batch = await queue.try_poll_many(5)
    assert [each.delivery_type for each in batch.messages] == [REDELIVERY, FIRST]
    assert batch.delivery_type is REDELIVERY


class FailsAfter:
    """A source whose receives fail after the first so many."""

    def __init__(self, source, receives: int) -> None:
        self.release, self.ack, self.nack, self.settings = (
            source.release,
            source.ack,
            source.nack,
            source.settings,
        )
        self._receive, self._left = source.receive, receives

    async def receive(self, *arguments, **options) -> list:
        self._left -= 1
        if self._left < 0:
            raise ValueError("the wire is cut")
        return await self._receive(*arguments, **options)


async def test_d30_many_that_fail_on_the_way_are_given_back(queue, face) -> None:
    await offer(queue, 250)
    await face.advance(1_000)
    source, queue.source = queue.source, FailsAfter(queue.source, 2)
    with pytest.raises(ValueError, match="cut"):
        await queue.try_poll_many(250)
    queue.source = source
    assert (await queue.source.queue_stats(queue.name)).ready == 250
    batch = await queue.try_poll_many(250)
    assert (len(batch.messages), batch.delivery_type) == (250, FIRST)
