"""The jobs of contract F13 in a running system, on simulated time, with the SQLite engine on the loop."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.commands import Command, Nack, Optimize, Sweep, SweepKind
from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.system import open_system
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, TrioClock, elapse, on_the_loop
from support.results import oks

MINUTE = 60


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.tier2), "sqlite"])
def engine(request, tmp_path) -> Iterator[ObservedEngine]:
    if request.param == "memory":
        observed = ObservedEngine(MemoryEngine(EngineSettings()))
    else:
        observed = ObservedEngine(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal"))
    yield observed
    assert observed.closes == 1


class Timed(ObservedEngine):
    """Also notes when each batch ran."""

    def __init__(self, engine) -> None:
        super().__init__(engine)
        self.ran: list[tuple[float, object]] = []

    def execute_batch(self, batch):
        self.ran += [(trio.current_time(), command) for command in batch.commands]
        return super().execute_batch(batch)


async def test_f13_every_job_runs_at_its_interval(autojump_clock) -> None:
    engine = Timed(MemoryEngine(EngineSettings()))
    async with open_system(engine, TrioClock(), policy=on_the_loop()):
        await elapse(180 * MINUTE)

    def minutes(wanted: object) -> list[int]:
        return [round(at / MINUTE) for at, command in engine.ran if command == wanted]

    intervals = {
        SweepKind.EXPIRED: 5,
        SweepKind.EXPIRED_DLQ: 62,
        SweepKind.FAILED: 6,
        SweepKind.FAILED_DLQ: 89,
        SweepKind.STALE: 3,
    }
    for kind, interval in intervals.items():
        first = 0 if kind in (SweepKind.FAILED, SweepKind.FAILED_DLQ) else interval
        assert minutes(Sweep(kind))[:2] == [first, first + interval]
    assert minutes(Optimize())[:2] == [60, 120]


async def test_f13_depth_gauges_are_refreshed_every_30_seconds(engine, autojump_clock) -> None:
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await elapse(1)
        await system.broker.produce("q", "x")
        await elapse(28.9)
        assert system.counters.depths == {}
        await elapse(0.2)
        assert system.counters.depths == {("q", False): 1}


async def test_f7_a_message_fails_and_is_a_dead_letter_in_one_commit(engine, autojump_clock) -> None:
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await elapse(30)
        await system.broker.produce("q", "x", max_attempts=1)
        (delivery,) = await system.broker.receive("q", wait_ms=0)
        commits = engine.commits
        engine.batches.clear()
        assert oks(await system.broker.nack("q", [delivery.receipt])) == [True]
        assert system.broker.known.counts()["q-dlq"].ready == 1
        await elapse(60)
        assert engine.commits == commits + 1
        assert [type(command) for batch in engine.batches for command in batch.commands] == [Nack]


async def test_f7_it_also_comes_when_the_database_refuses_at_first(engine, autojump_clock) -> None:
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await elapse(30)
        await system.broker.produce("q", "x")
        for _ in range(limits.ATTEMPTS_MAX_DEFAULT - 1):
            (delivery,) = await system.broker.receive("q", wait_ms=0)
            await system.broker.nack("q", [delivery.receipt], delay_ms=0)
        (delivery,) = await system.broker.receive("q", wait_ms=0)
        engine.after_answers = lambda: setattr(
            engine, "refusals", 2 if not engine.refusals else engine.refusals
        )
        await system.broker.nack("q", [delivery.receipt], delay_ms=0)
        engine.after_answers = lambda: None
        await elapse(5)
        assert system.broker.known.counts()["q-dlq"].ready == 1


async def test_an_idle_system_writes_nothing_beyond_its_jobs(engine, autojump_clock) -> None:
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await elapse(1)
        engine.batches.clear()
        await elapse(2.9 * MINUTE)
        assert engine.batches == []
        assert system.writer.parked.total == 0


async def test_a_job_that_always_fails_takes_nothing_down(autojump_clock, monkeypatch) -> None:
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        execute = system.writer.execute

        async def broken_for_jobs(command: Command[Any]) -> Any:
            if isinstance(command, Sweep | Optimize):
                await trio.lowlevel.checkpoint()
                raise ZeroDivisionError
            return await execute(command)

        monkeypatch.setattr(system.writer, "execute", broken_for_jobs)
        await elapse(90 * MINUTE)  # so that every job of a minute or an hour has failed again
        assert (await system.broker.produce("q", "still here")).sequence == 1
        assert len(await system.broker.receive("q", wait_ms=0)) == 1


async def test_jobs_stop_cleanly(engine, autojump_clock) -> None:
    """In whatever they are doing: here they all wait for a database that refuses."""
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        engine.refusals = 1_000
        with pytest.raises(StorageUnavailable):
            await system.broker.produce("q", "x")
        await elapse(400)
        await wait_all_tasks_blocked()
        engine.refusals = 0
