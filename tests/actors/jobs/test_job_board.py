"""The reports of jobs: the last run, its result or failure, the next run; and runs on request."""

from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.board import JobBoard, JobNotFound, redrives_report
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import JobReport
from forq_trio.jobs.supervisor import supervise
from forq_trio.model.errors import Stopping, StorageUnavailable
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.system import open_system
from oracle.engine import MemoryEngine
from support.actors import T0, TrioClock, elapse, on_the_loop


class Work:
    """Takes `seconds`; fails while `error` is set."""

    def __init__(self) -> None:
        self.seconds = 2.0
        self.error: Exception | None = None
        self.runs = 0

    async def __call__(self) -> str | None:
        self.runs += 1
        await elapse(self.seconds)
        if self.error is not None:
            raise self.error
        return f"run {self.runs}"


def board_of(job: Periodic) -> JobBoard:
    return JobBoard([(job.runs, job.run_now)], list, TrioClock())


def report_of(board: JobBoard) -> JobReport:
    return board.reports()[0]


async def test_a_job_reports_its_last_run_and_its_next(autojump_clock) -> None:
    work = Work()
    job = Periodic("p", 60.0, work, title="Do it")
    board = board_of(job)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, job, job.pause)
        await wait_all_tasks_blocked()
        assert report_of(board) == JobReport(name="p", title="Do it", next_run_at=T0 + 60_000)
        await elapse(61)
        assert report_of(board).running
        assert report_of(board).next_run_at is None
        await elapse(9)
        assert report_of(board) == JobReport(
            name="p",
            title="Do it",
            last_run_at=T0 + 60_000,
            took_seconds=2.0,
            result="run 1",
            next_run_at=T0 + 122_000,
        )
        nursery.cancel_scope.cancel()


async def test_a_failure_stays_until_a_run_succeeds(autojump_clock) -> None:
    work = Work()
    work.error = StorageUnavailable("disk I/O error")
    job = Periodic("p", 60.0, work, nudged=True)
    board = board_of(job)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, job, job.pause)
        await elapse(2.5)
        assert (report_of(board).failed, report_of(board).result) == (True, "disk I/O error")
        assert report_of(board).next_run_at == T0 + 3_000
        await elapse(1.5)  # the next run, which has begun
        assert (report_of(board).failed, report_of(board).running) == (True, True)
        work.error = ZeroDivisionError("oh")
        await elapse(2)
        assert report_of(board).result == "ZeroDivisionError: oh"
        work.error = None
        await elapse(5)
        assert (report_of(board).failed, report_of(board).result) == (False, "run 3")
        nursery.cancel_scope.cancel()


async def test_run_now_returns_when_its_run_has_ended_also_one_that_waits_to_be_restarted(
    autojump_clock,
) -> None:
    work = Work()
    job = Periodic("p", 3_600.0, work)
    board = board_of(job)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, job, job.pause)
        await elapse(1)
        assert (await board.run_now("p")).result == "run 1"
        assert trio.current_time() == 3
        work.error = StorageUnavailable("no")
        for _ in range(6):  # after each the supervisor would wait for longer
            before = trio.current_time()
            report = await board.run_now("p")
            assert (report.failed, report.result) == (True, "no")
            assert trio.current_time() - before == 2
        nursery.cancel_scope.cancel()


async def test_run_now_during_a_run_is_another_run(autojump_clock) -> None:
    work = Work()
    job = Periodic("p", 60.0, work, nudged=True)
    board = board_of(job)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, job, job.pause)
        await elapse(1)
        assert (await board.run_now("p")).result == "run 2"
        assert trio.current_time() == 4
        nursery.cancel_scope.cancel()


async def test_run_now_raises_when_no_run_follows(autojump_clock) -> None:
    job = Periodic("p", 60.0, Work())
    board = board_of(job)
    with pytest.raises(JobNotFound):
        await board.run_now("q")
    with pytest.raises(JobNotFound):
        await board.run_now("redrives")

    async def ask() -> None:
        with pytest.raises(Stopping):
            await board.run_now("p")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        board.close()
    with pytest.raises(Stopping):
        await board.run_now("p")


async def test_every_job_of_a_system_has_a_title_and_says_what_it_did(autojump_clock, tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await system.broker.produce("emails", "x")
        reports = {report.name: report for report in system.jobs.reports()}
        assert {name: report.title for name, report in reports.items()} == {
            "sweep.expired": "Expire messages",
            "sweep.expired_dlq": "Delete old dead letters",
            "sweep.failed": "Move failed messages",
            "sweep.failed_dlq": "Delete failed dead letters",
            "sweep.stale": "End leases",
            "metrics.depth": "Count bytes and ages",
            "uses": "Save uses of tokens and sessions",
            "consumers": "End leases of unused consumers",
            "stages": "End stages that were not published",
            "optimize": "Refresh statistics",
            "history": "Trim the history",
            "events": "Remove old events",
            "checkpoint": "Checkpoint",
            "backup": "Backup",
            "compaction": "Compact",
            "redrives": "Redrive dead letters",
        }
        results = {
            name: (await system.jobs.run_now(name)).result
            for name in reports
            if name.startswith(("sweep", "tokens", "optimize"))
        }
        assert results.pop("optimize") == "up to date"
        assert set(results.values()) == {"nothing to do"}


async def test_in_memory_there_is_neither_checkpoint_nor_backup(autojump_clock) -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        assert {report.name for report in system.jobs.reports()}.isdisjoint({"checkpoint", "backup"})
        assert system.facts().engine.path is None


async def test_a_checkpoint_reports_its_pages_and_can_be_requested(tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await system.broker.produce("q", "x" * 100_000)
        facts = system.facts()
        pages = engine.log.pages()
        assert facts.engine.log_bytes == pages * 4_096
        with trio.fail_after(60):
            report = await system.jobs.run_now("checkpoint")
            assert report.result == f"{pages:,} pages"
            assert (await system.jobs.run_now("checkpoint")).result == "nothing to do"
        facts = system.facts()
        assert facts.engine.file_bytes >= 100_000
        assert facts.engine.disk_total_bytes > facts.engine.disk_free_bytes > 0
        assert (facts.engine.name, facts.engine.path) == ("SQLite", str(tmp_path / "forq.db"))
        assert facts.commits.count >= 1
        assert facts.memory_bytes is None or facts.memory_bytes > 1_000_000


async def test_free_pages_are_reported(tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await system.broker.produce("q", "x" * 100_000)
        await system.broker.purge("q")
        with trio.fail_after(60):
            await system.jobs.run_now("checkpoint")
        facts = system.facts().engine
        assert 90_000 < facts.free_page_bytes < facts.file_bytes


async def test_redrives_are_reported_as_they_come() -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        (report,) = [each for each in system.jobs.reports() if each.name == "redrives"]
        assert (report.result, report.runnable, report.last_run_at) == ("", False, None)
        await system.broker.produce("q", "x")
        redrive = await system.broker.redrive_tasks.start("q-dlq")
        running = redrives_report(system.broker.redrive_tasks.all())
        assert (running.running, running.result) == (True, "1 running, none moved yet")
        await system.broker.redrive_tasks.wait(redrive.id)
        ended = redrives_report(system.broker.redrive_tasks.all())
        assert (ended.running, ended.result, ended.failed) == (False, "none moved from q-dlq", False)


async def test_a_dry_run_is_reported_as_one() -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        await broker.configure("q", max_attempts=1)
        await broker.produce("q", "x")
        (delivery,) = await broker.receive("q", wait_ms=0)
        await broker.nack("q", [delivery.receipt])
        redrive = await broker.redrive_tasks.start("q-dlq", dry_run=True)
        running = redrives_report(broker.redrive_tasks.all())
        assert (running.running, running.result) == (True, "1 running, 1 dry run")
        await broker.redrive_tasks.wait(redrive.id)
        ended = redrives_report(broker.redrive_tasks.all())
        assert ended.result == "dry run, nothing was changed: 1 message would be moved from q-dlq"
        deletion = await broker.redrive_tasks.start("q-dlq", action="delete", dry_run=True)
        await broker.redrive_tasks.wait(deletion.id)
        ended = redrives_report(broker.redrive_tasks.all())
        assert ended.result == "dry run, nothing was changed: 1 message would be deleted from q-dlq"
