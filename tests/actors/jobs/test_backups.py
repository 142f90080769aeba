"""Backups of a running system, with the real engine, real threads and the real clock; the wall clock is set."""

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.backup_copy import BackupSettings
from forq_trio.jobs.backup_files import BackupFiles
from forq_trio.model import limits
from forq_trio.model.errors import BackupImpossible, BackupRunning, Stopping, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.server.backups import BackupInfo
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import verify_backup
from forq_trio.system import System, open_system
from forq_trio.telemetry import words
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, until

HOUR_MS = 3_600_000
START_MS = 1_769_828_400_000
FIRST = "forq-20260131T030000Z.db"


class SetClock:
    ms = START_MS

    def now_ms(self) -> int:
        return self.ms


class Stepped(ObservedEngine):
    """Calls `on_step` in the thread at each step of a copy, before the server does."""

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self.on_step: Callable[[int, int], None] = lambda done, total: None

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        def step(done: int, total: int) -> None:
            self.on_step(done, total)
            on_step(done, total)

        return self._engine.copy_to(path, step)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch) -> None:
    monkeypatch.setattr(limits, "BACKUP_STEP_PAGES", 16)
    monkeypatch.setattr(limits, "BACKUP_SYNC_PAGES", 64)
    monkeypatch.setattr(limits, "BACKUP_CHECK_STEPS", 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "away" / "backups"


@pytest.fixture
def engine(tmp_path: Path) -> Stepped:
    return Stepped(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal"))


@asynccontextmanager
async def running(engine: Stepped, clock: SetClock, settings: BackupSettings) -> AsyncIterator[System]:
    """A system with a megabyte of messages."""
    async with open_system(engine, clock, backup=settings) as system:
        with trio.fail_after(60):
            await system.broker.produce_many("q", [NewMessage("x" * 50_000)] * 20)
            await until(lambda: system.backups._serving)
            yield system


async def ended(system: System) -> BackupInfo:
    """The latest backup, once it has ended."""
    await until(lambda: system.backups._latest is not None and system.backups._latest.state != "running")
    assert system.backups._latest is not None
    return system.backups._latest


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


async def test_a_backup_is_made_checked_and_told_of(engine, directory) -> None:
    clock = SetClock()
    steps: list[tuple[int, int]] = []
    engine.on_step = lambda done, total: steps.append((done, total))
    async with running(engine, clock, BackupSettings(directory)) as system:
        before = await system.backups.state()
        assert (before.latest, before.files, before.next_at) == (None, [], None)
        begun = await system.backups.start("ops")
        assert begun.state == "running"
        done = await ended(system)
        assert (done.name, done.state, done.started_by) == (FIRST, "done", "ops")
        assert done.pages_done == done.pages_total > 250
        assert done.bytes == (directory / FIRST).stat().st_size
        after = await system.backups.state()
        assert after.latest == done
        assert [(file.name, file.bytes, file.made_at) for file in after.files] == [
            (FIRST, done.bytes, START_MS)
        ]
        assert (system.backups.last_made_at, system.backups.failed) == (START_MS, False)
        (report,) = [each for each in system.jobs.reports() if each.name == "backup"]
        assert report.result.startswith(f"{words.size(done.bytes)}, the log grew by ")
        assert (report.failed, report.next_when) == (False, "when somebody asks")
    assert len(steps) > 10
    found = verify_backup(str(directory / FIRST))
    assert (found.ok, found.messages) == (True, 20)
    assert names(directory) == [FIRST]
    assert (directory.stat().st_mode & 0o777, (directory / FIRST).stat().st_mode & 0o777) == (0o700, 0o600)


async def test_one_at_a_time_and_the_log_that_grew_meanwhile_is_told_and_emptied(engine, directory) -> None:
    clock = SetClock()
    held, go_on = trio.Event(), threading.Event()

    def hold(done: int, total: int) -> None:
        if not held.is_set():
            trio.from_thread.run_sync(held.set)
            assert go_on.wait(60)

    engine.on_step = hold
    async with running(engine, clock, BackupSettings(directory)) as system:
        checkpointer = system.housekeeping.checkpointer
        await system.backups.start()
        await held.wait()
        with pytest.raises(BackupRunning):
            await system.backups.start()
        with pytest.raises(BackupRunning):
            await system.jobs.run_now("backup")
        assert (await system.backups.state()).latest.state == "running"
        before = engine.log.pages()
        await system.broker.produce_many("q", [NewMessage("y" * 50_000)] * 20)
        grew = engine.log.pages() - before
        go_on.set()
        done = await ended(system)
        assert done.log_grew_bytes >= grew * limits.LOG_PAGE_BYTES > 1_000_000
        with trio.fail_after(60):
            await until(lambda: not checkpointer.runs.running and checkpointer._copied_pages > 0)
    assert verify_backup(str(directory / FIRST)).messages == 20


async def test_without_space_there_is_none_and_the_failure_stays_until_one_is_made(
    engine, directory, monkeypatch
) -> None:
    clock = SetClock()
    free = {"bytes": 1_300_000_000}
    async with running(engine, clock, BackupSettings(directory, reserve_bytes=3_000_000_000)) as system:
        monkeypatch.setattr(system.backups._source, "free_bytes", lambda _: free["bytes"])
        report = await system.jobs.run_now("backup")
        assert report.failed
        assert report.result.startswith(f"{directory} has 1.2 GiB free, 2.8 GiB are needed")
        latest = (await system.backups.state()).latest
        assert (latest.state, latest.error, latest.finished_at) == ("failed", report.result, START_MS)
        assert (system.backups.last_made_at, system.backups.failed) == (None, True)
        assert names(directory) == []
        free["bytes"] *= 10
        assert not (await system.jobs.run_now("backup")).failed
        assert not system.backups.failed


async def test_names_ascend_whatever_the_clock_does_and_only_the_oldest_of_ours_go(engine, directory) -> None:
    clock = SetClock()
    directory.mkdir(parents=True)
    foreign = [
        "forq-20260131T030000Z.db.copy",
        "forq-20269931T030000Z.db",
        "forq-2026-01-31.db",
        "queue-20260131T030000Z.db",
        "my.db",
    ]
    for name in foreign:
        (directory / name).write_text("mine")
    (directory / "forq-20200101T000000Z.db").mkdir()
    (directory / "forq-20200102T000000Z.db").symlink_to("my.db")
    (directory / f"{FIRST}.a1b2c3d4.partial").write_text("of a killed process")
    (directory / f"{FIRST}.a1b2c3d4.partial-journal").write_text("of a killed process")
    mine = {*foreign, "forq-20200101T000000Z.db", "forq-20200102T000000Z.db"}
    async with running(engine, clock, BackupSettings(directory, keep=2)) as system:
        await system.jobs.run_now("backup")
        assert set(names(directory)) == mine | {FIRST}
        clock.ms -= HOUR_MS
        for _ in range(3):
            await system.jobs.run_now("backup")
        kept = ["forq-20260131T030003Z.db", "forq-20260131T030002Z.db"]
        assert [file.name for file in (await system.backups.state()).files] == kept
        assert set(names(directory)) == mine | set(kept)
    assert (directory / "my.db").read_text() == "mine"


async def test_a_stop_ends_it_within_a_step_and_leaves_nothing(engine, directory) -> None:
    held, go_on, steps = trio.Event(), threading.Event(), []

    def hold(done: int, total: int) -> None:
        steps.append(done)
        if not held.is_set():
            trio.from_thread.run_sync(held.set)
            assert go_on.wait(60)

    engine.on_step = hold
    async with (
        trio.open_nursery() as nursery,
        running(engine, SetClock(), BackupSettings(directory)) as system,
    ):
        await system.backups.start()
        await held.wait()
        nursery.start_soon(trio.to_thread.run_sync, go_on.set)
    assert len(steps) <= 3
    assert names(directory) == []
    assert system.backups._latest.state == "cancelled"
    with pytest.raises(Stopping):
        await system.backups.start()


async def test_a_stop_ends_the_check_as_well(engine, directory, monkeypatch) -> None:
    monkeypatch.setattr(limits, "BACKUP_CHECK_STEPS", 1)
    held, go_on, checks = trio.Event(), threading.Event(), []
    total_seen: list[int] = []

    def hold(done: int, total: int) -> None:
        if total_seen and done == total:
            checks.append(done)
            if not held.is_set():
                trio.from_thread.run_sync(held.set)
                assert go_on.wait(60)
        elif done == total:
            total_seen.append(total)

    engine.on_step = hold
    async with (
        trio.open_nursery() as nursery,
        running(engine, SetClock(), BackupSettings(directory)) as system,
    ):
        await system.backups.start()
        await held.wait()
        nursery.start_soon(trio.to_thread.run_sync, go_on.set)
    assert len(checks) <= 3
    assert names(directory) == []


async def test_it_gives_up_where_the_log_needs_the_space(engine, directory) -> None:
    async with running(engine, SetClock(), BackupSettings(directory)) as system:
        writer = system.writer
        engine.on_step = lambda done, total: setattr(writer.storage, "sends_refused", True)
        report = await system.jobs.run_now("backup")
        assert report.result == "the disk is nearly full, and the log cannot be emptied during a backup"
        engine.on_step = lambda done, total: None
        writer.storage.sends_refused = False
    assert names(directory) == []


async def test_what_is_wrong_with_the_directory_is_said(engine, directory) -> None:
    directory.parent.mkdir()
    directory.write_text("a file")
    async with running(engine, SetClock(), BackupSettings(directory)) as system:
        assert (await system.jobs.run_now("backup")).result == f"{directory}: File exists"
        with pytest.raises(StorageUnavailable, match="Not a directory"):
            await system.backups.state()


async def test_it_is_made_at_the_interval_also_over_restarts_and_again_soon_after_a_failure(
    tmp_path, directory, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "BACKUP_LOOK_SECONDS_MAX", 0.001)
    clock = SetClock()
    settings = BackupSettings(directory, every_hours=24, keep=9)

    def opened() -> Stepped:
        return Stepped(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal"))

    async with running(opened(), clock, settings) as system:
        first = await ended(system)  # there was none, so it was due at once
        assert (first.scheduled, first.state) == (True, "done")
        assert (await system.backups.state()).next_at == START_MS + 24 * HOUR_MS
    clock.ms += 23 * HOUR_MS
    async with running(opened(), clock, settings) as system:
        await until(lambda: system.backups._next_at is not None)
        assert system.backups._next_at == START_MS + 24 * HOUR_MS
        assert system.backups.last_made_at == START_MS
        (report,) = [each for each in system.jobs.reports() if each.name == "backup"]
        assert HOUR_MS - 1_000 <= report.next_run_at - clock.ms <= HOUR_MS
        monkeypatch.setattr(system.backups._source, "free_bytes", lambda _: 0)
        clock.ms += HOUR_MS
        assert (await ended(system)).state == "failed"
        assert (await system.backups.state()).next_at == clock.ms + 600_000
        monkeypatch.undo()
        monkeypatch.setattr(system.backups._source, "free_bytes", lambda _: 10**12)
        system.backups._woken.set()
        clock.ms += 600_000
        with trio.fail_after(60):
            await until(lambda: system.backups.last_made_at == clock.ms)
    assert len(names(directory)) == 2


@pytest.mark.parametrize("kind", ["memory", "temporary"])
async def test_what_is_not_kept_is_not_backed_up(kind: str, directory) -> None:
    engine = (
        MemoryEngine(EngineSettings())
        if kind == "memory"
        else open_engine("memory:", EngineSettings(), "full")
    )
    async with open_system(engine, SetClock(), backup=BackupSettings(directory)) as system:
        await wait_all_tasks_blocked()
        for ask in (system.backups.start, system.backups.state):
            with pytest.raises(BackupImpossible):
                await ask()
        assert system.backups.directory is None
    assert not directory.exists()


def test_a_file_that_is_removed_while_it_is_listed_is_left_out(directory, monkeypatch) -> None:
    """The server removes old backups in one thread while it answers a list in another."""
    directory.mkdir(parents=True)
    files = BackupFiles(directory, Path("forq.db"))
    kept, removed = files.name_at(START_MS), files.name_at(START_MS + HOUR_MS)
    (directory / kept).write_bytes(b"123")
    (directory / removed).touch()
    entries = files._entries

    def removing() -> Iterator[os.DirEntry[str]]:
        for entry in entries():
            (directory / removed).unlink(missing_ok=True)
            yield entry

    monkeypatch.setattr(files, "_entries", removing)
    assert [(file.name, file.bytes) for file in files.list()] == [(kept, 3)]


async def test_without_a_directory_it_is_beside_the_database(engine, tmp_path) -> None:
    async with running(engine, SetClock(), BackupSettings()) as system:
        await system.jobs.run_now("backup")
    assert names(tmp_path / "backups") == [FIRST]
    assert BackupSettings().keep == 7
