"""Opens a database file: for the one writer, for readers, for the checkpointer.

A file is first read through a read-only connection. Nothing is written, neither to it nor beside it, until it is known
to be empty, ours, or Forq's. Then one server locks it until it closes it (locks.py). A forked child releases the locks,
and cannot open the file again: its copy of SQLite's memory says that it holds locks, but they are its parent's.
"""

import os
import weakref
from contextlib import closing, suppress
from pathlib import Path

import apsw

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.migrate import Migrated
from forq_trio.storage.move import MARK, half_filled_by_move
from forq_trio.storage.on_disk import allocate
from forq_trio.storage.sqlite.files import legacy, migrations
from forq_trio.storage.sqlite.files.copy import INCREMENTAL, sync
from forq_trio.storage.sqlite.files.identity import (
    INDEX_SUFFIX,
    JOURNAL_SUFFIX,
    LOG_SUFFIX,
    FileNames,
    names_of,
)
from forq_trio.storage.sqlite.files.locks import DatabaseLock, refuse_if_open_here
from forq_trio.storage.sqlite.files.recognise import FileKind, recognise, refusing

_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "none": "OFF"}

RESERVE_SUFFIX = ".reserve"
_EFFECTIVE = os.access in os.supports_effective_ids


class LockedFile:
    """A locked, up-to-date file with its write connection. Use from one thread at a time.

    real_path: without symbolic links. names: all names of its files. reserve_path: see engine.py. descriptor: of the
    file, which holds the lock, to sync it; open as long as the database, because closing it ends the locks of this
    process on the file. gives_pages_back: free pages can be given back to the disk. version_found: the version of its
    schema before it was opened, 0 for a new file and one of Forq.
    """

    def __init__(
        self, path: str, connection: apsw.Connection, version_found: int, lock: DatabaseLock, real_path: str
    ) -> None:
        self.real_path = real_path
        self.connection = connection
        self.version_found = version_found
        self.reserve_path = _reserve_path(real_path)
        self.names = FileNames(names_of(path, real_path))
        self.gives_pages_back = connection.pragma("auto_vacuum") == INCREMENTAL
        self._lock = lock
        self._log_index = _allocate_log_index(real_path)
        self.descriptor = lock.file
        _open_here.add(self)

    def close(self) -> None:
        """Close the connection (closing the last one empties and removes the log), then release the locks."""
        if self._lock.held and self.names.problem() is not None:
            self._empty_log()
        self.connection.close()
        _open_here.discard(self)
        if self._log_index >= 0:
            os.close(self._log_index)
        self._log_index = self.descriptor = -1
        self._lock.close()

    def begin_in_child(self) -> None:
        """Leave the locks to the parent."""
        self.descriptor = -1
        self._lock.close()

    def _empty_log(self) -> None:
        """SQLite leaves the log of a file that was moved, and the next file of that name would be opened with it."""
        with suppress(apsw.Error):
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


_open_here: "weakref.WeakSet[LockedFile]" = weakref.WeakSet()
_open_before_fork: set[str] = set()


def _begin_in_child() -> None:
    for database in tuple(_open_here):
        database.begin_in_child()
        _open_before_fork.add(database.real_path)
    _open_here.clear()


os.register_at_fork(after_in_child=_begin_in_child)


def open_database(path: str, durability: str, *, half_filled: bool = False) -> LockedFile:
    """Open or create the file at `path` for a server, bring its schema up to date, and lock it.

    durability: "full" (fsync in every commit), "normal" (fsync at checkpoints) or "none" (never: for a
    temporary file). half_filled: also one that an interrupted move has filled in part. Raises StorageOpenError, one
    sentence, and leaves the file as it was.
    """
    real_path = check_path(path)
    if real_path in _open_before_fork:
        raise StorageOpenError(f"{path} was open when this process was forked: open it in another process")
    with refusing(path):
        check_one_name(real_path, path)
        make_directory(os.path.dirname(real_path))
        refuse_if_open_here(real_path, path)
        _check_kind(real_path, path, half_filled=half_filled)
        lock = DatabaseLock(real_path, path)
    try:
        with refusing(path):
            _make_file(real_path)
            lock.lock_file()
            Path(_reserve_path(real_path)).unlink(missing_ok=True)
            return LockedFile(path, *_open_writer(real_path, path, durability), lock, real_path)
    except BaseException:
        lock.close()
        raise


def migrate_file(path: str) -> Migrated:
    """Bring the schema of the file at `path`, which no server may have open, up to date. Raises StorageOpenError."""
    check_exists(path)
    database = open_database(path, "full")
    database.close()
    return Migrated(path, database.version_found, migrations.KNOWN[-1].version)


def check_exists(path: str) -> None:
    """Raise StorageOpenError if there is no file, or an empty one."""
    if not has_log(path, ""):
        raise StorageOpenError(f"{path} {'is empty' if os.path.exists(path) else 'does not exist'}")


def open_reader(path: str) -> apsw.Connection:
    """A connection that cannot write, for one thread at a time. Raises StorageOpenError."""
    with refusing(path):
        connection = apsw.Connection(os.path.realpath(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(limits.BUSY_WAIT_MS_MAX)
        _pin_plans(connection)
        connection.pragma("query_only", True)
        connection.pragma("temp_store", "MEMORY")
        connection.pragma("mmap_size", 0)
        return connection


def _pin_plans(connection: apsw.Connection) -> None:
    """Make SQLite plan each statement once, whatever its bindings; otherwise it plans some again for every run.

    Planning took longer than running: 15 of the 25 microseconds of a claim.
    """
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def open_checkpointer(path: str) -> apsw.Connection:
    """The connection that moves the log into the database of a running server, from a thread of its own."""
    with refusing(path):
        connection = apsw.Connection(os.path.realpath(path), flags=apsw.SQLITE_OPEN_READWRITE)
        _check_writable(connection, path)
        connection.set_busy_timeout(limits.BUSY_WAIT_MS_MAX)
        connection.wal_autocheckpoint(0)
        _sync_fully(connection)
        connection.pragma("schema_version")  # until its first read it knows no log, and moves nothing
        return connection


def _sync_fully(connection: apsw.Connection) -> None:
    """On macOS, make SQLite's syncs reach the disk, not only the cache of the drive (on_disk.py)."""
    connection.pragma("fullfsync", True)
    connection.pragma("checkpoint_fullfsync", True)


def open_alone(path: str) -> apsw.Connection:
    """A read-only connection that takes no lock and makes no files beside `path`; for a file without a writer."""
    uri = Path(os.path.realpath(path)).as_uri() + "?immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def has_log(path: str, suffix: str = LOG_SUFFIX) -> bool:
    """Whether `path` has a non-empty log beside it, which may contain committed changes."""
    return os.path.exists(path + suffix) and os.path.getsize(path + suffix) > 0


def check_path(path: str) -> str:
    """The real path of `path`; raises StorageOpenError where no database can be."""
    if not path or path == ":memory:":
        raise StorageOpenError(f"{path!r} is not the path of a database file")
    real_path = os.path.realpath(path)
    directory = os.path.dirname(real_path)
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        raise StorageOpenError(f"{path} cannot be created: {directory} is not a directory")
    if os.path.isdir(real_path):
        raise StorageOpenError(f"{path} is a directory, not a database file")
    if os.path.exists(real_path):
        if not os.path.isfile(real_path):
            raise StorageOpenError(f"{path} is not a regular file")
        if not os.access(real_path, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):
            raise StorageOpenError(f"{path} cannot be read and written by this user")
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
        raise StorageOpenError(f"{path} cannot be used: this user may not write to {directory}")
    return real_path


def check_one_name(real_path: str, path: str) -> None:
    """Raise StorageOpenError for a file with a second name."""
    if os.path.exists(real_path) and os.stat(real_path).st_nlink > 1:
        raise StorageOpenError(f"{path} has a second name (a hard link), and a log belongs to one name")


def make_directory(directory: str) -> None:
    """Make a directory and its missing parents, for this user alone, so that they survive a power cut."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    make_directory(parent)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    sync(parent)


def _make_file(real_path: str) -> None:
    """Create the file if it is missing, readable by this user alone; SQLite makes the files beside it alike."""
    with suppress(FileExistsError):
        os.close(os.open(real_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        sync(os.path.dirname(real_path))


def _check_kind(real_path: str, path: str, *, half_filled: bool) -> None:
    """Recognise the file without writing anything. Raises StorageOpenError."""
    if not os.path.exists(real_path) or os.path.getsize(real_path) == 0:
        return
    if has_log(real_path, JOURNAL_SUFFIX):
        connection = apsw.Connection(
            real_path
        )  # an interrupted transaction of the old kind: only a writer can undo it
    else:
        connection = open_reader(real_path) if has_log(real_path) else open_alone(real_path)
    with closing(connection):
        recognise(connection, path)
        if not half_filled and connection.table_exists(None, MARK):
            raise half_filled_by_move(path)


def _check_writable(connection: apsw.Connection, path: str) -> None:
    """Raise StorageOpenError if SQLite could open the file only for reading, and would refuse every batch."""
    if connection.readonly("main"):
        raise StorageOpenError(f"{path} cannot be written: the system lets it be read only")


def _reserve_path(real_path: str) -> str:
    return real_path + RESERVE_SUFFIX


def _allocate_log_index(real_path: str) -> int:
    """Allocate disk space for the index of the log, enough for a longer log than we ever have; faults.py says why.

    Returns a descriptor that must stay open as long as the database: closing it ends the locks of this process on the
    file. Returns -1 if there is no index. On a full disk nothing is allocated.
    """
    try:
        index = os.open(real_path + INDEX_SUFFIX, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    size = os.fstat(index).st_size
    if size < limits.LOG_INDEX_BYTES:
        with suppress(OSError):
            allocate(index, size, limits.LOG_INDEX_BYTES - size)
    return index


def _open_writer(real_path: str, path: str, durability: str) -> tuple[apsw.Connection, int]:
    """The write connection, on a file that this process has locked, and the version that its schema had."""
    connection = apsw.Connection(real_path)
    try:
        connection.set_busy_timeout(limits.BUSY_WAIT_MS_MAX)
        _check_writable(connection, path)
        kind = recognise(connection, path)
        if kind is FileKind.FORQ:
            connection.close()
            legacy.migrate(real_path, path)
            connection = apsw.Connection(real_path)
            connection.set_busy_timeout(limits.BUSY_WAIT_MS_MAX)
        _pin_plans(connection)
        if kind is FileKind.EMPTY:
            connection.pragma("auto_vacuum", INCREMENTAL)
        connection.pragma("journal_mode", "WAL")
        connection.pragma("synchronous", _SYNCHRONOUS[durability])
        _sync_fully(connection)
        connection.wal_autocheckpoint(0)
        connection.pragma("journal_size_limit", limits.LOG_BYTES_KEPT_MAX)
        connection.pragma("temp_store", "MEMORY")
        connection.pragma("cache_size", -limits.PAGE_CACHE_BYTES // limits.KIB)
        connection.pragma("mmap_size", 0)
        version_found = migrations.migrate(connection, path)
        connection.pragma("analysis_limit", limits.ANALYSIS_ROWS_MAX)  # a start must not read the whole file
        connection.pragma("optimize", 0x10002)
        return connection, 0 if kind is FileKind.FORQ else version_found
    except BaseException:
        connection.close()
        raise
