"""Ack, release and extend by the one who holds the message: contract F4."""

import pytest

from forq_trio.model.messages.types import QueueCounts
from support.actors import T0

from .face import NOBODY, NOT_FOUND
from .words import SECOND, code_of, contents

LEASE = 10 * SECOND


async def test_f4_an_acknowledged_message_is_gone(face) -> None:
    sent = await face.send()
    delivery = await face.take()
    assert await face.ack(delivery.receipt) == [True]
    assert await face.counts() == NOBODY
    assert await code_of(face.message(sent.id)) == NOT_FOUND
    assert await face.ack(delivery.receipt) == [False]


async def test_f4_by_id_without_a_receipt_it_is_idempotent(face) -> None:
    await face.send()
    delivery = await face.take()
    for _ in range(2):
        await face.ack_by_id(delivery.id)
        assert await face.counts() == NOBODY
    await face.ack_by_id("01890a5d-ac96-774b-bcce-b302099a8057")


async def test_f4_by_id_nothing_happens_to_a_message_nobody_holds(face) -> None:
    sent = await face.send()
    await face.ack_by_id(sent.id)
    await face.nack_by_id(sent.id)
    assert await face.counts() == QueueCounts(ready=1)
    assert (await face.take()).attempts == 1


async def test_f4_by_id_and_receipt_it_is_done_once(face) -> None:
    await face.send()
    message = await face.poll()
    await face.ack_by_id(message.id, message.receipt)
    assert await face.counts() == NOBODY
    assert await code_of(face.ack_by_id(message.id, message.receipt)) == NOT_FOUND


@pytest.mark.parametrize("settle", ["ack", "discard", "nack", "release"])
async def test_f4_many_are_answered_in_order(face, settle) -> None:
    for content in "abc":
        await face.send(content)
    a, b, c = [delivery.receipt for delivery in await face.receive(most=3)]
    assert await face.ack(b) == [True]
    assert await getattr(face, settle)(c, b, a, a) == [True, False, True, False]
    assert (await face.counts()).processing == 0


async def test_extend_answers_many_in_order(face) -> None:
    for content in "abc":
        await face.send(content)
    a, b, c = [delivery.receipt for delivery in await face.receive(most=3)]
    assert await face.ack(b) == [True]
    assert await face.extend(c, b, a, lease_ms=LEASE) == [T0 + LEASE, None, T0 + LEASE]


async def test_an_extended_lease_counts_from_now(face) -> None:
    await face.send()
    delivery = await face.take(lease_ms=LEASE)
    await face.advance(LEASE - 1)
    assert await face.extend(delivery.receipt, lease_ms=LEASE) == [T0 + 2 * LEASE - 1]
    assert (await face.message(delivery.id)).lease_until == T0 + 2 * LEASE - 1
    await face.advance(LEASE - 1)
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).attempts == 2


async def test_a_lease_can_be_cut_short(face) -> None:
    await face.send()
    delivery = await face.take()
    assert await face.extend(delivery.receipt, lease_ms=1) == [T0 + 1]
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).attempts == 2


async def test_a_released_message_keeps_its_place_and_its_attempts(face) -> None:
    for content in ("first", "second"):
        await face.send(content)
    delivery = await face.take()
    assert await face.release(delivery.receipt) == [True]
    again = await face.receive(most=2)
    assert contents(again) == ["first", "second"]
    assert [each.attempts for each in again] == [1, 1]


async def test_a_message_released_for_later_comes_exactly_then(face) -> None:
    await face.send()
    delivery = await face.take()
    assert await face.release(delivery.receipt, delay_ms=SECOND) == [True]
    assert await face.counts() == QueueCounts(delayed=1)
    await face.advance(SECOND - 1)
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).attempts == 1


async def test_a_release_never_fails_a_message(face) -> None:
    await face.send()
    for _ in range(10):
        delivery = await face.take()
        assert delivery.attempts == 1
        assert await face.release(delivery.receipt) == [True]
    assert await face.counts() == QueueCounts(ready=1)
