"""The job that trims the history: by age, by size, in as many steps as it takes, and where there is nothing to do."""

import pytest
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.retention import Retention
from forq_trio.model import limits
from forq_trio.model.commands import TrimHistory
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import System, open_system
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, TrioClock, elapse, on_the_loop


async def finish(system: System, content: str) -> None:
    await system.broker.produce("q", content)
    (delivery,) = await system.broker.receive("q")
    await system.broker.ack("q", [delivery.receipt])


def kept(system: System) -> int:
    return system.broker.known.history_of("q").messages


@pytest.fixture
async def system(autojump_clock):
    engine = ObservedEngine(open_engine("memory:", EngineSettings(history=True), "full"))
    retention = Retention(hours=2, mib_max=1)
    async with open_system(engine, TrioClock(), policy=on_the_loop(), history=retention) as system:
        yield system


async def test_old_messages_are_removed(autojump_clock, system, monkeypatch):
    monkeypatch.setattr(limits, "HISTORY_STEP_MESSAGES", 2)
    for content in "abcde":
        await finish(system, content)
    await elapse(3_600)
    await finish(system, "f")
    assert kept(system) == 6
    await elapse(3_600 + 2 * limits.HISTORY_TRIM_SECONDS)
    assert kept(system) == 1
    assert (await system.jobs.run_now("history")).result == "nothing to do"


async def test_beyond_the_bound_in_bytes_the_oldest_are_removed_at_once(autojump_clock, system):
    for content in "abcd":
        await finish(system, content * limits.CONTENT_BYTES_MAX)
    await wait_all_tasks_blocked()
    assert kept(system) == 4  # exactly the bound
    for content in "ef":
        await finish(system, content * limits.CONTENT_BYTES_MAX)
    await wait_all_tasks_blocked()
    assert kept(system) == 4
    assert (await system.broker.history_range()).first == 3
    assert (await system.jobs.run_now("history")).result == "nothing to do"


async def test_without_a_history_nothing_is_asked_of_the_engine(autojump_clock):
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        before = engine.commits
        assert (await system.jobs.run_now("history")).result == "nothing to do"
        assert engine.commits == before
        assert not any(isinstance(each, TrimHistory) for batch in engine.batches for each in batch.commands)
