"""Compaction of a running system: free pages go back to the disk in steps, and others go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.compaction import BYTES_MIN, LOOK_SECONDS, LOOKS, Compaction
from forq_trio.model import limits
from forq_trio.model.commands import Compact, Compacted
from forq_trio.model.engine_facts import EngineFacts
from forq_trio.model.errors import CompactionImpossible, Stopping, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.compaction import STEP_PAGES
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage_state import StorageState
from forq_trio.system import System, open_system
from support.actors import ObservedEngine, TrioClock, elapse, on_the_loop, until
from support.exposition import Samples, samples_shown

GIB = 1024 * limits.MIB


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "forq.db")


@asynccontextmanager
async def purged(path: str) -> AsyncIterator[tuple[System, ObservedEngine]]:
    """A system whose file is mostly free pages."""
    engine = ObservedEngine(SqliteEngine(path, EngineSettings(), "normal"))
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        with trio.fail_after(60):
            for _ in range(5):
                await system.broker.produce_many("q", [NewMessage("x" * 40_000)] * 100)
            await system.broker.produce_many("stays", [NewMessage("y" * 4_000)] * 20)
            await system.broker.purge("q")
            await system.jobs.run_now("checkpoint")
            yield system, engine


def shown(system: System) -> Samples:
    return samples_shown([system.compaction.families])


async def test_free_pages_go_back_to_the_disk_and_every_message_stays(path) -> None:
    async with purged(path) as (system, engine):
        before = system.compaction.state()
        assert (before.state, before.possible) == ("idle", True)
        assert before.free_bytes > 15 * limits.MIB
        started = system.compaction.start("ops")
        assert (started.state, started.started_by, started.goal_bytes) == (
            "running",
            "ops",
            before.free_bytes,
        )
        await until(lambda: system.compaction.state().state == "done")
        ended = system.compaction.state()
        assert ended.given_back_bytes >= before.free_bytes
        assert shown(system)["forq_file_given_back_bytes_total", ()] == ended.given_back_bytes
        steps = [each for batch in engine.batches for each in batch.commands if isinstance(each, Compact)]
        assert len(steps) >= before.free_bytes // limits.LOG_PAGE_BYTES // STEP_PAGES
        await system.jobs.run_now("checkpoint")
        (report,) = [each for each in system.jobs.reports() if each.name == "compaction"]
        assert (report.failed, report.result.endswith("given back")) == (False, True)
        assert [each.content for each in await system.broker.receive("stays", max_messages=50)] == [
            "y" * 4_000
        ] * 20
        space = shown(system)
        assert space["forq_file_bytes", ()] < 2 * limits.MIB
        assert space["forq_file_free_bytes", ()] == 0
    assert (await trio.Path(path).stat()).st_size < 2 * limits.MIB


async def test_what_became_free_since_the_last_checkpoint_is_given_back_too(path) -> None:
    async with purged(path) as (system, _):
        system.compaction.start()
        await until(lambda: system.compaction.state().state == "done")
        await system.jobs.run_now("checkpoint")
        await system.broker.produce_many("q", [NewMessage("x" * 40_000)] * 100)
        await system.broker.purge("q")
        known = system.compaction.state().free_bytes
        assert known < limits.MIB
        system.compaction.start()
        await until(lambda: system.compaction.state().state == "done")
        ended = system.compaction.state()
        assert shown(system)["forq_file_given_back_bytes_total", ()] > ended.given_back_bytes
        assert ended.given_back_bytes == ended.goal_bytes > known + 3 * limits.MIB


async def test_a_step_is_bounded_and_others_are_served_between_two(path) -> None:
    """While a compaction runs, sends never wait for more than one step."""
    async with purged(path) as (system, engine):
        system.compaction.start()
        sent = 0
        while system.compaction.state().state == "running":
            await system.broker.produce("q", "z")
            sent += 1
        assert sent > 10
        steps = [sum(isinstance(each, Compact) for each in batch.commands) for batch in engine.batches]
        assert max(steps) == 1
        assert system.engine.snapshot().counts["q"].ready == sent


async def test_a_file_of_an_earlier_version_cannot(path) -> None:
    SqliteEngine(path, EngineSettings()).close()
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "DELETE")
    connection.pragma("auto_vacuum", 0)
    connection.execute("VACUUM")
    connection.close()
    async with purged(path) as (system, _):
        assert not system.compaction.state().possible
        with pytest.raises(CompactionImpossible):
            system.compaction.start()


class Stub:
    """A writer with so many free pages."""

    def __init__(self) -> None:
        self.storage = StorageState()
        self.free = GIB // limits.LOG_PAGE_BYTES
        self.file_bytes = 2 * GIB
        self.error: Exception | None = None
        self.steps = trio.Semaphore(10_000)  # that it takes

    async def execute(self, command: Compact) -> Compacted:
        await self.steps.acquire()
        if self.error is not None:
            raise self.error
        pages = min(self.free, command.pages, 10_000)
        self.free -= pages
        return Compacted(pages, self.free)

    def facts(self) -> EngineFacts:
        return EngineFacts(
            name="stub",
            version="",
            durability="full",
            file_bytes=self.file_bytes,
            free_page_bytes=self.free * limits.LOG_PAGE_BYTES,
            gives_pages_back=True,
        )


@pytest.fixture
def stub() -> Stub:
    return Stub()


@asynccontextmanager
async def looking(stub: Stub) -> AsyncIterator[Compaction]:
    compaction = Compaction(stub, TrioClock(), stub.facts)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(compaction.run)
        await wait_all_tasks_blocked()
        yield compaction
        nursery.cancel_scope.cancel()


async def minutes(count: int) -> None:
    await elapse(count * LOOK_SECONDS + 1)


async def test_by_itself_it_gives_back_what_was_free_for_long(autojump_clock, stub) -> None:
    async with looking(stub) as compaction:
        await minutes(3)
        stub.free //= 2  # traffic needs it now and then
        await minutes(1)
        stub.free *= 2
        await minutes(LOOKS - 5)
        assert compaction.state().state == "idle"
        await minutes(1)
        ended = compaction.state()
        assert (ended.state, ended.automatic) == ("done", True)
        assert ended.given_back_bytes == ended.goal_bytes == GIB // 2
        assert ended.free_bytes == GIB // 2


@pytest.mark.parametrize("why", ["little is free", "a small share is free", "sends are refused"])
async def test_by_itself_it_leaves_what_is_needed(autojump_clock, stub, why: str) -> None:
    if why == "little is free":
        stub.free, stub.file_bytes = (BYTES_MIN - 1) // limits.LOG_PAGE_BYTES, 65 * limits.MIB
    elif why == "a small share is free":
        stub.file_bytes = 5 * GIB
    else:
        stub.storage.sends_refused = True
    async with looking(stub) as compaction:
        await minutes(3 * LOOKS)
        assert compaction.state().state == "idle"
        compaction.start()
        await wait_all_tasks_blocked()
        assert compaction.state().free_bytes == 0


async def test_a_step_that_the_database_refuses_ends_it_and_it_can_be_started_again(
    autojump_clock, stub
) -> None:
    async with looking(stub) as compaction:
        stub.error = StorageUnavailable("disk I/O error")
        compaction.start()
        await wait_all_tasks_blocked()
        failed = compaction.state()
        assert (failed.state, failed.error) == ("failed", "disk I/O error")
        stub.error = None
        compaction.start()
        await wait_all_tasks_blocked()
        assert compaction.state().state == "done"
    with pytest.raises(Stopping):
        compaction.start()


async def test_it_can_be_paused_resumed_and_stopped(autojump_clock, stub) -> None:
    stub.steps = trio.Semaphore(0)
    step = 10_000 * limits.LOG_PAGE_BYTES

    async def take_one() -> None:
        stub.steps.release()
        await wait_all_tasks_blocked()

    async with looking(stub) as compaction:
        assert compaction.stop().state == compaction.pause().state == "idle"
        compaction.start("ops")
        await take_one()
        assert compaction.state().given_back_bytes == step
        assert compaction.pause().state == "paused"
        await take_one()  # the one under way
        await take_one()
        assert (compaction.state().state, compaction.state().given_back_bytes) == ("paused", 2 * step)
        await minutes(3 * LOOKS)
        assert compaction.state().state == "paused"
        assert compaction.start("somebody").started_by == "ops"
        await wait_all_tasks_blocked()
        assert compaction.state().given_back_bytes == 3 * step
        stopped = compaction.stop()
        assert (stopped.state, stopped.finished_at is not None) == ("stopped", True)
        await take_one()
        assert not compaction.runs.running
        assert compaction.pause().state == compaction.stop().state == "stopped"
        assert compaction.start().goal_bytes == GIB - 4 * step


@pytest.mark.parametrize("paused", [False, True])
async def test_one_that_began_by_itself_goes_on_to_the_goal_of_who_asks_for_one(
    autojump_clock, stub, paused: bool
) -> None:
    stub.steps = trio.Semaphore(0)
    step = 10_000 * limits.LOG_PAGE_BYTES
    stub.free //= 2
    async with looking(stub) as compaction:
        await minutes(LOOKS - 1)
        stub.free *= 2  # of late: what it leaves by itself
        await minutes(1)
        stub.steps.release()
        await wait_all_tasks_blocked()
        own = compaction.state()
        assert (own.automatic, own.goal_bytes, own.given_back_bytes) == (True, GIB // 2, step)
        if paused:
            compaction.pause()
        asked = compaction.start("ops")
        assert (asked.state, asked.automatic, asked.started_by) == ("running", False, "ops")
        assert asked.given_back_bytes == step
        assert compaction.start("somebody").started_by == "ops"
        for _ in range(GIB // step + 1):
            stub.steps.release()
        await wait_all_tasks_blocked()
        ended = compaction.state()
        assert (ended.state, ended.started_at) == ("done", own.started_at)
        assert ended.given_back_bytes == ended.goal_bytes == GIB
        assert ended.free_bytes == 0
