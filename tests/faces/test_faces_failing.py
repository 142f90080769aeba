"""Attempts that fail, and where they lead: contract F5, F6, F7."""

import pytest

from forq_trio.model.limits import ATTEMPTS_MAX_DEFAULT
from forq_trio.model.messages.types import QueueCounts
from support.actors import T0

from .face import NOBODY, NOT_FOUND
from .words import MINUTE, SECOND, attempt_all_but_one, code_of, contents, fail

LEASE = 5 * MINUTE
BACK_OFF = [1 * SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND]


@pytest.mark.parametrize("by_id", [False, True], ids=["by-receipt", "by-id"])
async def test_f5_the_back_off_grows_and_the_fifth_attempt_is_the_last(face, by_id) -> None:
    sent = await face.send()
    for attempts, delay in enumerate(BACK_OFF, start=1):
        delivery = await face.take()
        assert delivery.attempts == attempts
        await nack(face, delivery, by_id)
        assert await face.counts() == QueueCounts(delayed=1)
        await face.advance(delay - 1)
        assert await face.has_nothing()
        await face.advance(1)
    delivery = await face.take()
    assert delivery.attempts == ATTEMPTS_MAX_DEFAULT
    await nack(face, delivery, by_id)
    dead = await face.take_when_there("q-dlq")
    assert (dead.id, dead.attempts) == (sent.id, 1)


async def nack(face, delivery, by_id: bool) -> None:
    if by_id:
        await face.nack_by_id(delivery.id)
    else:
        assert await face.nack(delivery.receipt) == [True]


async def test_f7_a_message_that_failed_is_a_dead_letter_at_once(face) -> None:
    """No time passes here: the sweep is not waited for."""
    sent = await face.send("poison")
    await attempt_all_but_one(face)
    await face.nack((await face.take()).receipt, reason="boom")
    await face.advance(0)
    assert await face.counts() == NOBODY
    assert await code_of(face.message(sent.id)) == NOT_FOUND
    dead = await face.message(sent.id, "q-dlq")
    assert (dead.status, dead.attempts, dead.content) == ("ready", 0, "poison")
    assert (dead.failure_reason, dead.last_error) == ("max_attempts_reached", "boom")
    assert (dead.source_queue, dead.sequence, dead.received_at) == ("q", sent.sequence, T0)


async def test_a_final_nack_makes_a_dead_letter_at_the_first_attempt(face) -> None:
    sent = await face.send("poison")
    assert await face.nack((await face.take()).receipt, reason="unreadable", final=True) == [True]
    dead = await face.take_when_there("q-dlq")
    assert dead.id == sent.id
    message = await face.message(sent.id, "q-dlq")
    assert (message.last_error, message.source_attempts) == ("unreadable", 1)
    assert await face.counts() == NOBODY


async def test_a_nack_gives_a_bound_and_says_what_became_of_the_message(face) -> None:
    sent = await face.send(max_attempts=1)
    told = []
    for bound in (3, None, None):
        result = await face.methods.nack("q", await face.take(), delay_ms=0, max_attempts=bound)
        told.append((result.ok, result.failed))
    assert told == [(True, False), (True, False), (True, True)]
    await face.advance(0)
    assert (await face.message(sent.id, "q-dlq")).source_attempts == 3


async def test_f5_a_delay_of_ones_own(face) -> None:
    await face.send()
    await face.nack((await face.take()).receipt, delay_ms=7)
    await face.advance(6)
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).attempts == 2


async def test_f6_a_lease_ends_after_five_minutes_and_not_before(face) -> None:
    await face.send()
    message = await face.poll()
    await face.advance(LEASE - 1)
    assert await face.counts() == QueueCounts(processing=1)
    assert await face.has_nothing()
    await face.advance(1)
    assert await face.counts() == QueueCounts(ready=1)
    again = await face.take()
    assert (again.id, again.attempts) == (message.id, 2)


async def test_f6_a_message_keeps_its_place_when_its_lease_ends(face) -> None:
    for content in ("first", "second"):
        await face.send(content)
    await face.take()
    await face.advance(LEASE)
    assert contents(await face.receive(most=2)) == ["first", "second"]


async def test_f6_a_lease_that_ends_at_the_last_attempt_fails(face) -> None:
    sent = await face.send()
    await attempt_all_but_one(face)
    last = await face.take()
    await face.advance(LEASE - 1)
    assert (await face.message(sent.id)).status == "processing"
    await face.advance(1)
    dead = await face.take_when_there("q-dlq")
    assert (dead.id, dead.attempts) == (sent.id, 1)
    assert await face.ack(last.receipt) == [False]


async def test_f5_f7_what_fails_in_a_dead_letter_queue_is_deleted(face) -> None:
    sent = await face.send()
    await fail(face)
    dead = await face.take_when_there("q-dlq")
    await face.nack(dead.receipt, queue="q-dlq")
    await face.advance(SECOND - 1)
    assert await face.has_nothing("q-dlq")
    await face.advance(1)
    for _ in range(3):
        await face.nack((await face.take("q-dlq")).receipt, queue="q-dlq", delay_ms=0)
    await face.nack((await face.take("q-dlq")).receipt, queue="q-dlq")
    await face.advance(0)
    assert await face.counts("q-dlq") == NOBODY
    assert await code_of(face.message(sent.id, "q-dlq")) == NOT_FOUND


async def test_f7_dead_letters_keep_their_order(face) -> None:
    for content in "abc":
        await face.send(content)
    for _ in range(ATTEMPTS_MAX_DEFAULT):
        receipts = [delivery.receipt for delivery in await face.receive(most=3)]
        assert await face.nack(*reversed(receipts), delay_ms=0) == [True] * 3
    await face.advance(0)
    assert contents(await face.receive("q-dlq", most=3)) == ["a", "b", "c"]


async def test_f2_f7_the_dead_letters_of_the_longest_name_can_be_read(face) -> None:
    queue = "q" * 64
    sent = await face.send(queue=queue)
    await fail(face, queue)
    dead = await face.poll(queue + "-dlq")
    assert dead.id == sent.id
    assert await face.counts(queue + "-dlq") == QueueCounts(processing=1)
    await face.ack_by_id(dead.id, dead.receipt, queue + "-dlq")
    assert await face.counts(queue + "-dlq") == NOBODY
