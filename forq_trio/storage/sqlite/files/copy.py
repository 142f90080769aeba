"""Copies a database as of one moment, through SQLite's online backup, while others go on writing to it."""

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import apsw

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.recognise import refusing

Progress = Callable[[int, int], None]


def copy_database(
    source: apsw.Connection,
    target: str,
    progress: Progress | None = None,
    naming: AbstractContextManager[object] | None = None,
    checking: Callable[[], None] | None = None,
) -> int:
    """Write what `source` sees to the file `target`; returns its size in bytes.

    The copy is a single file without a log. It gets its name only when it is complete, checked and on disk,
    and replaces what had that name. One read transaction lasts for the whole copy, so that SQLite does not
    start again at each commit of the server. The server goes on, but cannot empty its log meanwhile.
    progress: called after each step with (pages done, pages in all). naming: entered when the copy is on disk; it gets
    its name inside. checking: called now and then while the copy is checked. What progress and checking raise comes
    out.

    Raises StorageOpenError when the copy cannot be written or turns out damaged; then there is no target.
    """
    with refusing(target):
        directory, name = os.path.split(os.path.realpath(target))
        descriptor, partial = tempfile.mkstemp(prefix=f"{name}.", suffix=".partial", dir=directory)
        try:
            with os.fdopen(descriptor), closing(apsw.Connection(partial)) as copy:
                _copy_pages(source, copy, descriptor, progress)
                copy.pragma("journal_mode", "DELETE")
                if checking is not None:
                    copy.set_progress_handler(_going_on(checking), limits.BACKUP_CHECK_STEPS)
                problems = copy.pragma("integrity_check")
            if problems != "ok":
                raise StorageOpenError(f"{target} was not written: the copy is damaged, so its source is")
            _remove(partial, "-journal", "-wal", "-shm")  # nothing is in them, and closing may fail to
            size = os.path.getsize(partial)
            sync(partial)
            with naming or nullcontext():
                os.replace(partial, os.path.join(directory, name))
            sync(directory)
        except BaseException:
            _remove(partial, "", "-journal", "-wal", "-shm")
            raise
    return size


def _remove(partial: str, *endings: str) -> None:
    for ending in endings:
        Path(partial + ending).unlink(missing_ok=True)


def dated_name(path: str, word: str) -> str:
    """A free name beside `path` for what is kept of it: `<path>.<word>-<UTC time>`."""
    name = f"{path}.{word}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    return name if not os.path.lexists(name) else f"{name}-{os.getpid()}"


def sync(path: str) -> None:
    """Wait until a file's content, or a directory's names, are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _going_on(checking: Callable[[], None]) -> Callable[[], bool]:
    def go_on() -> bool:
        checking()
        return False

    return go_on


def _copy_pages(
    source: apsw.Connection, copy: apsw.Connection, descriptor: int, progress: Progress | None
) -> None:
    """Copy all pages. They are synced in portions: who shares the disk waits for one of them, not for all."""
    copy.pragma("synchronous", "OFF")
    synced = 0
    source.execute("BEGIN")
    try:
        source.pragma("schema_version")  # the first read takes the snapshot
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(limits.BACKUP_STEP_PAGES)
                done = backup.page_count - backup.remaining
                if done - synced >= limits.BACKUP_SYNC_PAGES:
                    os.fdatasync(descriptor)
                    synced = done
                if progress is not None:
                    progress(done, backup.page_count)
    finally:
        source.execute("ROLLBACK")
