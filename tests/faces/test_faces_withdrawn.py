"""Whoever has a message hears at once that somebody removed it. Time stands still unless a test moves it."""

import pytest
import trio

from forq_trio import InvalidQueueName, MessageInFlight, OutOfRange
from forq_trio.model.messages.types import QueueCounts
from support.actors import T0, all_idle

from .face import Face
from .words import SECOND


def named(answer) -> list[tuple[str, str | None, str | None]]:
    return [(each.queue, each.message_id, each.how) for each in answer.messages]


class Waiting:
    """Somebody who waits for withdrawn messages."""

    def __init__(self, face: Face, nursery: trio.Nursery, *queues: str, after: int = T0 - 1) -> None:
        self.answer = None
        self.done = trio.Event()
        nursery.start_soon(self._wait, face, queues or ("q",), after)

    async def _wait(self, face: Face, queues: tuple[str, ...], after: int) -> None:
        self.answer = await face.methods.withdrawn(queues, after)
        self.done.set()


async def test_who_waits_is_told_at_once_and_asks_on_from_there(face, nursery) -> None:
    sent = await face.send()
    held = await face.take()
    waiting = Waiting(face, nursery)
    await all_idle()
    with pytest.raises(MessageInFlight):
        await face.methods.cancel("q", sent.id)
    await face.methods.cancel("q", sent.id, running=True, reason="called off")
    await waiting.done.wait()
    assert named(waiting.answer) == [("q", sent.id, "cancelled")]
    assert waiting.answer.messages[0].reason == "called off"
    assert await face.ack(held.receipt) == [False]
    later = await face.methods.withdrawn(["q"], waiting.answer.position, wait_ms=0)
    assert (later.messages, later.position) == ([], waiting.answer.position)
    assert await face.counts() == QueueCounts()


async def test_what_happened_before_is_told_without_a_wait(face) -> None:
    sent = await face.send()
    await face.take()
    await face.purge()
    answer = await face.methods.withdrawn(["other", "q"], T0 - 1)
    assert named(answer) == [("q", sent.id, "deleted")]


async def test_several_queues_have_one_wait(face, nursery) -> None:
    for queue in ("a", "b", "c"):
        await face.send(queue=queue)
    held = [await face.take(queue) for queue in ("a", "b", "c")]
    waiting, other = Waiting(face, nursery, "a", "b"), Waiting(face, nursery, "a")
    await all_idle()
    await face.methods.cancel("c", held[2].id, running=True)
    await face.methods.cancel("b", held[1].id, running=True)
    await waiting.done.wait()
    assert named(waiting.answer) == [("b", held[1].id, "cancelled")]
    assert other.answer is None
    await face.methods.cancel("a", held[0].id, running=True)
    await other.done.wait()
    assert named(other.answer) == [("a", held[0].id, "cancelled")]


async def test_a_wait_ends_with_nothing(face, nursery) -> None:
    waiting = Waiting(face, nursery)
    await all_idle()
    await face.advance(29 * SECOND)
    assert waiting.answer is None
    await face.advance(SECOND)
    await waiting.done.wait()
    assert (waiting.answer.messages, waiting.answer.position) == ([], T0 - 1)


async def test_what_is_wrong_is_refused(face) -> None:
    for queues, after, wait_ms, error in (
        ([], 0, 0, OutOfRange),
        ([f"q{number}" for number in range(65)], 0, 0, OutOfRange),
        (["no such/name"], 0, 0, InvalidQueueName),
        (["q"], -1, 0, OutOfRange),
        (["q"], T0, 30_001, OutOfRange),
    ):
        with pytest.raises(error):
            await face.methods.withdrawn(queues, after, wait_ms=wait_ms)
    with pytest.raises(TypeError, match="list of texts"):
        await face.methods.withdrawn("q", 0)
    assert (await face.methods.withdrawn(["q"], T0, wait_ms=0)).messages == []


async def test_a_reason_has_a_bound(face) -> None:
    sent = await face.send()
    with pytest.raises(OutOfRange):
        await face.methods.cancel("q", sent.id, running=True, reason="x" * 1_025)
    await face.methods.cancel("q", sent.id, running=True, reason="x" * 1_024)
    assert await face.counts() == QueueCounts()
