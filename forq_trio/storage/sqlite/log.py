"""The write-ahead log of a database file: how long it is, and its checkpoints on a connection of their own.

SQLite syncs the database only in a checkpoint that reaches the end of the log. A checkpoint that runs beside commits
hardly ever does, so the pages that it copied stay in the system's memory. The checkpoint that does reach the end, while
the writer is paused, would then wait until all of them are on disk. So each checkpoint beside commits is followed by a
sync of our own. It is not needed for correctness, but it makes SQLite's own sync short. It brings the pages to the disk
little by little (write_back.py), because commits wait for the same disk. While the writer is paused, the few pages that
are left are synced at once, which is quicker.

A log that starts over overwrites its old content. That is quicker than appending to a file, whose new length has to be
synced as well. So an idle log keeps its length, unless a long read has made it very long.
"""

import os
from contextlib import suppress
from threading import Lock

import apsw

from forq_trio.model import limits
from forq_trio.storage.on_disk import sync_data
from forq_trio.storage.sqlite.files.faults import unavailable, unsynced
from forq_trio.storage.sqlite.files.identity import LOG_SUFFIX
from forq_trio.storage.sqlite.files.open import LockedFile, open_checkpointer
from forq_trio.storage.sqlite.files.write_back import write_back
from forq_trio.storage.write_ahead_log import CheckpointResult, LogSpace

# The headers of a database file (sqlite.org/fileformat2.html, section 1.3), of the log and its pages (section 4.1).
_HEADER_BYTES = 100
_PAGE_SIZE = slice(16, 18)
_FREE_PAGES = slice(36, 40)
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


def free_pages(descriptor: int) -> tuple[int, int]:
    """The size of a page of a database file, and the bytes of its free pages as of the last checkpoint."""
    header = os.pread(descriptor, _HEADER_BYTES, 0)
    page_bytes = int.from_bytes(header[_PAGE_SIZE]) or limits.LOG_PAGE_BYTES
    return page_bytes, int.from_bytes(header[_FREE_PAGES]) * page_bytes


class SqliteLog:
    """The `WriteAheadLog` of one file. `checkpoint` may be called from any thread."""

    def __init__(self, database: LockedFile) -> None:
        """Install a hook on the database's write connection that reports the length of the log after each commit."""
        self.reserve_path = database.reserve_path
        self.files_problem = database.names.problem
        self._pages = self._copied = 0
        self._starts = 0  # how often the log has started over
        self._lock = Lock()
        self._database = database
        self._connection = open_checkpointer(database.real_path)
        # A checkpoint that empties the log must fail at once while a reader uses it, because the writer is paused.
        self._connection.set_busy_timeout(0)
        database.connection.set_wal_hook(self._note_pages)

    def pages(self) -> int:
        return self._pages

    def space(self) -> LogSpace:
        """See engine.py. Once the whole log is in the database, the next commit starts it over, if nobody reads it."""
        page_bytes, free_page_bytes = free_pages(self._database.descriptor)
        frame_bytes = page_bytes + _FRAME_HEADER_BYTES
        unmoved = max(0, self._pages - self._copied)
        file_bytes = 0
        with suppress(FileNotFoundError):
            size = os.path.getsize(self._database.real_path + LOG_SUFFIX)
            file_bytes = max(0, size - _LOG_HEADER_BYTES)
        return LogSpace(
            used_bytes=self._pages * frame_bytes if unmoved else 0,
            file_bytes=file_bytes,
            unmoved_bytes=unmoved * frame_bytes,
            free_page_bytes=free_page_bytes,
        )

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """See engine.py. Waits for a running checkpoint, but not for readers. Raises StorageUnavailable."""
        with self._lock:
            try:
                result = self._truncate() if truncate else None
                return result or self._copy()
            except apsw.Error as error:
                raise unavailable(error, self._connection) from error
            except OSError as error:
                raise unsynced(error) from error

    def _truncate(self) -> CheckpointResult | None:
        """Empty the log, and shorten its file if it is long; None if a reader uses it."""
        try:
            self._move(apsw.SQLITE_CHECKPOINT_TRUNCATE if self._is_long() else apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.BusyError:
            return None
        self._pages = self._copied = 0
        self._starts += 1
        return CheckpointResult(0, 0)

    def _is_long(self) -> bool:
        try:
            return os.path.getsize(self._database.real_path + LOG_SUFFIX) > limits.LOG_KEPT_BYTES
        except FileNotFoundError:  # somebody removed it: jobs/file_watch.py
            return True

    def _copy(self) -> CheckpointResult:
        """Copy as much as commits and readers permit, and sync it."""
        starts, before = self._starts, self._copied
        result = self._move(apsw.SQLITE_CHECKPOINT_PASSIVE)
        # A commit during or after the checkpoint may have started the log over; then none of the new log is copied.
        self._copied = result.copied_pages if starts == self._starts else 0
        if result.copied_pages < before:
            before = 0
        if result.copied_pages - before >= limits.WRITE_BACK_PAGES_MIN:
            write_back(self._database.descriptor)
        sync_data(self._database.descriptor)
        return result

    def _move(self, mode: int) -> CheckpointResult:
        return CheckpointResult(*self._connection.wal_checkpoint(mode=mode))

    def close(self) -> None:
        """Wait for a running checkpoint, and close the connection."""
        with self._lock:
            self._connection.close()

    def _note_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages <= self._pages:  # every commit adds some, so this one has started the log over
            self._copied = 0
            self._starts += 1
        self._pages = pages
        return apsw.SQLITE_OK
