"""Replaces a database that no other process has open, all of it in one file: for `forq restore` and `forq compact`.

If the log of the old file stayed, the next start would read it into the new file and destroy that. So there is no log
any more when the new file takes the name.
"""

import os
import pwd
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.locks import DatabaseLock
from forq_trio.storage.sqlite.files.open import check_path, has_log, make_directory
from forq_trio.storage.sqlite.files.recognise import refusing


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Lock the database at `path` while the body replaces it, and move its log into its file; yields its real path.

    The log of a file that SQLite cannot read stays. Raises StorageOpenError if a server or another program has the
    database open, or if it belongs to another user. Errors of SQLite and of the system in the body become one, too.
    """
    real_path = check_path(path)
    with refusing(path):
        _check_owner(real_path, path)
        make_directory(os.path.dirname(real_path))
        lock = DatabaseLock(real_path, path)
        try:
            if os.path.exists(real_path):
                lock.lock_file()
            _move_log_into_file(real_path)
            yield real_path
        finally:
            lock.close()


def _check_owner(real_path: str, path: str) -> None:
    """Raise StorageOpenError if the server could not open a file that this user makes."""
    place = real_path if os.path.exists(real_path) else _nearest_directory(real_path)
    owner = os.stat(place).st_uid
    if owner != os.geteuid() and (place == real_path or os.geteuid() == 0):
        raise StorageOpenError(f"{place} belongs to {_user(owner)}: replace {path} as that user")


def _nearest_directory(real_path: str) -> str:
    return str(next(parent for parent in Path(real_path).parents if parent.exists()))


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _move_log_into_file(real_path: str) -> None:
    """Make the database one file, unless it is damaged. Raises apsw.BusyError where another program has it open."""
    if not has_log(real_path, ""):
        return
    with suppress(apsw.CorruptError, apsw.NotADBError), closing(apsw.Connection(real_path)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # closing a damaged file changes nothing
        connection.pragma("locking_mode", "EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE; COMMIT")
        connection.pragma("journal_mode", "DELETE")
