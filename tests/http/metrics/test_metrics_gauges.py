"""The gauges that the 30 s job refreshes: from memory, and the age of the oldest message from the database.

Real threads on the real clock; the messages' clock stands still until it is set.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.jobs.compaction import Compaction
from forq_trio.jobs.metrics import QueueGauges
from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.monitor.ages import Ages
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.reader import Reader
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from support.actors import T0, elapse, on_the_loop
from support.exposition import of_queue, own_samples

AGE = "forq_queue_oldest_claimable_age_seconds"
DEAD = "forq_queue_dead_letters"


class SetClock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = T0

    def now_ms(self) -> int:
        return self.ms


class CountedReads(ReaderPool):
    """Counts the reads; the next ones fail if a test says so."""

    reads = 0
    failures = 0

    async def run(self, read: Callable[[Reader], Any]) -> Any:
        self.reads += 1
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable
        return await super().run(read)


@dataclass
class Queues:
    broker: Broker
    readers: CountedReads
    counters: Counters
    clock: SetClock
    gauges: QueueGauges

    async def refreshed(self, name: str) -> dict[str, float]:
        """The values of one gauge by queue, after a refresh."""
        await self.gauges.refresh()
        return self.seen(name)

    def seen(self, name: str) -> dict[str, float]:
        """The values of one gauge by queue, as of the last refresh."""
        return {
            dict(labels)["queue_name"]: value
            for (sample, labels), value in own_samples(self.counters, self.gauges.families).items()
            if sample == name
        }


@pytest.fixture
async def queues(engine) -> AsyncIterator[Queues]:
    async with open_queues(engine) as queues:
        yield queues


@asynccontextmanager
async def open_queues(engine) -> AsyncIterator[Queues]:
    clock, counters = SetClock(), Counters()
    writer = WriterActor(Store(engine, on_the_loop()), clock, counters)
    readers = CountedReads(engine.open_reader, size=2)
    broker = Broker(writer, readers, clock, Compaction(writer, clock, engine.facts))
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        gauges = QueueGauges(broker.known, Ages(broker.known, readers, counters, clock), counters)
        yield Queues(broker, readers, counters, clock, gauges)
        readers.close()
        writer.stop()


async def test_the_age_of_the_oldest_message_that_can_be_claimed(queues: Queues) -> None:
    await queues.broker.produce("q", "old")
    queues.clock.ms += 40_000
    await queues.broker.produce("q", "new")
    await queues.broker.produce("delayed", "x", delay_ms=1_000)
    queues.clock.ms += 500
    assert await queues.refreshed(AGE) == {"q": 40.5}
    (delivery,) = await queues.broker.receive("q", wait_ms=0)
    assert await queues.refreshed(AGE) == {"q": 0.5}
    await queues.broker.ack("q", [delivery.receipt])
    await queues.broker.receive("q", wait_ms=0)
    assert await queues.refreshed(AGE) == {}


async def test_the_time_a_message_was_delayed_does_not_count(queues: Queues) -> None:
    await queues.broker.produce("q", "x", delay_ms=60_000)
    queues.clock.ms += 62_000
    await queues.broker.healthcheck()
    assert await queues.refreshed(AGE) == {"q": 2}


async def test_the_time_until_another_attempt_does_not_count(queues: Queues) -> None:
    await queues.broker.produce("q", "x")
    (delivery,) = await queues.broker.receive("q", wait_ms=0)
    await queues.broker.nack("q", [delivery.receipt], delay_ms=10_000)
    queues.clock.ms += 11_000
    await queues.broker.healthcheck()
    assert await queues.refreshed(AGE) == {"q": 1}


async def test_an_old_message_of_low_priority_is_the_oldest(queues: Queues) -> None:
    await queues.broker.produce("q", "starves", priority=1)
    queues.clock.ms += 7_000
    await queues.broker.produce("q", "goes first", priority=900)
    assert await queues.refreshed(AGE) == {"q": 7}


async def test_ages_grow_without_a_read_while_nothing_is_committed(queues: Queues) -> None:
    await queues.broker.produce("q", "x")
    assert await queues.refreshed(AGE) == {"q": 0}
    reads = queues.readers.reads
    queues.clock.ms += 30_000
    assert await queues.refreshed(AGE) == {"q": 30}
    assert queues.readers.reads == reads
    await queues.broker.produce("q", "y")
    await queues.gauges.refresh()
    assert queues.readers.reads == reads + 1


async def test_a_clock_that_was_set_back_makes_no_negative_age(queues: Queues) -> None:
    await queues.broker.produce("q", "x")
    queues.clock.ms -= 5_000
    assert await queues.refreshed(AGE) == {"q": 0}


async def test_queues_without_ready_messages_are_not_read(queues: Queues) -> None:
    await queues.broker.produce("q", "x", delay_ms=60_000)
    await queues.gauges.refresh()
    assert queues.readers.reads == 0


async def test_a_scrape_reads_nothing(queues: Queues) -> None:
    await queues.broker.produce("q", "x")
    await queues.gauges.refresh()
    reads = queues.readers.reads
    await queues.broker.produce("q", "y")
    queues.clock.ms += 60_000
    assert queues.seen(AGE) == {"q": 0}
    assert queues.readers.reads == reads


async def test_many_queues_are_read_a_few_at_a_time(queues: Queues) -> None:
    many = limits.METRIC_QUEUES_READ_MAX + 1
    await queues.broker.produce_across([(f"q{number}", NewMessage("x")) for number in range(many)])
    assert len(await queues.refreshed(AGE)) == many
    assert queues.readers.reads == 2


async def test_a_read_that_fails_leaves_the_ages_and_is_tried_again(queues: Queues) -> None:
    await queues.broker.produce("q", "x")
    await queues.gauges.refresh()
    queues.clock.ms += 1_000
    await queues.broker.produce("q", "y")
    queues.readers.failures = 1
    with pytest.raises(StorageUnavailable):
        await queues.gauges.refresh()
    assert queues.seen(AGE) == {"q": 0}
    assert queues.seen("forq_queue_depth") == {"q": 2}
    assert await queues.refreshed(AGE) == {"q": 1}


async def test_dead_letters_are_those_of_the_queue_that_the_settings_name(queues: Queues) -> None:
    broker = queues.broker
    for queue in ("plain", "named", "without"):
        await broker.produce(queue, "x")
    await broker.configure("named", dead_letter_queue="buried")
    await broker.configure("without", dead_letter_queue="")
    assert await queues.refreshed(DEAD) == {"plain": 0, "named": 0}
    for queue in ("plain", "named"):
        for _ in range(limits.ATTEMPTS_MAX_DEFAULT):
            (delivery,) = await broker.receive(queue, wait_ms=0)
            await broker.nack(queue, [delivery.receipt], delay_ms=0)
    dead = await queues.refreshed(DEAD)
    assert {queue: dead.get(queue) for queue in ("plain", "named", "without", "plain-dlq")} == {
        "plain": 1,
        "named": 1,
        "without": None,
        "plain-dlq": None,
    }
    states = own_samples(queues.counters)
    assert states["forq_queue_messages", of_queue("plain-dlq", state="ready")] == 1


async def test_every_state_has_its_gauge(queues: Queues) -> None:
    broker = queues.broker
    await broker.produce("q", "delayed", delay_ms=60_000)
    await broker.configure("q", group_in_flight_max=1)
    for _ in range(3):
        await broker.produce("q", "x", group="g")
    await broker.receive("q", max_messages=1, wait_ms=0)
    await broker.receive("q", max_messages=1, wait_ms=0)
    await broker.produce("q", "y")
    await queues.gauges.refresh()
    samples = own_samples(queues.counters)
    states = {
        state: samples["forq_queue_messages", of_queue("q", state=state)]
        for state in ("ready", "delayed", "processing", "held", "failed")
    }
    assert states == {"ready": 1, "delayed": 1, "processing": 1, "held": 2, "failed": 0}


async def test_what_applications_sent_is_counted_and_how_long_the_first_waits(autojump_clock, engine) -> None:
    figures = [(2, 7, 30), (2, 9, 30), (2, 5, 33), (0, 0, None)]

    async def read_sent() -> tuple[int, int, int | None]:
        return figures.pop(0)

    async with open_queues(engine) as queues:
        ages = Ages(queues.broker.known, queues.readers, queues.counters, queues.clock)
        gauges = QueueGauges(queues.broker.known, ages, queues.counters, read_sent)
        seen = []
        while figures:
            await gauges.refresh()
            await elapse(30)
            samples = own_samples(queues.counters, gauges.sent_families)
            seen.append(
                [samples[f"forq_sent_{name}", ()] for name in ("set_aside", "waiting", "waiting_seconds")]
            )
        assert seen == [[2, 7, 30], [2, 9, 60], [2, 5, 30], [0, 0, 0]]
