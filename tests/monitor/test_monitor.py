"""The monitor over a running queue on simulated time: what it knows, what it costs, and that it stays bounded."""

import gc
import sys

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.commands import Claim, Nack, Produce, Purge
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.bodies import QueueHealth
from forq_trio.model.queues.setting_values import Rate
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.history import Range
from forq_trio.monitor.monitor import Monitor
from forq_trio.monitor.watched import Metric, Watched
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings, Event
from forq_trio.system import System, open_system
from forq_trio.telemetry.counters import Counters
from oracle.engine import MemoryEngine
from support import batches
from support.actors import TrioClock, elapse, on_the_loop
from support.forq_api import Seconds, SetClock


def opened(engine: MemoryEngine | None = None, *, monitored: bool = True):
    engine = engine or MemoryEngine(EngineSettings())
    return open_system(engine, TrioClock(), policy=on_the_loop(), monitored=monitored)


async def fail(system: System, queue: str) -> None:
    """Send a message that becomes a dead letter; the queue has one attempt."""
    await system.broker.produce(queue, "x")
    (delivery,) = await system.broker.receive(queue, wait_ms=0)
    await system.broker.nack(queue, [delivery.receipt])


async def test_rates_counts_and_gaps(autojump_clock) -> None:
    async with opened() as system:
        await elapse(60)
        for _ in range(20):
            await system.broker.produce("q", "x")
        await elapse(10.5)
        history = system.monitor.history
        sent = history.queue("q", Metric.SENT, Range.TEN_MINUTES)
        assert (len(sent.values), sent.step_ms) == (120, 5_000)
        assert sum(value * 5 for value in sent.values if value is not None) == pytest.approx(20, rel=0.3)
        assert sent.values[0] is None
        total = history.total(Metric.SENT, Range.TEN_MINUTES)
        assert sum(value or 0 for value in total.values) * 5 == pytest.approx(20, rel=0.3)
        assert 0 < history.total(Metric.READY, Range.DAY).values[-1] < 20
        assert history.sparkline("q")[-1] == 20
        assert len(history.sparkline("q")) == 60
        assert set(history.queue("unknown", Metric.SENT, Range.DAY).values) == {None}
        last = history.queue("q", Metric.READY, Range.TEN_MINUTES)
        end_ms = last.start_ms + 120 * last.step_ms
        assert abs(end_ms - TrioClock().now_ms()) <= 2 * last.step_ms
        assert system.monitor.now("q").sent_total == 20


async def test_how_many_messages_wait_for_the_rate(autojump_clock) -> None:
    async with opened() as system:
        await system.broker.configure("q", rate=Rate(4, 600_000))
        for _ in range(10):
            await system.broker.produce("q", "x")
        await elapse(10)
        before = system.monitor.history.queue("q", Metric.HELD_BY_RATE, Range.TEN_MINUTES)
        for _ in range(3):
            await system.broker.receive("q", wait_ms=0)
        await elapse(10)
        held = system.monitor.history.queue("q", Metric.HELD_BY_RATE, Range.TEN_MINUTES)
        assert (before.values[-1], held.values[-1]) == (6, 6)
        await system.broker.receive("q", wait_ms=0)
        await system.broker.produce("q", "x")
        await elapse(10)
        held = system.monitor.history.queue("q", Metric.HELD_BY_RATE, Range.TEN_MINUTES)
        assert held.values[-1] == 7
        await system.broker.configure("q", rate=None)
        await elapse(10)
        held = system.monitor.history.queue("q", Metric.HELD_BY_RATE, Range.TEN_MINUTES)
        assert held.values[-1] == 0


def test_of_a_queue_that_was_not_looked_at_yet_nothing_is_known() -> None:
    assert Watched("q", Counters(), 0.0, 0).marks.at(60) == (0, 0)


async def test_the_first_dead_letters_need_attention(autojump_clock) -> None:
    async with opened() as system:
        await system.broker.configure("q", max_attempts=1)
        await elapse(60)
        await fail(system, "q")
        await elapse(20)
        assert system.monitor.health("q-dlq").verdict == "New in the last minute"
        await elapse(320)
        health = system.monitor.health("q-dlq")
        assert (health.level, health.verdict) == ("attention", "1 more in the last hour")
        assert system.monitor.grown("q-dlq") == 1
        await elapse(3_700)
        assert system.monitor.health("q-dlq").verdict == "Nothing new for 1 h"


NOTHING_NEW = "Nothing new since the start"


def with_a_dead_letter() -> MemoryEngine:
    """An engine as an earlier server left it: with one dead letter of `q`. Messages have one attempt."""
    engine = MemoryEngine(EngineSettings(attempts_max=1))
    batches.do(engine, Produce("q", NewMessage("x")))
    (delivery,) = batches.do(engine, Claim("q", 1, 60_000))
    batches.do(engine, Nack("q", (Receipt.parse(delivery.receipt),)))
    return engine


async def test_dead_letters_of_before_the_start_are_not_new(autojump_clock) -> None:
    async with opened(with_a_dead_letter()) as system:
        await elapse(60)
        assert system.monitor.health("q-dlq").verdict == NOTHING_NEW
        assert system.monitor.grown("q-dlq") == 0


@pytest.mark.parametrize("started", [0, 1, 7, 61])
async def test_a_dead_letter_is_new_from_its_first_moment(autojump_clock, started: int) -> None:
    """Also one that comes before the first sample, and while the verdict on an unchanged queue rests."""
    async with opened(with_a_dead_letter()) as system:
        await elapse(started)
        await fail(system, "q")
        for _ in range(55):
            assert system.monitor.health("q-dlq").verdict != NOTHING_NEW
            await elapse(1)
        assert system.monitor.health("q-dlq").verdict == "New in the last minute"
        assert system.monitor.grown("q-dlq") == 1


async def test_the_first_dead_letter_of_an_empty_queue_is_new_from_its_first_moment(autojump_clock) -> None:
    engine = with_a_dead_letter()
    batches.do(engine, Purge("q-dlq"))
    async with opened(engine) as system:
        await elapse(70)
        assert system.monitor.health("q-dlq").verdict == NOTHING_NEW
        await fail(system, "q")
        assert system.monitor.health("q-dlq").verdict == "New in the last minute"


async def test_a_dead_letter_is_new_if_another_one_goes_at_the_same_time(autojump_clock) -> None:
    async with opened(with_a_dead_letter()) as system:
        await elapse(60)
        assert system.monitor.health("q-dlq").verdict == NOTHING_NEW
        (dead,) = await system.broker.receive("q-dlq", wait_ms=0)
        await system.broker.ack("q-dlq", [dead.receipt])
        await fail(system, "q")
        assert system.broker.known.counts_of("q-dlq").total == 1
        assert system.monitor.health("q-dlq").verdict == "New in the last minute"
        await elapse(10)
        assert system.monitor.health("q-dlq").verdict == "New in the last minute"


async def test_of_all_queues_together_dead_letters_are_neither_ready_nor_the_oldest() -> None:
    """On the real clock, because reads run in threads; the monitor's time is what the test says."""
    engine, clock, seconds = MemoryEngine(EngineSettings()), SetClock(), Seconds()
    async with open_system(engine, clock, policy=on_the_loop()) as system:
        readers = ReaderPool(engine.open_reader, size=1)
        ages = Ages(system.broker.known, readers, system.counters, clock)
        monitor = Monitor(system.broker.known, system.counters, ages, seconds, clock)
        await system.broker.configure("q", max_attempts=1)
        await system.broker.configure("r", max_attempts=1, dead_letter_queue="failures")
        for queue in ("q", "r"):
            await fail(system, queue)
        clock.ms += 60_000
        await system.broker.produce("q", "x")
        clock.ms += 3_000
        await monitor.refresh_ages(["q", "q-dlq", "failures"], 0)
        assert [monitor.oldest_age_ms(queue) for queue in ("q", "q-dlq", "failures")] == [
            3_000,
            63_000,
            63_000,
        ]
        for _ in range(15):
            clock.ms += 1_000
            seconds.value += 1
            monitor.sample()
        assert monitor.history.total(Metric.READY, Range.TEN_MINUTES).values[-1] == 1
        assert 3 < monitor.history.total(Metric.OLDEST_SECONDS, Range.TEN_MINUTES).values[-1] <= 18
        readers.close()


async def test_a_backlog_becomes_broken_and_a_consumer_mends_it() -> None:
    """On the real clock, because reads run in threads; the monitor's time is what the test says."""
    engine, clock, seconds = MemoryEngine(EngineSettings()), SetClock(), Seconds()
    async with open_system(engine, clock, policy=on_the_loop()) as system:
        readers = ReaderPool(engine.open_reader, size=1)
        ages = Ages(system.broker.known, readers, system.counters, clock)
        monitor = Monitor(system.broker.known, system.counters, ages, seconds, clock)

        async def watch(duration: int) -> QueueHealth:
            for second in range(duration):
                clock.ms += 1_000
                seconds.value += 1
                monitor.sample()
                if second % 30 == 0:
                    await monitor.refresh_ages(["q"], 0)
            return monitor.health("q")

        for _ in range(3):
            await system.broker.produce("q", "x")
        assert (await watch(40)).verdict == "Healthy"
        health = await watch(160)
        assert (health.level, health.verdict) == ("broken", "Backlog and no consumers")
        assert monitor.oldest_age_ms("q") == 200_000
        for _ in range(3):
            (delivery,) = await system.broker.receive("q", wait_ms=0)
            await system.broker.ack("q", [delivery.receipt])
        assert (await watch(100)).level == "fine"
        await system.broker.pause("q")
        assert (await watch(70)).verdict == "Paused 1 min ago"
        readers.close()


async def test_nacks_of_one_reason_need_attention(autojump_clock) -> None:
    async with opened() as system:
        await system.broker.configure("q", max_attempts=1_000)
        await system.broker.produce("q", "bad")
        await system.broker.produce("q", "good")
        for _ in range(40):
            for delivery in await system.broker.receive("q", max_messages=2, wait_ms=0):
                await system.broker.nack("q", [delivery.receipt], delay_ms=0, reason="no stock")
            await elapse(10)
        assert system.monitor.health("q").verdict == "All nacks say “no stock”"


async def test_refused_sends_are_noted(autojump_clock) -> None:
    async with opened() as system:
        await system.broker.configure("q", max_messages=1)
        await system.broker.produce("q", "x")
        for _ in range(10):
            await system.broker.produce_many("q", [])
            with pytest.raises(Exception, match="holds as many"):
                await system.broker.produce("q", "y")
            await elapse(10)
        health = system.monitor.health("q")
        assert (health.level, health.remedy) == ("broken", "change_limit")
        assert {queue: each.level for queue, each in system.monitor.healths().items()} == {"q": "broken"}


async def test_without_a_watcher_nothing_is_sampled(autojump_clock) -> None:
    async with opened(monitored=False) as system:
        await system.broker.produce("q", "x")
        await elapse(300)
        assert system.monitor.healths() == {}
        assert set(system.monitor.history.total(Metric.READY, Range.HOUR).values) == {None}


async def test_a_second_looks_at_a_fifth_of_the_queues(autojump_clock) -> None:
    async with opened(monitored=False) as system:
        for number in range(50):
            await system.broker.produce(f"q{number}", "x")
        await elapse(5 - trio.current_time() % 5)
        looked = []
        for _ in range(15):
            await elapse(1)
            looked.append(system.monitor.sample())
        assert system.monitor.sample() == 0
        assert looked[5:] == [10] * 10
        assert set(system.monitor.healths()) == {f"q{number}" for number in range(50)}


async def test_queues_that_come_and_go_leave_nothing_past_the_labels(autojump_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "METRIC_QUEUES_MAX", 5)
    async with opened(monitored=False) as system:
        monitor, counters = system.monitor, system.counters
        gc.freeze()  # a collection looks at what this test makes
        sizes = []
        for number in range(60):
            queue = f"q{number}"
            await system.broker.produce(queue, "x")
            await elapse(6)
            monitor.sample()
            await system.broker.purge(queue)
            await system.broker.delete_queue(queue)
            await elapse(6)
            monitor.sample()
            assert len(monitor.healths()) <= 1
            if number % 20 == 19:
                gc.collect()
                sizes.append(
                    (
                        len([*counters.queues._by_event, *counters.queues._others]),
                        len(counters.queues._activities),
                        len(monitor._watched),
                    )
                )
        assert sizes[0] == sizes[1] == sizes[2]


async def test_a_queue_that_was_not_sampled_yet_did_not_grow(autojump_clock) -> None:
    async with opened(monitored=False) as system:
        await elapse(5 - trio.current_time() % 5)
        for number in range(5):
            await system.broker.produce(f"q{number}", "x")
        await elapse(5)
        system.monitor.sample()
        await elapse(5)
        system.monitor.sample()
        for number in range(5, 10):
            await system.broker.produce(f"q{number}", "x")
        while "q9" not in system.monitor.healths():
            await elapse(1)
            system.monitor.sample()
        assert [system.monitor.grown(f"q{number}") for number in range(5)] == [0] * 5
        assert sum(system.monitor.grown(f"q{number}") for number in range(5, 10)) == 1  # one slice of five
        for _ in range(5):
            await elapse(1)
            system.monitor.sample()
        assert [system.monitor.grown(f"q{number}") for number in range(10)] == [0] * 5 + [1] * 5


async def test_short_lived_queues_leave_their_places(autojump_clock, monkeypatch) -> None:
    """Also those that are gone before the monitor looks: then nobody else told the counters."""
    monkeypatch.setattr(limits, "SERIES_QUEUES_MAX", 20)
    monkeypatch.setattr(limits, "METRIC_QUEUES_MAX", 5)
    async with opened(monitored=False) as system:
        for number in range(40):
            queue = f"short{number}"
            await system.broker.produce(queue, "x")
            (delivery,) = await system.broker.receive(queue, wait_ms=0)
            await system.broker.nack(queue, [delivery.receipt], delay_ms=0, reason="no stock")
            system.counters.queues.record_refused(queue)
            await system.broker.purge(queue)
            await system.broker.delete_queue(queue)
        await elapse(6)
        system.monitor.sample()
        assert len(system.counters.queues._activities) == limits.METRIC_QUEUES_MAX
        assert sum(activity.refused for activity in system.counters.queues._activities.values()) == 0
        now_ms = TrioClock().now_ms()
        assert not any(system.counters.nack_reasons.latest(now_ms, f"short{number}") for number in range(40))
        assert system.counters.queues.total("produced") == 40
        for number in range(limits.SERIES_QUEUES_MAX + 1):
            await system.broker.produce(f"q{number}", "x")
        await elapse(6)
        system.monitor.sample()
        assert len(system.monitor.healths()) == limits.SERIES_QUEUES_MAX
        assert system.monitor.health("q0").verdict == "Healthy"
        assert system.monitor.health(f"q{limits.SERIES_QUEUES_MAX}").verdict.startswith("Not watched")


def test_counters_and_reasons_are_bounded() -> None:
    counters = Counters()
    for number in range(limits.SERIES_QUEUES_MAX + 50):
        counters.queues.record([Event("produced", f"q{number}", 1)])
        for minute in range(12):
            for reason in range(12):
                counters.nack_reasons.add(minute * 60_000, f"q{number}", f"{reason}" * 300, 1)
    assert counters.queues.total("produced") == limits.SERIES_QUEUES_MAX + 50
    assert counters.queues.activity("q-new") is None
    assert len(counters.queues._activities) == limits.SERIES_QUEUES_MAX
    buckets = counters.nack_reasons._buckets
    assert len(buckets) == limits.NACK_REASONS_MINUTES
    assert max(len(queues) for _, queues in buckets) == limits.SERIES_QUEUES_MAX
    reasons = counters.nack_reasons.latest(11 * 60_000, "q1")
    assert len(reasons) <= limits.NACK_REASONS_MAX + 1
    assert max(map(len, reasons)) <= limits.NACK_REASON_LENGTH_MAX
    assert sys.getsizeof(reasons) < 10_000
