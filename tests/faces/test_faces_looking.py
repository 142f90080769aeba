"""What one sees: views without side effects, and counts that always agree with the messages."""

from collections import Counter
from contextlib import suppress

from forq_trio import ForqError
from forq_trio.model.messages.types import QueueCounts
from support.actors import T0, TrioClock

from .face import MESSAGE_ID_INVALID, NOBODY, NOT_FOUND, Face
from .words import SECOND, attempt_all_but_one, code_of, contents, fail


async def test_looking_changes_nothing(face) -> None:
    for content in "abc":
        await face.send(content)
    held = await face.take()
    sent = await face.send("later", process_after=T0 + SECOND)
    seen = [await everything_one_sees(face, held.id, sent.id) for _ in range(3)]
    assert seen[0] == seen[1] == seen[2]
    assert contents(seen[0][-1]) == ["b", "c"]
    rest = await face.receive(most=10)
    assert [(each.content, each.attempts) for each in rest] == [("b", 1), ("c", 1)]
    assert await face.ack(held.receipt) == [True]


async def everything_one_sees(face: Face, *message_ids: str) -> list:
    return [
        *[await face.message(message_id) for message_id in message_ids],
        await face.counts(),
        await face.peek(limit=1),
        await face.peek(),
    ]


async def test_a_message_through_its_life(face) -> None:
    sent = await face.send("life", process_after=T0 + 10)
    view = await face.message(sent.id)
    assert (view.status, view.attempts, view.process_after) == ("delayed", 0, T0 + 10)
    await face.advance(10)
    assert (await face.message(sent.id)).status == "ready"
    delivery = await face.take()
    view = await face.message(sent.id)
    assert (view.status, view.attempts, view.lease_until) == ("processing", 1, delivery.lease_until)
    assert view.processing_started_at == T0 + 10
    await face.nack(delivery.receipt, reason="not now")
    view = await face.message(sent.id)
    assert (view.status, view.process_after, view.last_error) == ("delayed", T0 + 10 + SECOND, "not now")
    assert (view.lease_until, view.processing_started_at, view.updated_at) == (None, None, T0 + 10)
    assert (view.received_at, view.sequence, view.queue) == (T0, sent.sequence, "q")


async def test_a_message_is_looked_up_in_its_own_queue(face) -> None:
    sent = await face.send()
    assert await code_of(face.message(sent.id, "other")) == NOT_FOUND
    assert await code_of(face.message("01890a5d-ac96-774b-bcce-b302099a8057")) == NOT_FOUND
    assert await code_of(face.message("1")) == MESSAGE_ID_INVALID


async def test_a_queue_nobody_used_is_empty(face) -> None:
    assert await face.counts("unknown") == NOBODY
    assert await face.peek("unknown") == []
    assert await face.has_nothing("unknown")


async def test_counts_of_each_status(face) -> None:
    for content in "abcd":
        await face.send(content)
    a, b, _ = await face.receive(most=3)
    await face.nack(a.receipt)
    assert await face.counts() == QueueCounts(ready=1, processing=2, delayed=1)
    await face.ack(b.receipt)
    assert await face.counts() == QueueCounts(ready=1, processing=1, delayed=1)
    await face.advance(SECOND)
    assert await face.counts() == QueueCounts(ready=2, processing=1)
    await face.send("poison", "p")
    await fail(face, "p")
    await face.advance(0)
    assert (await face.counts("p"), await face.counts("p-dlq")) == (NOBODY, QueueCounts(ready=1))


STEPS = ["send", "receive", "receive", "ack", "nack", "nack", "nack", "release", "extend", "time"]


async def test_counts_agree_with_the_messages_whatever_happens(face, rng) -> None:
    """Random consumers of a queue and its dead letters; after every step both queues are counted by hand.

    At the start there is a dead letter, and a message with one attempt left.
    """
    sent = [(await face.send()).id]
    await fail(face)
    sent.append((await face.send()).id)
    await attempt_all_but_one(face)
    held: list[tuple[str, str]] = []
    for _ in range(50):
        match rng.choice(STEPS):
            case "send":
                due = TrioClock().now_ms() + rng.choice([0, 1, SECOND, 7 * SECOND])
                sent.append((await face.send(process_after=due)).id)
            case "receive":
                queue = rng.choice(["q", "q", "q-dlq"])
                received = await face.receive(queue, most=rng.randint(1, 3), lease_ms=5 * SECOND)
                held += [(queue, delivery.receipt) for delivery in received]
            case "time":
                await face.advance(rng.choice([1, SECOND, 6 * SECOND]))
            case verb if held:
                queue, receipt = held.pop(rng.randrange(len(held)))
                more = {"nack": {"delay_ms": rng.choice([0, 0, SECOND])}, "extend": {"lease_ms": 0}}
                await getattr(face, verb)(receipt, queue=queue, **more.get(verb, {}))
        await face.advance(0)
        for queue in ("q", "q-dlq"):
            assert await face.counts(queue) == await counted_by_hand(face, queue, sent)


async def counted_by_hand(face: Face, queue: str, message_ids: list[str]) -> QueueCounts:
    statuses: Counter[str] = Counter()
    for message_id in message_ids:
        with suppress(ForqError):
            statuses[(await face.message(message_id, queue)).status] += 1
    return QueueCounts(**statuses)
