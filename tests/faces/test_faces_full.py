"""Queues with bounds: what a send to a full one does."""

import pytest

from forq_trio import NewMessage
from forq_trio.model.messages.types import QueueCounts

from .face import NOBODY, QUEUE_FULL
from .words import code_of, contents


async def test_what_there_is_no_room_for_is_refused(face) -> None:
    await face.configure(max_messages=2)
    await face.send("a")
    held = await face.take()
    await face.send("b", delay_ms=1)
    assert await code_of(face.send("c")) == QUEUE_FULL
    assert await code_of(face.send_many([NewMessage("c")])) == QUEUE_FULL
    await face.send("x", "other")
    await face.ack(held.receipt)
    await face.send("c")
    assert await face.counts() == QueueCounts(ready=1, delayed=1)


async def test_a_batch_is_stored_whole_or_not_at_all(face) -> None:
    await face.configure(max_messages=3)
    await face.send("a")
    assert await code_of(face.send_many([NewMessage(content) for content in "bcd"])) == QUEUE_FULL
    await face.send_many([NewMessage(content) for content in "bc"])
    assert contents(await face.peek()) == ["a", "b", "c"]


async def test_bytes_are_those_of_contents_and_attributes(face) -> None:
    await face.configure(max_bytes=10)
    await face.send("ü")
    await face.send("abc", attributes={"k": "ü"})
    assert await face.size() == 8
    assert await code_of(face.send("abc")) == QUEUE_FULL
    await face.send("ab")
    assert await face.size() == 10
    await face.ack((await face.take()).receipt)
    assert await face.size() == 8


@pytest.mark.parametrize("overflow", ["reject", "drop_oldest", "dead_letter"])
async def test_a_message_that_never_fits(face, overflow) -> None:
    await face.configure(max_bytes=3, overflow=overflow)
    await face.send("abc")
    assert await code_of(face.send("abcd")) == QUEUE_FULL
    assert contents(await face.peek()) == ["abc"]


@pytest.mark.parametrize(("overflow", "dead"), [("drop_oldest", []), ("dead_letter", ["low", "old"])])
async def test_making_room(face, overflow, dead) -> None:
    """With the oldest ready message of the lowest priority."""
    await face.configure(max_messages=3, overflow=overflow)
    for content, priority in [("old", 100), ("low", 5), ("new", 100)]:
        await face.send(content, priority=priority)
    await face.send("high", priority=500)
    await face.send("newest")
    assert contents(await face.peek()) == ["high", "new", "newest"]
    gone = await face.peek("q-dlq")
    assert sorted(contents(gone)) == dead
    assert {letter.failure_reason for letter in gone} <= {"queue_full"}
    assert {letter.source_queue for letter in gone} <= {"q"}


@pytest.mark.parametrize("overflow", ["drop_oldest", "dead_letter"])
async def test_room_is_made_with_ready_messages_only(face, overflow) -> None:
    await face.configure(max_messages=2, overflow=overflow)
    await face.send("in process")
    await face.take()
    await face.send("later", delay_ms=1_000)
    assert await code_of(face.send("more")) == QUEUE_FULL
    assert await face.counts("q-dlq") == NOBODY


async def test_room_for_a_batch(face) -> None:
    await face.configure(max_messages=4, overflow="drop_oldest")
    await face.send_many([NewMessage(content) for content in "abcd"])
    await face.send_many([NewMessage(content) for content in "efg"])
    assert contents(await face.peek()) == ["d", "e", "f", "g"]
    assert await code_of(face.send_many([NewMessage("x")] * 5)) == QUEUE_FULL


async def test_a_bound_below_what_is_there_stops_sends_only(face) -> None:
    await face.send("a")
    await face.send("b")
    await face.configure(max_messages=1)
    assert await code_of(face.send("c")) == QUEUE_FULL
    assert contents(await face.receive(most=2)) == ["a", "b"]
