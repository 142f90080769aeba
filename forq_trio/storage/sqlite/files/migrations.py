"""Runs the schema migrations of a SQLite file, and marks the file as ours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from forq_trio.storage.migrate import Applied, Migration, load, pending, version_of
from forq_trio.storage.relational import statements as sql

APPLICATION_ID = int.from_bytes(b"forq")
KNOWN = load("forq_trio.storage.sqlite")
_SQL = sql.load("migrations", "forq_trio.storage.sqlite")


def applied(connection: apsw.Connection) -> list[Applied]:
    """The migrations that were applied to a file of ours. Raises apsw.SQLError if it has no table of migrations."""
    return [Applied(*row) for row in connection.execute(_SQL["applied"])]


def migrate(connection: apsw.Connection, path: str) -> int:
    """Bring an empty file, or one of ours, up to date: each missing migration in a transaction of its own.

    Returns the version that it had before. Raises StorageOpenError if unknown migrations were applied to it.
    """
    had = applied(connection) if connection.pragma("application_id") == APPLICATION_ID else []
    for migration in pending(path, KNOWN, had):
        with immediate(connection):
            apply(connection, [migration])
    return version_of(had)


def apply(connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    """Execute migrations and record them, inside the transaction that is open."""
    for migration in migrations:
        connection.execute(_SQL["create"])
        connection.execute(migration.sql)
        connection.execute(_SQL["record"], (migration.version, migration.name, migration.checksum))
        connection.pragma("user_version", migration.version)
    connection.pragma("application_id", APPLICATION_ID)


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction that takes its lock at once; committed at the end, rolled back by any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
