"""A page of an outbox, and what others wait for beside it."""

from collections.abc import AsyncIterator

import pytest
import trio

from forq_trio import Broker, NewMessage, OutboxPosition, RelayedMessage
from forq_trio.jobs.compaction import Compaction
from forq_trio.model import limits
from forq_trio.model.commands import RelayMessages, Work
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.writer_actor import WriterActor
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, TrioClock, elapse, running_writer
from support.words import send

LARGE = limits.CONTENT_BYTES_MAX // 2


@pytest.fixture
def engine() -> ObservedEngine:
    return ObservedEngine(MemoryEngine(EngineSettings()))


@pytest.fixture
async def writer(engine, autojump_clock) -> AsyncIterator[WriterActor]:
    async with running_writer(engine) as writer:
        yield writer


@pytest.fixture
def relays(engine, writer) -> Broker:
    clock = TrioClock()
    return Broker(
        writer, ReaderPool(engine.open_reader, size=1), clock, Compaction(writer, clock, engine.facts)
    )


def page(count: int, size: int) -> list[RelayedMessage]:
    return [RelayedMessage(id, "q", NewMessage("x" * size)) for id in range(1, count + 1)]


def relayed(engine: ObservedEngine) -> list[int]:
    """How many messages of an outbox each batch had."""
    counts = [
        sum(len(each.messages) for each in batch.commands if isinstance(each, RelayMessages))
        for batch in engine.batches
    ]
    return [count for count in counts if count]


@pytest.mark.parametrize(
    ("messages", "parts"),
    [(page(8, LARGE), [2, 2, 2, 2]), (page(1_000, 1), [250] * 4), (page(3, 2 * LARGE), [1, 1, 1])],
)
async def test_beside_others_it_is_several_commits_and_others_pass(engine, writer, relays, messages, parts):
    engine.after_answers = lambda: writer.post(send(queue="other"))
    await writer.execute(send(queue="other"))
    engine.batches.clear()
    assert await relays.relay_outbox("o", 0, messages) == OutboxPosition(len(messages))
    engine.after_answers = lambda: None
    assert relayed(engine) == parts
    alone = [len(batch.commands) for batch in engine.batches]
    assert alone.count(1) >= len(parts) - 1  # between two parts a batch of others
    assert writer.snapshot().counts["q"].ready == len(messages)


async def test_alone_it_is_one_commit(engine, writer, relays):
    await elapse(limits.STEP_SHARE_SECONDS)
    assert await relays.relay_outbox("o", 0, page(8, LARGE)) == OutboxPosition(8)
    assert await relays.relay_outbox("o", 8, []) == OutboxPosition(8)
    assert relayed(engine) == [8]


async def test_a_part_that_is_refused_ends_it(engine, writer, relays):
    await relays.configure("q", max_messages=5)
    await writer.execute(send(queue="other"))
    outcome = await relays.relay_outbox("o", 0, page(8, LARGE))
    assert (outcome.position, outcome.refused.id) == (5, 6)


async def test_two_relays_of_one_outbox_store_each_message_once(engine, writer, relays):
    await writer.execute(send(queue="other"))
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(relays.relay_outbox, "o", 0, page(8, LARGE))
    assert await relays.outbox_position("o") == OutboxPosition(8)
    assert writer.snapshot().counts["q"].ready == 8


def test_what_is_sent_now_and_then_waits_for_no_turn():
    def work(count: int, size: int) -> Work:
        return RelayMessages("o", 0, tuple(page(count, size))).work

    assert {work(1, 1), work(50, 1), work(0, 0)} == {Work.SHORT}
    assert {work(51, 1), work(1, 2 * LARGE)} == {Work.LONG}
