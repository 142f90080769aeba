"""Messages that are read or dropped by their keys."""

import pytest

from forq_trio import WrongPhrase
from forq_trio.delayed import DelayedQueue, DeliveryType
from support.actors import TrioClock

from .letters import ACQUIRE_MS, A, B, Letter, after, take

FIRST, REDELIVERY = DeliveryType.FIRST, DeliveryType.REDELIVERY


async def test_d32_a_future_message_is_read_and_not_hidden(queue, face) -> None:
    await queue.offer_or_update("k", A, after(10))
    await face.advance(1_000)
    envelope = await queue.read("k")
    assert (envelope.payload, envelope.message_id, envelope.source) == (A, "k", queue.name)
    assert (envelope.delivery_type, envelope.timestamp) == (FIRST, after(1))
    await face.advance(9_000)
    assert (await take(queue)).delivery_type is FIRST


async def test_d32_a_message_in_process_is_read_and_its_ack_works(queue) -> None:
    await queue.offer_or_update("k", A)
    polled = await take(queue)
    assert (await queue.read("k")).delivery_type is REDELIVERY
    await polled.acknowledge()
    assert await queue.read("k") is None


async def test_d32_a_key_that_is_not_there(queue) -> None:
    assert await queue.read("k") is None
    assert not await queue.contains_message("k")


async def test_d33_a_read_can_be_acknowledged(queue) -> None:
    await queue.offer_or_update("k", A, after(10))
    envelope = await queue.read("k")
    await envelope.acknowledge()
    assert not await queue.contains_message("k")
    await envelope.acknowledge()


@pytest.mark.parametrize(("payload", "at"), [(B, 10), (A, 20)])
async def test_d33_unless_payload_or_time_were_updated(queue, payload, at) -> None:
    await queue.offer_or_update("k", A, after(10))
    envelope = await queue.read("k")
    await queue.offer_or_update("k", payload, after(at))
    await envelope.acknowledge()
    assert (await queue.read("k")).payload == payload


async def test_d33_a_poll_in_between_does_not_matter(queue, face) -> None:
    await queue.offer_or_update("k", A)
    envelope = await queue.read("k")
    polled = await take(queue)
    await envelope.acknowledge()
    assert not await queue.contains_message("k")
    await polled.acknowledge()


async def test_d33_nor_does_the_end_of_a_timeout(queue, face) -> None:
    await queue.offer_or_update("k", A)
    envelope = await queue.read("k")
    await take(queue)
    await face.advance(ACQUIRE_MS)
    await envelope.acknowledge()
    assert not await queue.contains_message("k")


async def test_d33_a_key_that_was_removed_and_offered_anew_stays(queue, face) -> None:
    await queue.offer_or_update("k", A)
    envelope = await queue.read("k")
    await queue.drop_message("k")
    await queue.offer_or_update("k", A)
    await envelope.acknowledge()
    assert await queue.contains_message("k")


async def test_d34_drop_says_whether_there_was_one(queue) -> None:
    assert not await queue.drop_message("k")
    await queue.offer_or_update("k", A, after(10))
    assert await queue.drop_message("k")
    assert not await queue.drop_message("k")
    assert not await queue.contains_message("k")


async def test_d34_drop_removes_what_is_in_process_and_its_ack_does_nothing(queue) -> None:
    await queue.offer_or_update("k", A)
    envelope = await take(queue)
    assert await queue.drop_message("k")
    await queue.offer_or_update("k", B)
    await envelope.acknowledge()
    assert (await take(queue)).payload == B


async def test_d35_drop_all_needs_its_phrase_and_stays_in_its_queue(queue, face) -> None:
    others = [
        await DelayedQueue.create(face.methods, name, Letter, kind=kind, clock=TrioClock())
        for name, kind in (("mail", "Other"), ("post", "Letter"))
    ]
    for number in range(12):
        await queue.offer_or_update(f"{number}", A, after(number))
    await take(queue)
    for other in others:
        await other.offer_or_update("k", A)
    for wrong in ("", "mail", "yes", "MAIL.LETTER"):
        with pytest.raises(WrongPhrase):
            await queue.drop_all_messages(wrong)
    assert await queue.contains_message("11")
    assert await queue.drop_all_messages("mail.Letter") == 12
    assert await queue.drop_all_messages("mail.Letter") == 0
    assert [await other.contains_message("k") for other in others] == [True, True]


async def test_d35_a_queue_that_nobody_used_has_none(face) -> None:
    queue = DelayedQueue(face.methods, "unused", Letter)
    assert await queue.drop_all_messages("unused.Letter") == 0
