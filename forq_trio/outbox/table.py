"""The application's side of an outbox: plain functions on its own connection, inside its own transaction.

SQLite has one writer at a time, and a message gets its id while the write lock is held. So ids grow in the order of
commit.
"""

import functools
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack
from uuid import uuid4

import msgspec

from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.clock import machine_ms
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.outbox import postgres
from forq_trio.storage.relational.statements import load

_CREATE = ("create_outbox", "create_set_aside", "create_identity")
_LISTED_MAX = 1_000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(NewMessage).decode

Run = Callable[[str, Sequence[Any]], Any]
"""Runs a statement of the application's connection and returns its cursor or result."""


SQL = load("outbox", __package__)


def create_table(connection: Any) -> None:
    """Create the tables of the outbox if they are missing, in the transaction of `connection`.

    connection: a `sqlite3.Connection` (also that of Django), an `apsw.Connection`, or a `Connection` or `Session` of
    SQLAlchemy on SQLite; TypeError for any other.
    """
    run = _runner(connection)
    for name in _CREATE:
        run(SQL[name], ())
    run(SQL["make_identity"], (uuid4().hex,))


def send(connection: Any, queue: str, content: str, **options: Unpack[MessageOptions]) -> int:
    """Write a message into the outbox, in the transaction of `connection`; returns its id there.

    It is sent once the application commits, and never if it rolls back. connection: as for `create_table`, or a
    connection to the PostgreSQL database of the queue: a `psycopg.Connection`, that of Django, or a `Connection` or
    `Session` of SQLAlchemy on psycopg. Options: the members of `NewMessage`; a delay counts from now. Raises what
    `produce` raises for an invalid message, TypeError for any other connection, and the errors of the connection: for
    example `no such table` before `create_table`, or in a PostgreSQL database that is not that of a queue.
    """
    run = postgres.runner(connection)
    if run is not None:
        return int(run(*postgres.statement(queue, content, **options)).fetchone()[0])
    check_producible(queue)
    now_ms = machine_ms()
    message = check_message(NewMessage(content, **options), now_ms)
    content.encode()
    if message.delay_ms is not None:
        message = msgspec.structs.replace(message, process_after=now_ms + message.delay_ms, delay_ms=None)
    result = _runner(connection)(SQL["add"], (queue, _encode(message).decode()))
    last = getattr(connection, "last_insert_rowid", None)
    return int(result.lastrowid if last is None else last())


def set_aside(connection: Any, *, after: int = 0, limit: int = _LISTED_MAX) -> list[SetAside]:
    """Up to `limit` messages that the server refused for good, by id, behind `after`. connection: as for `send`.

    For an invalid row the content is the row's text.
    """
    on_postgres = postgres.runner(connection)
    sql = (SQL if on_postgres is None else postgres.SQL)["list_set_aside"]
    rows = (on_postgres or _runner(connection))(sql, (after, min(limit, _LISTED_MAX))).fetchall()
    return [SetAside(id, queue, _shown(message), code, reason) for id, queue, message, code, reason in rows]


def _shown(message: Any) -> NewMessage:
    """The message of a row; the text of an invalid row becomes the content of a message."""
    try:
        return _decode(message)
    except (msgspec.DecodeError, RecursionError):
        return NewMessage(str(message))


def retry_set_aside(connection: Any, ids: Iterable[int]) -> None:
    """Send messages that were set aside again, behind all others, once the application commits."""
    on_postgres = postgres.runner(connection)
    if on_postgres is not None:
        on_postgres(postgres.SQL["retry_set_aside"], (list(ids),))
        return
    run = _runner(connection)
    for each in (chosen := list(ids)):
        run(SQL["retry_set_aside"], (each,))
    delete_set_aside(connection, chosen)


def delete_set_aside(connection: Any, ids: Iterable[int]) -> None:
    """Delete messages that were set aside, for good, once the application commits."""
    on_postgres = postgres.runner(connection)
    if on_postgres is not None:
        on_postgres(postgres.SQL["forget_set_aside"], (list(ids),))
        return
    run = _runner(connection)
    for each in ids:
        run(SQL["forget_set_aside"], (each,))


def new_identity(connection: Any) -> None:
    """Give the outbox a new id, after an older copy of the database was restored, or for a copy that is used beside it.

    All messages that are in the table then are sent.
    """
    _runner(connection)(SQL["change_identity"], (uuid4().hex,))


def _runner(connection: Any) -> Run:
    """The function that runs statements on this connection. Raises TypeError for one that cannot be used."""
    kind = type(connection).__name__
    if hasattr(connection, "run_sync"):
        raise TypeError(f"for asyncio: await {kind}.run_sync(lambda each: outbox.send(each, ...))")
    if hasattr(connection, "last_insert_rowid"):
        return lambda sql, bindings: connection.execute(sql, tuple(bindings))
    if getattr(connection, "vendor", None) == "sqlite":
        connection.ensure_connection()  # that of Django has none before its first query
    inner = getattr(connection, "connection", None)
    if isinstance(inner, sqlite3.Connection):
        connection = inner
    elif callable(inner) and not hasattr(connection, "exec_driver_sql"):
        connection = inner()
    if isinstance(connection, sqlite3.Connection):
        return functools.partial(_run_plainly, connection)
    dialect = getattr(getattr(connection, "dialect", None), "name", None)
    if dialect == "sqlite" and hasattr(connection, "exec_driver_sql"):
        return lambda sql, bindings: connection.exec_driver_sql(sql, tuple(bindings))
    raise TypeError(f"an outbox needs a connection to PostgreSQL (psycopg) or SQLite, not {kind}")


def _run_plainly(connection: sqlite3.Connection, sql: str, bindings: Sequence[Any]) -> sqlite3.Cursor:
    """Run a statement whose rows are tuples, whatever row factory the application has set."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, bindings)
