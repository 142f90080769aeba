"""The write-ahead log of a database file: how long it is, and its checkpoints on a connection of their own.

SQLite syncs the database only in a checkpoint that reaches the end of the log; one beside commits hardly ever does.
What it has copied stays in the system's memory, and the one that does reach the end, while the writer is paused, would
wait until all of it is on disk. So each checkpoint beside commits is followed by a sync of our own. Nothing counts on
it; it only leaves SQLite's own sync little to do. It brings the pages to the disk little by little (write_back.py):
commits beside it wait for the same disk. Not the few that are left while the writer is paused: that is quicker at once.

A log that starts over is written over. That is quicker than adding pages to a file: its length need not be synced.
So an idle one keeps its length, unless a long read has made it very long.
"""

import os
from threading import Lock

import apsw

from forq_trio.model import limits
from forq_trio.storage.engine import CheckpointResult
from forq_trio.storage.sqlite.files.faults import unavailable, unsynced
from forq_trio.storage.sqlite.files.identity import LOG_SUFFIX
from forq_trio.storage.sqlite.files.open import Database, open_checkpointer
from forq_trio.storage.sqlite.files.write_back import write_back


class SqliteLog:
    """The `WriteAheadLog` of one file. `checkpoint` may be called from any thread."""

    def __init__(self, database: Database) -> None:
        """The hook of the database's write connection reports after each commit how long the log is."""
        self.reserve_path = database.reserve_path
        self.files_problem = database.names.problem
        self._pages = self._moved = 0
        self._lock = Lock()
        self._database = database
        self._connection = open_checkpointer(database.real_path)
        # A checkpoint that empties the log fails at once while a reader uses it: the writer is paused meanwhile.
        self._connection.set_busy_timeout(0)
        database.connection.set_wal_hook(self._note_pages)

    def pages(self) -> int:
        return self._pages

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
        self._pages = self._moved = 0
        return CheckpointResult(0, 0)

    def _is_long(self) -> bool:
        try:
            return os.path.getsize(self._database.real_path + LOG_SUFFIX) > limits.LOG_KEPT_BYTES
        except FileNotFoundError:  # somebody removed it: jobs/file_watch.py
            return True

    def _copy(self) -> CheckpointResult:
        """Copy what can be copied beside commits and readers, and sync it."""
        result = self._move(apsw.SQLITE_CHECKPOINT_PASSIVE)
        before = self._moved if self._moved <= result.moved_pages else 0  # else the log has started over
        self._moved = result.moved_pages
        if result.moved_pages - before >= limits.WRITE_BACK_PAGES_MIN:
            write_back(self._database.descriptor)
        os.fdatasync(self._database.descriptor)
        return result

    def _move(self, mode: int) -> CheckpointResult:
        return CheckpointResult(*self._connection.wal_checkpoint(mode=mode))

    def close(self) -> None:
        """Wait for a checkpoint that runs, and close the connection."""
        with self._lock:
            self._connection.close()

    def _note_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
