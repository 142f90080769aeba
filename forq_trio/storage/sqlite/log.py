"""The write-ahead log of a database file: how long it is, and its checkpoints on a connection of their own.

SQLite syncs the database only in a checkpoint that reaches the end of the log; one beside commits hardly ever does.
What it has copied stays in the system's memory, and the one that does reach the end, while the writer is paused, would
wait until all of it is on disk. So each checkpoint beside commits is followed by a sync of our own. It is not needed
for correctness; it makes SQLite's own sync short. It brings the pages to the disk little by little (write_back.py):
commits beside it wait for the same disk. Not the few that are left while the writer is paused: that is quicker at once.

A log that starts over is written over. That is quicker than adding pages to a file: its length need not be synced.
So an idle one keeps its length, unless a long read has made it very long.
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
    """The size of a page of a database file, and the bytes of its free pages: as of the last checkpoint."""
    header = os.pread(descriptor, _HEADER_BYTES, 0)
    page_bytes = int.from_bytes(header[_PAGE_SIZE]) or limits.LOG_PAGE_BYTES
    return page_bytes, int.from_bytes(header[_FREE_PAGES]) * page_bytes


class SqliteLog:
    """The `WriteAheadLog` of one file. `checkpoint` may be called from any thread."""

    def __init__(self, database: LockedFile) -> None:
        """The hook of the database's write connection reports after each commit how long the log is."""
        self.reserve_path = database.reserve_path
        self.files_problem = database.names.problem
        self._pages = self._copied = 0
        self._starts = 0  # how often the log has started over
        self._lock = Lock()
        self._database = database
        self._connection = open_checkpointer(database.real_path)
        # A checkpoint that empties the log fails at once while a reader uses it: the writer is paused meanwhile.
        self._connection.set_busy_timeout(0)
        database.connection.set_wal_hook(self._note_pages)

    def pages(self) -> int:
        return self._pages

    def space(self) -> LogSpace:
        """See engine.py. A log of which all is in the database starts over with the next commit, if nobody reads it."""
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
        """See engine.py. Waits for a checkpoint that runs already, not for readers. Raises StorageUnavailable."""
        with self._lock:
            try:
                result = self._truncate() if truncate else None
                return result or self._copy()
            except apsw.Error as error:
                raise unavailable(error, self._connection) from error
            except OSError as error:
                raise unsynced(error) from error

    def _truncate(self) -> CheckpointResult | None:
        """Empty the log, and cut it if it is long; None if a reader uses it."""
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
        """Copy what can be copied beside commits and readers, and sync it."""
        starts, before = self._starts, self._copied
        result = self._move(apsw.SQLITE_CHECKPOINT_PASSIVE)
        # A commit during or after the checkpoint may have started the log over: then nothing of the new one is moved.
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
        """Wait for a checkpoint that runs, and close the connection."""
        with self._lock:
            self._connection.close()

    def _note_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages <= self._pages:  # every commit adds some, so this one has started the log over
            self._copied = 0
            self._starts += 1
        self._pages = pages
        return apsw.SQLITE_OK
