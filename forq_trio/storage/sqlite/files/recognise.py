"""Recognises a SQLite file before anything is written to it, or says in one sentence why it cannot be used."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

import apsw

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.migrate import pending
from forq_trio.storage.relational import statements as sql
from forq_trio.storage.sqlite.files import migrations

_SQL = sql.load("recognise", "forq_trio.storage.sqlite")

_FORQ_COLUMNS = frozenset(
    (
        "id",
        "queue",
        "is_dlq",
        "content",
        "status",
        "attempts",
        "process_after",
        "processing_started_at",
        "failure_reason",
        "received_at",
        "updated_at",
        "expires_after",
    )
)
_OUR_TABLES = frozenset(("migrations", "queue_counts", "dedup"))

_REFUSALS: tuple[tuple[type[Exception], str], ...] = (
    (apsw.NotADBError, "is not a SQLite database"),
    (apsw.CorruptError, "is damaged: SQLite cannot read it"),
    (apsw.BusyError, "is locked by another process"),
    (apsw.LockedError, "is locked by another process"),
    (apsw.FullError, "cannot be written: the disk is full"),
    (apsw.ReadOnlyError, "cannot be written: look at the permissions of the file and its directory"),
    (apsw.CantOpenError, "cannot be opened: look at the permissions of the file and its directory"),
)


class FileKind(Enum):
    """The kinds of files that we can open. FORQ: a database made by Forq."""

    EMPTY = auto()
    OURS = auto()
    FORQ = auto()


def recognise(connection: apsw.Connection, path: str) -> FileKind:
    """Say what the file behind `connection` is, reading a few pages and writing nothing.

    Raises StorageOpenError for a database of another program or another schema version, and errors of apsw if the pages
    that were read are damaged.
    """
    tables = {name for (name,) in connection.execute(_SQL["tables"])}
    if connection.pragma("application_id") == migrations.APPLICATION_ID:
        if not tables.issuperset(_OUR_TABLES):
            raise StorageOpenError(f"{path} is damaged: tables of forq-trio are missing")
        pending(path, migrations.KNOWN, migrations.applied(connection))
        connection.execute(_SQL["touch"]).fetchall()
        return FileKind.OURS
    if not connection.execute(_SQL["objects"]).fetchall():
        return FileKind.EMPTY
    columns = {name for (name,) in connection.execute(_SQL["columns"])}
    if columns.issuperset(_FORQ_COLUMNS) and tables.isdisjoint(_OUR_TABLES):
        return FileKind.FORQ
    raise StorageOpenError(f"{path} is a SQLite database of another program")


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn errors of SQLite and of the system in the body into StorageOpenError, with one sentence about `path`."""
    try:
        yield
    except apsw.Error as error:
        reasons = (reason for kind, reason in _REFUSALS if isinstance(error, kind))
        raise StorageOpenError(f"{path} {next(reasons, f'cannot be used: {error}')}") from error
    except OSError as error:
        raise StorageOpenError(f"{path} cannot be used: {error.strerror or error}") from error
