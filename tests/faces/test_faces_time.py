"""What falls due by time alone: delays (contract F1, F2) and times to live (F7)."""

from forq_trio.model.messages.types import QueueCounts
from support.actors import T0

from .face import NOBODY, NOT_FOUND
from .words import DAY, SECOND, code_of, contents

TTL = DAY
DLQ_TTL = 7 * DAY


async def test_f1_a_delayed_message_comes_exactly_on_time(face) -> None:
    sent = await face.send(process_after=T0 + 5 * SECOND)
    assert await face.counts() == QueueCounts(delayed=1)
    await face.advance(5 * SECOND - 1)
    assert (await face.message(sent.id)).status == "delayed"
    assert await face.has_nothing()
    await face.advance(1)
    assert await face.counts() == QueueCounts(ready=1)
    assert (await face.take()).attempts == 1


async def test_f1_within_the_grace_a_message_is_due_at_once(face) -> None:
    await face.send(process_after=T0 - 10 * SECOND)
    assert await face.counts() == QueueCounts(ready=1)


async def test_f3_each_delay_ends_at_its_own_time(face) -> None:
    for delay in (30, 10, 20):
        await face.send(str(delay), process_after=T0 + delay)
    for delay in (10, 20, 30):
        await face.advance(10)
        assert contents(await face.receive(most=10)) == [str(delay)]


async def test_f7_an_expired_message_becomes_a_dead_letter(face) -> None:
    sent = await face.send("old")
    await face.advance(TTL - 1)
    assert await face.counts() == QueueCounts(ready=1)
    await face.advance(1)
    assert await face.counts() == NOBODY
    dead = await face.message(sent.id, "q-dlq")
    assert (dead.status, dead.attempts, dead.failure_reason) == ("ready", 0, "message_expired")
    assert (dead.received_at, dead.source_queue, dead.content) == (T0, "q", "old")
    assert await face.has_nothing()
    assert (await face.take("q-dlq")).id == sent.id


async def test_f7_a_dead_letter_that_expires_is_deleted(face) -> None:
    sent = await face.send()
    await face.advance(TTL)
    await face.advance(DLQ_TTL - 1)
    assert (await face.message(sent.id, "q-dlq")).status == "ready"
    await face.advance(1)
    assert await code_of(face.message(sent.id, "q-dlq")) == NOT_FOUND
    assert await face.counts("q-dlq") == NOBODY


async def test_f2_a_delayed_message_starts_to_live_when_it_is_due(face) -> None:
    sent = await face.send(process_after=T0 + 30 * DAY)
    await face.advance(30 * DAY + TTL - 1)
    assert (await face.message(sent.id)).status == "ready"
    await face.advance(1)
    assert (await face.message(sent.id, "q-dlq")).failure_reason == "message_expired"


async def test_f7_expiry_leaves_alone_what_somebody_holds(face) -> None:
    await face.send()
    await face.advance(TTL - 1)
    delivery = await face.take()
    await face.advance(2)
    assert (await face.message(delivery.id)).status == "processing"
    assert await face.ack(delivery.receipt) == [True]
