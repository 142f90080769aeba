"""Puts a backup in the place of a database: for the command line.

A database is its file and the log beside it. The log contains the last commits, and must not stay beside another file
(replace.py); that is why nobody should copy a backup over a database by hand. The steps:

1. The backup is checked, and the lock of the database is taken: no server has it, and none can start.
2. SQLite moves the log of the old database into its file, so that the file alone is the whole database. If SQLite
   cannot read that file, it stays as it is, with its log.
3. The backup is copied to a temporary file in the same directory, checked again, and synced.
4. The old file gets a second name with the date in it, and so does a log that step 2 left. Then there is only the file
   itself under the names that SQLite looks for.
5. The copy takes the name of the database, in one step of the file system.

The directory is synced before the next step wherever the order matters. So whenever this is interrupted, the name
belongs to the old database or to the new one, each whole. Only between 4 and 5 does the old one have two names, and no
server opens it then: restore again, or remove the second name.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.check import verify_backup
from forq_trio.storage.sqlite.files.copy import Progress, copy_database, dated_name, sync
from forq_trio.storage.sqlite.files.identity import JOURNAL_SUFFIX, LOG_SUFFIX, SQLITE_SUFFIXES
from forq_trio.storage.sqlite.files.open import check_path, has_log, open_alone
from forq_trio.storage.sqlite.files.replace import replacing

_WITH_CONTENT = ("", LOG_SUFFIX, JOURNAL_SUFFIX)


class Restored(Struct, frozen=True):
    """The result of a restore. size: of the new database, in bytes. replaced: the old one's new name, None for none."""

    size: int
    replaced: str | None


def restore_file(backup: str, path: str, progress: Progress | None = None) -> Restored:
    """Put `backup` in the place of the database at `path`, which stays under another name.

    progress: called with (pages done, pages in all). Raises StorageOpenError, and leaves everything as it was, if the
    backup is not sound, or if the database is open in a server or another program or belongs to another user.
    """
    real_path = check_path(path)
    _check_backup(backup, real_path)
    with replacing(path), closing(open_alone(backup)) as source:
        replaced = dated_name(real_path, "replaced")
        size = copy_database(source, real_path, progress, _old_database_kept(real_path, replaced))
    kept = any(os.path.exists(replaced + ending) for ending in _WITH_CONTENT)
    return Restored(size, replaced if kept else None)


def _check_backup(backup: str, real_path: str) -> None:
    """Raise StorageOpenError unless `backup` is one whole, sound file."""
    if has_log(backup):
        raise StorageOpenError(
            f"{backup} has a log beside it, so it is not all of a database: make one file of the two with "
            f"`forq backup --db {backup} TARGET`, and restore that"
        )
    report = verify_backup(backup)
    if not report.ok:
        raise StorageOpenError(f"{backup} is not sound: {report.problems[0]}")
    if os.path.exists(real_path) and os.path.samefile(backup, real_path):
        raise StorageOpenError(f"{backup} is the database itself")


@contextmanager
def _old_database_kept(real_path: str, aside: str) -> Iterator[None]:
    """Give the old database a second name, so that the body replaces nothing but the file; undone if the body fails."""
    directory = os.path.dirname(real_path)
    endings = [ending for ending in _WITH_CONTENT if has_log(real_path, ending)]
    try:
        for ending in endings:
            os.link(real_path + ending, aside + ending)
        sync(directory)
        for ending in SQLITE_SUFFIXES:
            Path(real_path + ending).unlink(missing_ok=True)
        sync(directory)
        yield
    except BaseException:
        for ending in endings:
            _rename_back(aside + ending, real_path + ending)
        raise


def _rename_back(aside: str, name: str) -> None:
    with suppress(FileNotFoundError):
        if os.path.exists(name):
            os.unlink(aside)
        else:
            os.rename(aside, name)
