"""Backups of the running server: at an interval, or on request.

Rules
- One at a time, in a thread with a connection of its own, beside the writer.
- It needs disk space for the whole backup, and for the disk reserve if that is on the same disk.
- A file gets its name when it is complete, checked and on disk (storage/sqlite/files/copy.py); one that fails or is
  interrupted leaves none, and the next backup removes what a killed process left.
- The oldest are removed only after a backup succeeded, and only files with our names (backup_files.py).
- While pages are copied the log cannot be emptied; the report says by how much it grew. When the disk is nearly full a
  backup gives up, because the log needs the space.
- The interval counts from the latest file, so restarts do not move it. After a failure it is tried again soon.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from forq_trio.jobs.backup_copy import BackupCopy, BackupFailed, BackupSettings, BackupSource
from forq_trio.jobs.backup_files import BackupFiles
from forq_trio.jobs.disk_guard import free_bytes_of
from forq_trio.jobs.runs import Runs, failure_words
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.errors import (
    BackupImpossible,
    BackupRunning,
    FeatureUnavailable,
    Stopping,
    StorageUnavailable,
)
from forq_trio.model.server.backups import BackupInfo
from forq_trio.model.server.backups import Backups as BackupsView
from forq_trio.storage.engine import Engine
from forq_trio.telemetry import words
from forq_trio.telemetry.families import Family, gauge
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor

T = TypeVar("T")


class BackupJob:
    """A job: `run` until cancelled; the other methods are for callers."""

    name = "backup"

    def __init__(
        self,
        engine: Engine,
        writer: WriterActor,
        clock: Clock,
        settings: BackupSettings,
        on_copied: Callable[[], None] = lambda: None,
        free_bytes: Callable[[Path], int] = free_bytes_of,
    ) -> None:
        """on_copied, free_bytes: see `BackupSource`."""
        path = engine.facts().path
        self._files: BackupFiles | None = None  # None where no backup can be made
        if path is not None:
            database = Path(path)
            self._files = BackupFiles(settings.directory or database.parent / "backups", database)
        self._shared = engine.facts().shared
        self._source = BackupSource(engine, writer, settings, on_copied, free_bytes)
        self._settings = settings
        self._clock = clock
        self._limiter = trio.CapacityLimiter(1)
        self._list_limiter = trio.CapacityLimiter(1)
        self._named_at = 0  # the time in the latest name; names only ascend, whatever the clock does
        self._woken = trio.Event()
        self._latest: BackupInfo | None = None  # the one that runs, or ran last
        self.last_made_at: int | None = None  # epoch ms
        self.failed = False  # whether the latest backup failed
        # Epoch ms; None while one runs, or where they are made only when asked.
        self._next_at: int | None = None
        self._serving = False
        self.runs = Runs(self.name, "Backup")

    @property
    def directory(self) -> Path | None:
        """The directory of the backups; None if no backup can be made."""
        return None if self._files is None else self._files.directory

    def families(self) -> Iterator[Family]:
        """When the latest one was made that is there, and how the latest one ended."""
        yield gauge(
            "forq_backup_last_success_timestamp_seconds",
            "When the latest backup that the server made was begun, in Unix time; absent without one.",
            None if self.last_made_at is None else self.last_made_at / limits.SECOND_MS,
        )
        yield gauge("forq_backup_failed", "1 while the latest backup failed, else 0.", int(self.failed))

    async def state(self) -> BackupsView:
        """The latest backup, and the files in the directory.

        Raises BackupImpossible, FeatureUnavailable; StorageUnavailable where the directory cannot be read.
        """
        files = self._files_or_raise()
        try:
            listed = await self._in_thread(files.list, self._list_limiter)
        except BackupFailed as error:
            raise StorageUnavailable(error.message) from error
        return BackupsView(
            directory=str(files.directory),
            keep=self._settings.keep,
            latest=self._latest,
            next_at=self._next_at,
            files=listed,
        )

    async def start(self, started_by: str | None = None, *, scheduled: bool = False) -> BackupInfo:
        """Begin a backup, which then runs in the server; returns at once.

        started_by: the name of an access token, None for the server's secret. Raises BackupImpossible, BackupRunning,
        FeatureUnavailable, Stopping.
        """
        await trio.lowlevel.checkpoint()
        return self._begin(started_by, scheduled=scheduled)

    async def run_now(self) -> None:
        """Make a backup, and return when it has ended, also if it failed. Raises what `start` raises."""
        await trio.lowlevel.checkpoint()
        self._begin(None)
        await self.runs.wait_for_next()

    async def run(self) -> None:
        """Make requested backups, and those that are due."""
        if self._files is None:
            return
        self._serving = True
        try:
            await self._look_for_earlier(self._files)
            while True:
                await self._wait()
                if self._latest is not None and self._latest.state == "running":
                    await self._make(self._files, self._latest)
        finally:
            self._serving = False

    def _files_or_raise(self) -> BackupFiles:
        if self._shared:
            raise FeatureUnavailable
        if self._files is None:
            raise BackupImpossible
        return self._files

    def _begin(self, started_by: str | None, *, scheduled: bool = False) -> BackupInfo:
        files = self._files_or_raise()
        if not self._serving:
            raise Stopping
        if self._latest is not None and self._latest.state == "running":
            raise BackupRunning
        now_ms = self._clock.now_ms()
        self._named_at = max(now_ms, self._named_at + limits.SECOND_MS)
        self._latest = BackupInfo(
            name=files.name_at(self._named_at),
            state="running",
            started_at=now_ms,
            started_by=started_by,
            scheduled=scheduled,
        )
        self._woken.set()
        return self._latest

    async def _look_for_earlier(self, files: BackupFiles) -> None:
        """Find out when the latest backup was made, by this process or an earlier one."""
        try:
            earlier = await self._in_thread(files.list)
        except BackupFailed:
            earlier = []
        self._named_at = max(self._named_at, earlier[0].made_at if earlier else 0)
        self.last_made_at = earlier[0].made_at if earlier else None
        self._set_next(after_ms=self.last_made_at)

    def _set_next(self, after_ms: int | None) -> None:
        """Make the next backup due one interval after `after_ms`, or now if that is None."""
        every_ms = self._settings.every_hours * limits.HOUR_MS
        now_ms = self._clock.now_ms()
        if every_ms:
            self._next_at = now_ms if after_ms is None else min(after_ms, now_ms) + every_ms
            self.runs.next_at = trio.current_time() + max(0, self._next_at - now_ms) / 1_000
        else:
            self.runs.next_when = "when somebody asks"

    async def _wait(self) -> None:
        """Wait until a backup is requested or due. Somebody may set the wall clock, so it is read now and then."""
        while not self._woken.is_set():
            seconds = float("inf")
            if self._next_at is not None:
                seconds = (self._next_at - self._clock.now_ms()) / 1_000
                if seconds <= 0:
                    self._begin(None, scheduled=True)
                    break
            with trio.move_on_after(min(seconds, limits.BACKUP_LOOK_SECONDS_MAX)):
                await self._woken.wait()
        self._woken = trio.Event()

    async def _make(self, files: BackupFiles, backup: BackupInfo) -> None:
        """Make a backup, and note its result."""
        copy = BackupCopy(self._source, self._note_progress)
        self._next_at = None
        ended = msgspec.structs.replace(backup, state="cancelled")
        try:
            with self.runs.run() as outcome:
                size = await self._in_thread(lambda: copy.make(files, backup.name))
                outcome.result = f"{words.size(size)}, the log grew by {words.size(copy.log_grew_bytes)}"
            ended = msgspec.structs.replace(self._now(backup), state="done", bytes=size)
            self.last_made_at = backup.started_at
        except Exception as error:
            ended = msgspec.structs.replace(self._now(backup), state="failed", error=failure_words(error))
        finally:
            self._latest = msgspec.structs.replace(
                ended, finished_at=self._clock.now_ms(), log_grew_bytes=copy.log_grew_bytes
            )
        self._note_end(self._latest)

    def _note_end(self, backup: BackupInfo) -> None:
        failed = self.failed = backup.state == "failed"
        if failed:
            log(LogEvent.BACKUP_FAILED, name=backup.name, error=backup.error)
            every_ms = self._settings.every_hours * limits.HOUR_MS
            retry_ms = min(every_ms, int(limits.BACKUP_RETRY_SECONDS * 1_000))
            self._set_next(self._clock.now_ms() - every_ms + retry_ms)
        else:
            log(LogEvent.BACKUP_MADE, name=backup.name, bytes=backup.bytes, log_grew=backup.log_grew_bytes)
            self._set_next(backup.started_at)

    async def _in_thread(self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None) -> T:
        """Return `work()`. Cancelled, it returns when the thread has ended: a copy notices it at its next step."""

        def checked() -> T:
            try:
                return work()
            except OSError as error:
                raise BackupFailed(
                    f"{error.filename or self.directory}: {error.strerror or error}"
                ) from error

        return await trio.to_thread.run_sync(checked, limiter=limiter or self._limiter)

    def _note_progress(self, done: int, total: int) -> None:
        """Note the progress. Called in the thread; readers get the old record or the new one, never a mixture."""
        if self._latest is not None:
            self._latest = msgspec.structs.replace(self._latest, pages_done=done, pages_total=total)

    def _now(self, backup: BackupInfo) -> BackupInfo:
        return self._latest or backup
