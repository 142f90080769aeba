"""Makes, drops and checks tables of pgq's layout, in the transaction of a connection of psycopg.

Other programs need not know of our additions: pgq's own consumers and publishers can use the table, too.
"""

from typing import Any

import psycopg
from psycopg import sql

from forq_trio.model import limits
from forq_trio.pgq.connections import check_encoding
from forq_trio.pgq.errors import NoTable, WrongTable
from forq_trio.pgq.statements import CHANNEL, INDEXES, check_table_name, statement

COLUMNS = (
    "id",
    "created_at",
    "started_at",
    "locked_until",
    "scheduled_for",
    "processed_at",
    "consumed_count",
    "error_detail",
    "payload",
    "metadata",
)
INDEXED = ("created_at", "processed_at", "scheduled_for", "metadata")
"""The columns with which pgq's indexes begin."""


def create_table(connection: psycopg.Connection[Any], table: str, *, notify: bool = True) -> None:
    """Make the table, its indexes and its trigger where they are missing; only the trigger's function is replaced.

    notify: whether the table gets the trigger that tells waiting consumers of new messages. Raises InvalidTableName for
    a name too long for the names of its indexes, WrongTable if another kind of table has the name, DatabaseRefused if
    the database's encoding cannot store every text.
    """
    check_table_name(table, limits.PGQ_NEW_NAME_BYTES_MAX)
    check_encoding(connection.info)
    with connection.transaction():
        connection.execute(statement("lock_creation", table), {})
        connection.execute(statement("create_table", table), {})
        check_columns(connection, table)
        for each in INDEXES:
            connection.execute(statement(f"create_{each}_index", table), {})
        if not notify:
            return
        if _first(connection, "may_create_function", table):  # also one of an earlier version
            connection.execute(statement("create_function", table), {})
        if not _first(connection, "has_trigger", table):
            connection.execute(statement("create_trigger", table), {})


def drop_table(connection: psycopg.Connection[Any], table: str) -> bool:
    """Drop the table with all its messages, finished ones too; False where there was none. Raises InvalidTableName."""
    check_table_name(table)
    with connection.transaction():
        there = bool(_rows(connection, "find_columns", table))
        connection.execute(statement("drop_table", table), {})
    return there


def check_table(connection: psycopg.Connection[Any], table: str) -> None:
    """Check that the table has pgq's columns and indexes. It may have more of both, and be partitioned.

    Raises NoTable, and WrongTable that names what is missing, or what the connection's role may not do.
    """
    _check(connection, check_table_name(table), indexes=True)
    lacking = [need for (need,) in _rows(connection, "lacks_rights", table)]
    if lacking:
        raise WrongTable(f"the role of the connection may not {', '.join(lacking)} on the table {table!r}")


def has_old_function(connection: psycopg.Connection[Any], table: str) -> bool:
    """Whether the trigger is of an earlier version, which notifies of each message even if no consumer waits.

    `create_table` replaces its function, if the role owns it.
    """
    return bool(_first(connection, "has_old_function", check_table_name(table)))


def check_columns(connection: psycopg.Connection[Any], table: str) -> None:
    """Like `check_table`, without the indexes: a table without an index works, but slowly."""
    _check(connection, check_table_name(table), indexes=False)


def _check(connection: psycopg.Connection[Any], table: str, *, indexes: bool) -> None:
    found = {name for (name,) in _rows(connection, "find_columns", table)}
    if not found:
        raise NoTable(f"there is no table {table!r} in the database")
    columns = tuple(each for each in COLUMNS if each not in found)
    indexed = {name for (name,) in _rows(connection, "find_indexes", table)} if indexes else set(INDEXED)
    unindexed = tuple(each for each in INDEXED if each not in indexed)
    if columns or unindexed:
        problems = [
            f"{what} {', '.join(names)}"
            for what, names in (("columns:", columns), ("indexes on:", unindexed))
            if names
        ]
        raise WrongTable(f"the table {table!r} lacks {'; '.join(problems)}", columns, unindexed)


def _first(connection: psycopg.Connection[Any], name: str, table: str) -> Any:
    return _rows(connection, name, table)[0][0]


def _rows(connection: psycopg.Connection[Any], name: str, table: str) -> list[tuple[Any, ...]]:
    quoted = sql.Identifier(table).as_string(connection)
    parameters = {"quoted": quoted, "trigger": f"{CHANNEL}_notify"}
    return (
        connection.cursor(row_factory=psycopg.rows.tuple_row)
        .execute(statement(name, table), parameters)
        .fetchall()
    )
