"""What an error of SQLite means for a batch: the disk is full, the database is unavailable, or the outcome is unknown.

Tests with a faulty disk (tests/reliability/disk) and SQLite's `wal.c` show what happens when a COMMIT fails. In WAL
mode a commit does, in this order:

1. Writes the changed pages to the log, the last one with the mark that makes the transaction valid, and a checksum over
   all of it. A write that fails (SQLITE_FULL, SQLITE_IOERR_WRITE) leaves the mark unwritten or its checksum wrong: no
   recovery will ever take the transaction for committed, SQLite has rolled it back in memory too, and the next commit
   writes over it. So it is certain that nothing was changed, and the engine continues. (SQLite would write the mark
   more than once for a disk whose writes may damage adjacent bytes; its VFS for Unix assumes that none do.)
2. With `full`, syncs the log. If the sync fails (SQLITE_IOERR_FSYNC), SQLite rolls back in memory, but the whole
   transaction is in the log, maybe on disk: if the process dies now, the next one finds it committed. The outcome is
   unknown.
3. Notes the pages in the index of the log, a mapped file that grows by 32 KiB for every 4,096 pages. If it cannot grow
   (SQLITE_IOERR_SHMSIZE: a full disk again), SQLite reports a failure and rolls back in memory what is already synced.
   The outcome is unknown, too. `open.py` allocates the index beforehand so that this does not happen.

SQLite reports an exhausted quota as SQLITE_IOERR_WRITE with the system's error number. Outside of a commit it may
report a full disk as SQLITE_IOERR_SHMSIZE.
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
    """The error for callers after `error`, the latest one on `connection`, kept anything from being changed."""
    kind = StorageFull if _is_full(error, connection) else StorageUnavailable
    return kind(str(error))


def unsynced(error: OSError) -> StorageUnavailable:
    """The error for a failed sync of our own; SQLite's later sync, through its own descriptor, fails as well."""
    kind = StorageFull if error.errno in _NO_SPACE else StorageUnavailable
    return kind(f"the database cannot be synced: {error.strerror}")


def changed_nothing(error: apsw.Error) -> bool:
    """True if after a COMMIT that failed with this error, nothing of it can ever count as committed."""
    return isinstance(error, apsw.FullError) or _code(error) == apsw.SQLITE_IOERR_WRITE


def _is_full(error: apsw.Error, connection: apsw.Connection) -> bool:
    if isinstance(error, apsw.FullError) or _code(error) == apsw.SQLITE_IOERR_SHMSIZE:
        return True
    return _code(error) == apsw.SQLITE_IOERR_WRITE and connection.system_errno in _NO_SPACE


def _code(error: apsw.Error) -> int:
    """SQLite's extended result code; 0 for an error of the binding itself."""
    return getattr(error, "extendedresult", 0)
