"""Messages in process: updates, acknowledgements, and what happens after the acquire timeout."""

import pytest

from forq_trio import OutOfRange
from forq_trio.delayed import DelayedQueue, DeliveryType
from support.actors import TrioClock

from .letters import ACQUIRE_MS, MINUTE, A, B, Letter, after, take

FIRST, REDELIVERY = DeliveryType.FIRST, DeliveryType.REDELIVERY


async def test_d06_the_same_again_keeps_the_lock(queue, face) -> None:
    await queue.offer_or_update("k", A, after(0))
    envelope = await take(queue)
    assert await queue.offer_or_update("k", A, after(0)) == "ignored"
    assert await queue.try_poll() is None
    await envelope.acknowledge()
    assert not await queue.contains_message("k")


async def test_d07_an_update_is_delivered_at_once_and_the_old_ack_does_nothing(queue) -> None:
    await queue.offer_or_update("k", A)
    old = await take(queue)
    assert await queue.offer_or_update("k", B) == "updated"
    new = await take(queue)
    assert (new.payload, new.delivery_type) == (B, FIRST)
    await old.acknowledge()
    assert await queue.contains_message("k")
    await new.acknowledge()
    assert not await queue.contains_message("k")


async def test_d22_a_poll_hides_until_the_timeout(queue, face) -> None:
    await queue.offer_or_update("k", A)
    await take(queue)
    other = DelayedQueue(queue.source, "mail", Letter, clock=TrioClock())
    await face.advance(ACQUIRE_MS - 1)
    assert await queue.try_poll() is None
    assert await other.try_poll() is None
    await face.advance(1)
    assert (await take(other)).payload == A


async def test_d23_d24_an_ack_removes_and_a_second_one_does_nothing(queue) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    await envelope.acknowledge()
    assert not await queue.contains_message("k")
    await queue.offer_or_update("k", A)
    await envelope.acknowledge()
    assert await queue.contains_message("k")


async def test_d25_an_ack_after_an_update_keeps_the_update(queue, face) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    await queue.offer_or_update("k", A, after(10))
    await envelope.acknowledge()
    await face.advance(10_000)
    assert (await take(queue)).payload == A


async def test_d26_a_late_ack_removes_what_nobody_else_has(queue, face) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    await face.advance(ACQUIRE_MS + 1)
    await envelope.acknowledge()
    assert not await queue.contains_message("k")
    assert await queue.try_poll() is None


async def test_d27_a_late_ack_removes_nothing_that_another_has(queue, face) -> None:
    await queue.offer_or_update("k", A)
    first = await take(queue)
    await face.advance(ACQUIRE_MS)
    second = await take(queue)
    await first.acknowledge()
    assert await queue.contains_message("k")
    await second.acknowledge()
    assert not await queue.contains_message("k")


async def test_d28_it_comes_again_and_again(queue, face) -> None:
    await queue.offer_or_update("k", A)
    assert (await take(queue)).delivery_type is FIRST
    for _ in range(20):
        await face.advance(ACQUIRE_MS)
        envelope = await take(queue)
        assert (envelope.payload, envelope.delivery_type) == (A, REDELIVERY)


async def test_d28_unless_a_cap_is_set(face) -> None:
    queue = await DelayedQueue.create(face.methods, "mail", Letter, deliveries_max=2, clock=TrioClock())
    await queue.offer_or_update("k", A)
    for _ in range(2):
        await take(queue)
        await face.advance(ACQUIRE_MS)
    assert await queue.try_poll() is None
    (dead,) = (await queue.source.search_dead_letters(f"{queue.name}-dlq")).messages
    assert dead.content == '{"to":"anna","page":1}'


async def test_another_timeout(face) -> None:
    queue = await DelayedQueue.create(face.methods, "mail", Letter, acquire_timeout=MINUTE, clock=TrioClock())
    await queue.offer_or_update("k", A)
    await take(queue)
    await face.advance(59_999)
    assert await queue.try_poll() is None
    await face.advance(1)
    assert (await take(queue)).delivery_type is REDELIVERY


@pytest.mark.parametrize("timeout", [0 * MINUTE, 721 * MINUTE])
def test_a_timeout_out_of_range_is_refused(timeout) -> None:
    with pytest.raises(OutOfRange, match="acquire_timeout"):
        DelayedQueue(None, "mail", Letter, acquire_timeout=timeout)


async def test_a_retry_comes_again_after_its_delay(queue, face) -> None:
    await queue.offer_or_update("k", A)
    assert await (await take(queue)).retry(MINUTE, "the shop is closed")
    await face.advance(59_999)
    assert await queue.try_poll() is None
    await face.advance(1)
    envelope = await take(queue)
    assert (envelope.payload, envelope.delivery_type) == (A, REDELIVERY)
    stored = await queue.source.keyed_message(queue.name, "k", queue.kind)
    assert stored.message.last_error == "the shop is closed"


@pytest.mark.parametrize("minute", [MINUTE, "1 min", 60, 60.0], ids=repr)
async def test_a_duration_is_a_timedelta_a_text_or_seconds(face, minute) -> None:
    queue = await DelayedQueue.create(face.methods, "mail", Letter, acquire_timeout=minute, clock=TrioClock())
    assert (await queue.source.settings(queue.name)).effective.lease_ms == 60_000
    await queue.offer_or_update("k", A, minute)
    for again in (minute, None):
        await face.advance(59_999)
        assert await queue.try_poll() is None
        await face.advance(1)
        envelope = await take(queue)
        assert again is None or await envelope.retry(again)


async def test_a_retry_of_what_was_updated_changes_nothing(queue) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    await queue.offer_or_update("k", B)
    assert not await envelope.retry(MINUTE)
    assert (await take(queue)).payload == B


async def test_a_retry_out_of_range_is_refused(queue) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    for minutes in (-1, 43_201):
        with pytest.raises(OutOfRange):
            await envelope.retry(minutes * MINUTE)
    assert await envelope.retry(0 * MINUTE)
    assert await (await take(queue)).retry(43_200 * MINUTE)


async def test_what_was_read_cannot_be_retried(queue) -> None:
    await queue.offer_or_update("k", A)
    with pytest.raises(TypeError, match="polled"):
        await (await queue.read("k")).retry(MINUTE)
