"""Migrates a database file of Forq to ours, in place, with every message, after a copy of the file was made.

It is one transaction on a connection that has the file to itself: whenever it is interrupted, the original is still
whole, and the next start begins again. What changes besides the schema:

- messages get sequence numbers in the order (received_at, id), in which Forq claims them
- a ready message that is due later becomes delayed
- only its user can read the file and the files beside it
- a message in process keeps its lease of 5 minutes and the receipt that Forq gave for it, the time of its claim
"""

import os
from contextlib import closing, suppress

import apsw

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.relational import statements as sql
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.copy import copy_database, dated_name
from forq_trio.storage.sqlite.files.identity import LOG_SUFFIXES
from forq_trio.telemetry.log import LogEvent, log

_SQL = sql.load("legacy", "forq_trio.storage.sqlite")


def migrate(real_path: str, path: str) -> None:
    """Migrate the Forq database at `real_path`; the copy is `<real_path>.forq-backup-<UTC time>`.

    Raises StorageOpenError (which names `path`) or an error of apsw, and leaves the file as it was.
    """
    with closing(apsw.Connection(real_path)) as connection:
        # Nobody else can have the file open in this mode, so a Forq that still runs is noticed before we write.
        connection.pragma("locking_mode", "EXCLUSIVE")
        if _one(connection, "unknown"):
            raise StorageOpenError(f"{path} is a Forq database with messages of an unknown status")
        backup = dated_name(real_path, "forq-backup")
        copy_database(connection, backup)
        _make_private(real_path)
        with migrations.immediate(connection):
            _convert(connection, path)
    log(LogEvent.DATABASE_MIGRATED, database=path, backup=backup)


def _make_private(real_path: str) -> None:
    """Let only this user read the file, as for a new one; SQLite gives its log the same permissions."""
    for ending in ("", *LOG_SUFFIXES):
        with suppress(FileNotFoundError):
            os.chmod(real_path + ending, 0o600)


def _convert(connection: apsw.Connection, path: str) -> None:
    connection.execute(_SQL["set_aside"])
    migrations.apply(connection, migrations.KNOWN)
    connection.execute(_SQL["copy"], {"lease_ms": limits.LEASE_MS_DEFAULT})
    if _one(connection, "lost"):
        raise StorageOpenError(f"{path} is a Forq database with messages that have no id")
    connection.execute(_SQL["count"])
    connection.execute(_SQL["drop"])


def _one(connection: apsw.Connection, name: str) -> int:
    return int(connection.execute(_SQL[name]).get)
