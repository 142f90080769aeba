"""Publications through the broker: how long one waits, and what it tells."""

import pytest

from forq_trio.broker.broker import Broker
from forq_trio.jobs.compaction import Compaction
from forq_trio.model import limits
from forq_trio.model.errors import PublicationUnfinished, StorageFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.bodies import Publication
from forq_trio.model.publishing.types import Stage
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, TrioClock, running_writer

STAGES = [Stage("q", "s", 1)]


async def test_while_nothing_can_be_stored_a_publication_says_so_and_a_repeated_one_waits_on(autojump_clock):
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with running_writer(engine) as writer:
        clock = TrioClock()
        readers = ReaderPool(engine.open_reader, size=1)
        broker = Broker(writer, readers, clock, Compaction(writer, clock, engine.facts))
        await broker.stage("q", "s", 0, [NewMessage("x")])

        def fill_the_disk() -> None:
            writer.storage.sends_refused = True

        engine.after_answers = fill_the_disk
        with pytest.raises(PublicationUnfinished):
            await broker.publish("app", 1, STAGES)
        with pytest.raises(StorageFull):
            await broker.publish("app", 1, STAGES)
        engine.after_answers = lambda: None
        writer.storage.sends_refused = False
        assert await broker.publish("app", 1, STAGES) == Publication(False)
        assert writer.snapshot().counts["q"].ready == 1


async def test_a_publication_that_takes_long_is_moving(broker, monkeypatch):
    await broker.stage("q", "s", 0, [NewMessage("x")] * 3)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "PUBLISH_WAIT_SECONDS", 0.0)
        assert await broker.publish("app", 1, STAGES, seconds=0.0) == Publication(True, 3, moving=True)
    assert await broker.publish("app", 1, STAGES) == Publication(False)
    assert (await broker.queue_stats("q")).ready == 3
