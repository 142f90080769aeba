"""Makes the file of one backup, in a thread: checks the space, copies, and removes the oldest files."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trio

from forq_trio.jobs.backup_files import BackupFiles
from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.storage.engine import Engine
from forq_trio.telemetry import words
from forq_trio.writer_actor import WriterActor


class BackupFailed(ForqError):
    """The backup was not made"""


@dataclass(frozen=True)
class BackupSettings:
    """The settings of backups."""

    directory: Path | None = None  # None for `backups` beside the database
    every_hours: int = 0  # 0: only on request
    keep: int = limits.BACKUP_KEEP_DEFAULT  # how many files are not removed
    reserve_bytes: int = 0  # what a backup has to leave free on the disk of the database


@dataclass
class BackupSource:
    """What a copy needs to know of the database."""

    engine: Engine
    writer: WriterActor
    settings: BackupSettings
    on_copied: Callable[[], None]  # called when a copy no longer holds the log
    free_bytes: Callable[[Path], int]  # how much may still be written to the disk of a directory


class BackupCopy:
    """One copy. Its methods run in a thread."""

    def __init__(self, source: BackupSource, progress: Callable[[int, int], None]) -> None:
        """progress: is called with the number of copied pages, and with that of all pages."""
        self.log_grew_bytes = 0  # since the first step of the copy, which keeps the log from being emptied
        self._source = source
        self._progress = progress
        self._log_pages = 0  # at the start, or when it has started over
        self._copied = False

    def make(self, files: BackupFiles, name: str) -> int:
        """Make the file of this name; returns its bytes. Raises BackupFailed."""
        files.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.remove_partial()
        if os.path.lexists(files.path_of(name)):
            raise BackupFailed(f"{files.path_of(name)} exists already")
        self._check_space(files.directory)
        size = self._write(files.path_of(name))
        files.remove_oldest(self._source.settings.keep)
        return size

    def _check_space(self, directory: Path) -> None:
        """Raise BackupFailed if the disk has no space for the file, or would have less than the disk reserve left."""
        facts = self._source.engine.facts()
        needed = facts.file_bytes - facts.free_page_bytes + facts.log_bytes
        if facts.path is not None and os.stat(directory).st_dev == os.stat(facts.path).st_dev:
            needed += self._source.settings.reserve_bytes
        free = self._source.free_bytes(directory)
        if free < needed:
            raise BackupFailed(f"{directory} has {words.size(free)} free, {words.size(needed)} are needed")

    def _write(self, path: str) -> int:
        engine = self._source.engine
        assert engine.log is not None
        self._log_pages = engine.log.pages()
        return engine.copy_to(path, self._step)

    def _step(self, done: int, total: int) -> None:
        trio.from_thread.check_cancelled()
        if self._copied:
            return
        log = self._source.engine.log
        assert log is not None
        pages = log.pages()
        self._log_pages = min(pages, self._log_pages)
        self.log_grew_bytes = (pages - self._log_pages) * limits.LOG_PAGE_BYTES
        self._progress(done, total)
        if done == total:
            self._copied = True
            trio.from_thread.run_sync(self._source.on_copied)
        elif self._source.writer.storage.sends_refused:
            raise BackupFailed("the disk is nearly full, and the log cannot be emptied during a backup")
