"""Connects to a database, brings its schema up to date, and says in one sentence why it cannot be used."""

import re
from contextlib import closing
from time import monotonic, sleep
from urllib.parse import unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.server.database_urls import split_pooled
from forq_trio.storage.migrate import Applied, Migrated, load, pending, version_of
from forq_trio.storage.move import MARK, half_filled_by_move
from forq_trio.storage.postgres.connecting import CONNECT_SECONDS
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.failures import (
    LOCK_TIMEOUT,
    DatabaseFailed,
    Outdated,
    StatementFailed,
    unavailable,
)

VERSION_MIN = 13
"""The oldest supported major version of PostgreSQL."""
ENCODING = "UTF8"
"""The encoding that a database must have. Others refuse some texts, or (SQL_ASCII) store any bytes."""
KNOWN = load("forq_trio.storage.postgres")
_NO_RIGHTS = "42501"
_OF_THE_SCHEMA = ("42", "0A")
"""The classes of errors of statements that do not match the tables."""
MIGRATION_WAIT_SECONDS_MAX = 600.0
MIGRATION_PAUSE_SECONDS = 0.5
"""The pause between two attempts to migrate, in which batches and reads can run."""
TRANSACTION_IDLE_SECONDS = 2
"""How long the database waits for a process amid a transaction, which others wait for, before it ends that."""
_MISREAD = (
    "the database URL cannot be read: in a name or password write @ as %40, / as %2F, ? as %3F, % as %25"
)
_CONNECTION = {
    "application_name": "forq",
    "connect_timeout": str(CONNECT_SECONDS),
    "client_encoding": "utf8",
    "tcp_user_timeout": "5000",
    "target_session_attrs": "read-write",
}
SESSION = {
    "search_path": "forq",
    "timezone": "UTC",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    "statement_timeout": "5s",
    "lock_timeout": "2200ms",
    # A commit does not wait for the disk; if an answer depends on it, the statement `flush` does.
    "synchronous_commit": "off",
    # A plan follows the index along which the fewest rows are read, whatever the statistics say.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1",
    "cpu_tuple_cost": "1",
    "cpu_index_tuple_cost": "1",
    "effective_cache_size": "1TB",
}
"""The settings of each of our connections (of each transaction in a pool); `DatabaseAddress.connect` adds some."""


class DatabaseAddress:
    """The address of a database: a URL of libpq, and our option `pooled`. `name` is safe to show: no password."""

    def __init__(self, url: str) -> None:
        """Raises StorageOpenError for a URL that libpq cannot read."""
        url, self._pooled = split_pooled(url)
        # libpq ends the password at the first of @ and /: what follows would be shown as a host, a port or a database
        behind = re.sub("^[^@/]*@", "", url.partition("://")[2])
        if "@" in behind.partition("?")[0]:
            raise StorageOpenError(_MISREAD)
        try:
            parts = conninfo_to_dict(url)
        except ProgrammingError as error:
            if "@" in behind:
                raise StorageOpenError(_MISREAD) from None
            raise StorageOpenError(f"the database URL cannot be read: {_without(url, str(error))}") from None
        host = parts.get("host") or parts.get("hostaddr") or "the local socket"
        self.name = f"the PostgreSQL database {parts.get('dbname') or parts.get('user') or '?'} at {host}"
        self._password = str(parts.get("password") or "")
        self.conninfo = make_conninfo("", **{**_CONNECTION, **parts, "client_encoding": "utf8"})
        self.replica_conninfo = make_conninfo(
            "", **{**_CONNECTION, "target_session_attrs": "any", **parts, "client_encoding": "utf8"}
        )

    def connect(self, *, idle_seconds: int | None = None, replica: bool = False) -> PgConnection:
        """Connect. idle_seconds: how long a transaction may wait for its client; None for TRANSACTION_IDLE_SECONDS.

        replica: accept a read-only server. Raises DatabaseFailed.
        """
        idle_seconds = TRANSACTION_IDLE_SECONDS if idle_seconds is None else idle_seconds
        more = {"idle_in_transaction_session_timeout": f"{idle_seconds}s"}
        conninfo = self.replica_conninfo if replica else self.conninfo
        return PgConnection(conninfo, SESSION | more, pooled=self._pooled)

    def refused(self, error: Exception) -> StorageOpenError:
        """The error with which our server refuses to start."""
        reason = str(error)
        if getattr(error, "sqlstate", "") == _NO_RIGHTS:
            reason += "; let the role own the database, or have `forq migrate` run by one that does"
        if self._password:
            reason = reason.replace(self._password, "***")
        return StorageOpenError(f"{self.name} cannot be used: {reason}")


def _without(url: str, message: str) -> str:
    """A message without the URL, which may contain a password before the host or in a parameter."""
    message = " ".join(message.split()).replace(url, "the URL")
    address, _, query = url.partition("://")[2].partition("?")
    secret = address.rpartition("@")[0].partition(":")[2]
    for each in filter(None, (secret, unquote(secret))):
        message = message.replace(each, "***")
    behind = query.partition("password=")[2]
    return re.sub('"([^"]{2,})"', lambda quoted: '"***"' if quoted[1] in behind else quoted[0], message)


def open_writer(address: DatabaseAddress, *, half_filled: bool = False) -> PgConnection:
    """Open the write connection, after bringing the database up to date. Raises StorageOpenError.

    half_filled: accept a database that an interrupted move has filled in part.
    """
    return _open_writer(address, half_filled=half_filled)[0]


def has_schema(address: DatabaseAddress) -> bool:
    """Whether the database has our schema. Raises StorageOpenError."""
    try:
        connection = address.connect()
        with closing(connection):
            return bool(connection.query("tables"))
    except DatabaseFailed as error:
        raise address.refused(error) from None


def migrate(url: str) -> Migrated:
    """Create the schema or bring it up to date, and nothing else. Raises StorageOpenError."""
    address = DatabaseAddress(url)
    connection, before = _open_writer(address)
    connection.close()
    return Migrated(address.name, before, KNOWN[-1].version)


def _open_writer(address: DatabaseAddress, *, half_filled: bool = False) -> tuple[PgConnection, int]:
    """The connection, and the version that the schema had."""
    try:
        connection = address.connect()
    except DatabaseFailed as error:
        raise address.refused(error) from None
    try:
        if connection.server_version < VERSION_MIN * 10_000:
            found = connection.server_version // 10_000
            raise StorageOpenError(f"{address.name} is PostgreSQL {found}; use {VERSION_MIN} or newer")
        ((encoding,),) = connection.query("encoding")
        if encoding != ENCODING:
            raise StorageOpenError(
                f"{address.name} has the encoding {encoding}, which cannot store every text; use a database of"
                f" {ENCODING} (createdb --encoding={ENCODING} --template=template0)"
            )
        if not half_filled and (MARK,) in connection.query("tables"):
            raise half_filled_by_move(address.name)
        version_found = _migrate(connection, address.name)
    except (DatabaseFailed, StatementFailed) as error:
        connection.close()
        raise address.refused(error) from None
    except BaseException:
        connection.close()
        raise
    return connection, version_found


def _migrate(connection: PgConnection, name: str) -> int:
    """Create the schema or bring it up to date, in one transaction; returns the version that it had.

    One process at a time does this, and no batch runs meanwhile. If somebody holds a lock, each attempt waits only
    shortly for it and then lets others run, because everybody else waits just as long.
    """
    had = _applied(connection, name) if connection.query("tables") else []
    if had and not pending(name, KNOWN, had):
        return version_of(had)
    ends_at = monotonic() + MIGRATION_WAIT_SECONDS_MAX
    while True:
        try:
            return _migrate_once(connection, name)
        except DatabaseFailed as error:
            if error.sqlstate != LOCK_TIMEOUT:
                raise
        connection.query("rollback")
        if monotonic() >= ends_at:
            raise StorageOpenError(
                f"{name} cannot be brought up to date: another process migrates it, or a transaction holds a table"
            )
        sleep(MIGRATION_PAUSE_SECONDS)


def _migrate_once(connection: PgConnection, name: str) -> int:
    """One attempt. Raises DatabaseFailed with LOCK_TIMEOUT if somebody holds a lock that it needs."""
    connection.send("begin")
    connection.query("take_time")
    if ("migrations",) in connection.query("tables"):
        connection.query("migration_gate")
        connection.query("gate")
    else:
        connection.query("first_migration_gate")
    had = _applied(connection, name) if connection.query("tables") else []
    missing = pending(name, KNOWN, had)
    if missing and not had:
        if not connection.query("schema"):  # the role may own the schema without the right to create one
            connection.query("create_schema")
        connection.query("create_migrations")
    for migration in missing:
        connection.script(migration.sql)
        connection.query("record", migration.version, migration.name, migration.checksum)
    connection.query("commit")
    connection.query("flush")
    return version_of(had)


def refusal(connection: PgConnection, error: DatabaseFailed) -> StorageUnavailable:
    """The error for callers after a failure that changed nothing: Outdated if a newer version migrated the tables."""
    if error.sqlstate[:2] in _OF_THE_SCHEMA:
        try:
            version = version_of([Applied(*row) for row in connection.query("applied")])
        except (DatabaseFailed, StatementFailed):
            return unavailable(error)
        if version > KNOWN[-1].version:
            return Outdated(
                f"a newer version of forq-trio has brought the database to version {version} of its tables, which this"
                f" one, of version {KNOWN[-1].version}, must not write: start the newer one"
            )
    return unavailable(error)


def _applied(connection: PgConnection, name: str) -> list[Applied]:
    if ("migrations",) not in connection.query("tables"):
        raise StorageOpenError(
            f"{name} has a schema `forq` that is not ours: it has no table of migrations; name another database"
        )
    return [Applied(*row) for row in connection.query("applied")]
