"""What an error of SQLite means for a batch: the disk is full, the database is unavailable, or the outcome is unknown.

Tests with a faulty disk (tests/reliability/disk) and SQLite's `wal.c` show what happens when a COMMIT fails. In WAL
mode a commit does, in this order:

1. Writes the changed pages to the log, the last one with the mark that makes the transaction valid, and a checksum over
   all of it. A write that fails (SQLITE_FULL, SQLITE_IOERR_WRITE) leaves the mark unwritten or its checksum wrong: no
   recovery will ever take the transaction for committed, SQLite has rolled it back in memory too, and the next commit
   writes over what is there. So it is known that nothing was changed, and the engine continues. (SQLite would write the
   mark more than once on a disk that tears its neighbours; its VFS for Unix assumes none that does.)
2. With `full`, syncs the log. A sync that fails (SQLITE_IOERR_FSYNC) rolls back in memory, but the whole transaction
   is in the log, maybe on disk: if the process dies now, the next one finds it committed. The outcome is unknown.
3. Notes the pages in the index of the log, a file that is mapped and grows by 32 KiB for every 4,096 pages. When it
   cannot (SQLITE_IOERR_SHMSIZE: a full disk again), SQLite reports failure and rolls back in memory what is synced
   already. Unknown, too; `open.py` gives the index its space beforehand so that it does not happen.

A quota that is used up is reported as SQLITE_IOERR_WRITE with the system's error number, and a full disk outside of a
commit may show as SQLITE_IOERR_SHMSIZE.
"""

import errno

import apsw

from forq_trio.model.errors import StorageFull, StorageUnavailable

STORAGE_ERRORS: tuple[type[apsw.Error], ...] = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
"""Errors of the database or the disk, not of the command."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def unavailable(error: apsw.Error, connection: apsw.Connection) -> StorageUnavailable:
    """The error for callers when nothing was changed because of `error`, the latest one on `connection`."""
    kind = StorageFull if _is_full(error, connection) else StorageUnavailable
    return kind(str(error))


def unsynced(error: OSError) -> StorageUnavailable:
    """The error of a sync of ours that failed; SQLite's own sync of the file, through its own descriptor, fails too."""
    kind = StorageFull if error.errno in _NO_SPACE else StorageUnavailable
    return kind(f"the database cannot be synced: {error.strerror}")


def changed_nothing(error: apsw.Error) -> bool:
    """True if a COMMIT that failed like this left nothing that could ever count as committed."""
    return isinstance(error, apsw.FullError) or _code(error) == apsw.SQLITE_IOERR_WRITE


def _is_full(error: apsw.Error, connection: apsw.Connection) -> bool:
    if isinstance(error, apsw.FullError) or _code(error) == apsw.SQLITE_IOERR_SHMSIZE:
        return True
    return _code(error) == apsw.SQLITE_IOERR_WRITE and connection.system_errno in _NO_SPACE


def _code(error: apsw.Error) -> int:
    """SQLite's extended result code; 0 for an error of the binding itself."""
    return getattr(error, "extendedresult", 0)
