"""Copies a database as of one moment, while others go on writing to it.

SQLite writes the copy afresh (VACUUM INTO), table by table, so it has no free pages. And the copy can give free pages
back to the disk (open.py) even if the original cannot.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import apsw

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.on_disk import sync_all, sync_data
from forq_trio.storage.sqlite.files.identity import SQLITE_SUFFIXES
from forq_trio.storage.sqlite.files.recognise import refusing

Progress = Callable[[int, int], None]

INCREMENTAL = 2
"""The auto_vacuum of our files: free pages are given back only when we ask for it, never by a commit."""
_INTO = "VACUUM INTO ?"


def copy_database(
    source: apsw.Connection,
    target: str,
    progress: Progress | None = None,
    naming: AbstractContextManager[object] | None = None,
    checking: Callable[[], None] | None = None,
) -> int:
    """Write what `source` sees to the file `target`; returns its size in bytes.

    The copy is a single file without a log and without free pages. It gets its name only when it is complete, checked
    and on disk, and replaces a file of that name. One read transaction lasts for the whole copy: the server goes on,
    but cannot empty its log in the meantime. `source` must not be in a transaction.
    progress: called after each step with (pages done, pages in all). naming: a context manager, entered when the copy
    is on disk, inside of which it gets its name. checking: called now and then while the copy is checked. Exceptions of
    progress and checking are passed on.

    Raises StorageOpenError if the copy cannot be written or turns out to be damaged; then there is no target.
    """
    with refusing(target):
        directory, name = os.path.split(os.path.realpath(target))
        descriptor, partial = tempfile.mkstemp(prefix=f"{name}.", suffix=".partial", dir=directory)
        try:
            with os.fdopen(descriptor):
                problems = _write(source, partial, descriptor, progress, checking)
            if problems != "ok":
                raise StorageOpenError(f"{target} was not written: the copy is damaged, so its source is")
            _remove(partial, *SQLITE_SUFFIXES)  # they are empty, and closing the copy may have failed to
            size = os.path.getsize(partial)
            sync(partial)
            with naming or nullcontext():
                os.replace(partial, os.path.join(directory, name))
            sync(directory)
        except BaseException:
            _remove(partial, "", *SQLITE_SUFFIXES)
            raise
    return size


def _remove(partial: str, *endings: str) -> None:
    for ending in endings:
        Path(partial + ending).unlink(missing_ok=True)


def dated_name(path: str, word: str) -> str:
    """A free name beside `path`: `<path>.<word>-<UTC time>`."""
    name = f"{path}.{word}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    return name if not os.path.lexists(name) else f"{name}-{os.getpid()}"


def sync(path: str) -> None:
    """Wait until the content of a file, or the names in a directory, are on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_all(descriptor)
    finally:
        os.close(descriptor)


def _write(
    source: apsw.Connection,
    partial: str,
    descriptor: int,
    progress: Progress | None,
    checking: Callable[[], None] | None,
) -> str:
    """Write the copy and check it; returns the result of SQLite's check, "ok" for a sound copy."""
    try:
        _copy_pages(source, partial, descriptor, progress or (lambda done, total: None))
        with closing(apsw.Connection(partial)) as copy:
            copy.pragma("auto_vacuum", INCREMENTAL)
            if checking is not None:
                copy.set_progress_handler(_going_on(checking), limits.BACKUP_CHECK_STEPS)
            return str(copy.pragma("integrity_check"))
    except apsw.CorruptError as error:
        return str(error)


def _going_on(checking: Callable[[], None]) -> Callable[[], bool]:
    def go_on() -> bool:
        checking()
        return False

    return go_on


def _copy_pages(source: apsw.Connection, partial: str, descriptor: int, progress: Progress) -> None:
    """Copy all pages in use and sync them in portions, so that others who use the disk wait for one portion at most."""
    page_bytes = source.pragma("page_size")
    total = source.pragma("page_count") - source.pragma("freelist_count")
    done = synced = 0

    def note() -> None:
        nonlocal done, synced
        written = min(os.fstat(descriptor).st_size // page_bytes, total - 1)
        if written - synced >= limits.BACKUP_SYNC_PAGES:
            sync_data(descriptor)
            synced = written
        if written - done >= limits.BACKUP_STEP_PAGES:
            done = written
            progress(done, total)

    source.pragma("query_only", False)  # else nothing may be written to the copy either
    source.pragma("synchronous", "OFF")
    source.pragma("cache_size", limits.BACKUP_STEP_PAGES)  # of the copy as well: further pages go to its file
    if source.pragma("auto_vacuum") == 0:
        source.pragma("auto_vacuum", INCREMENTAL)  # of the copy; that of the source cannot be changed
    source.set_progress_handler(_going_on(note), limits.BACKUP_CHECK_STEPS)
    try:
        source.execute(_INTO, (partial,))
    finally:
        source.set_progress_handler(None)
    sync_data(descriptor)
    progress(total, total)
