"""Checks a database file, backs it up, and verifies a backup: for the command line.

Everything here reads one snapshot through a read-only connection, so it may be done to the file of a running
server.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice

import apsw
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.migrate import pending
from forq_trio.storage.relational import statements as sql
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.copy import Progress, copy_database
from forq_trio.storage.sqlite.files.identity import JOURNAL_SUFFIX, LOCK_SUFFIX, SQLITE_SUFFIXES
from forq_trio.storage.sqlite.files.open import RESERVE_SUFFIX, has_log, open_alone, open_reader
from forq_trio.storage.sqlite.files.recognise import FileKind, recognise, refusing

BESIDE = (*SQLITE_SUFFIXES, LOCK_SUFFIX, RESERVE_SUFFIX)
"""The suffixes of all files that may be beside a database."""

_COUNT = sql.load("count", "forq_trio.storage.sqlite")
_CHECK = sql.load("check", "forq_trio.storage.sqlite")
_COUNT_STORED = _CHECK.pop("count_stored")


class CheckReport(Struct, frozen=True):
    """What was found in a file."""

    problems: list[str]  # one sentence each, at most CHECK_PROBLEMS_MAX of a kind; none for a sound file
    messages: int
    queues: int
    schema_version: int  # the last migration that was applied; 0 for a file of Forq
    # a server of this version will migrate the file when it opens it; until then only SQLite's structure can be
    # checked, because check.sql is about the current tables
    is_older: bool = False

    @property
    def ok(self) -> bool:
        return not self.problems


def check_file(path: str) -> CheckReport:
    """Check a whole database file: SQLite's structure, then the statements of check.sql about our tables.

    Reads every page, so it takes as long as reading the file. Raises StorageOpenError if there is no such file, if it
    is neither ours nor Forq's, if a newer version wrote it, or if it is empty: its content may be in a log that is
    missing.
    """
    with _existing(path), closing(open_reader(path)) as connection:
        return _check(connection, path)


def verify_backup(path: str) -> CheckReport:
    """`check_file` for a backup, which has to be a single file: nothing beside it is read.

    Also raises StorageOpenError for a file without a queue, which a server would take for a new database, and for a
    file with a log beside it, which may contain further commits.
    """
    with _existing(path):
        if has_log(path) or has_log(path, JOURNAL_SUFFIX):
            raise StorageOpenError(
                f"{path} has a log beside it: it is a database in use, not a finished backup"
            )
        with closing(open_alone(path)) as connection:
            return _check(connection, path)


def backup_file(
    source: str, target: str, progress: Progress | None = None, *, overwrite: bool = False
) -> int:
    """Copy a database, even one in use, to `target`; returns the size of the copy in bytes.

    The copy is one file without a log, with everything that was committed when it began. It gets its name only once it
    is checked and on disk. progress: called with (pages done, pages in all). overwrite: replace an existing file of
    that name, unless it is the source or a database in use. Raises StorageOpenError.
    """
    _check_target(source, target, overwrite=overwrite)
    with _existing(source), closing(open_reader(source)) as connection:
        if recognise(connection, source) is FileKind.EMPTY:
            raise StorageOpenError(f"{source} is empty: there is nothing to back up")
        return copy_database(connection, target, progress)


def _check_target(source: str, target: str, *, overwrite: bool) -> None:
    if target.endswith(os.sep):
        raise StorageOpenError(f"{target} is the name of a directory: a backup is a file")
    real_target = os.path.realpath(target)
    for ending in BESIDE:
        database = real_target.removesuffix(ending)
        if database != real_target and os.path.exists(database):
            raise StorageOpenError(
                f"{target} belongs to the database {database}: a backup needs another name"
            )
    if not os.path.exists(target):
        return
    if os.path.exists(source) and os.path.samefile(source, target):
        raise StorageOpenError(f"{target} is the database itself: a backup needs another name")
    if has_log(target):
        raise StorageOpenError(f"{target} is a database in use and will not be overwritten")
    if not overwrite or not os.path.isfile(target):
        raise StorageOpenError(f"{target} exists already")


@contextmanager
def _existing(path: str) -> Iterator[None]:
    """The body reads `path`: a missing file, and errors of SQLite, become StorageOpenError."""
    if not os.path.isfile(path):
        raise StorageOpenError(f"{path} is not a file" if os.path.exists(path) else f"{path} does not exist")
    with refusing(path):
        yield


def _check(connection: apsw.Connection, path: str) -> CheckReport:
    """The report on one snapshot of the file."""
    connection.execute("BEGIN")
    kind = recognise(connection, path)
    if kind is FileKind.EMPTY:
        raise StorageOpenError(f"{path} holds no queue: it is empty, or a copy without the log beside it")
    version = connection.pragma("user_version") if kind is FileKind.OURS else 0
    is_older = kind is not FileKind.OURS or bool(
        pending(path, migrations.KNOWN, migrations.applied(connection))
    )
    problems: list[str] = []
    messages = queues = 0
    try:
        problems += _rows(connection, "PRAGMA integrity_check")
        if problems == ["ok"]:
            problems.clear()
        messages, queues = connection.execute(_COUNT["messages"]).get
        if not is_older:
            messages, queues = connection.execute(_COUNT_STORED).get
            for statement in _CHECK.values():
                problems += _rows(connection, statement)
    except apsw.CorruptError as error:
        problems.append(f"SQLite cannot read all of it: {error}")
    return CheckReport(problems, messages, queues, version, is_older)


def _rows(connection: apsw.Connection, statement: str) -> list[str]:
    return [str(text) for (text,) in islice(connection.execute(statement), limits.CHECK_PROBLEMS_MAX)]
