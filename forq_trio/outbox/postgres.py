"""Sends on connections to the PostgreSQL database of a queue: the function forq.send, in the application's transaction.

There is no relay: a server moves committed messages into the queues, as part of its next batch.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Unpack

import msgspec

from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.errors import ZeroCharacter
from forq_trio.model.messages.new_message import OPTIONS, MessageOptions, NewMessage
from forq_trio.storage.relational.statements import load

SQL = load("postgres", __package__)
_DRIVERS = ("psycopg", "psycopg_async", "psycopg2")
_options_of = attrgetter(*OPTIONS)
_ATTRIBUTES = list(OPTIONS).index("attributes")


def statement(queue: str, content: str, **options: Unpack[MessageOptions]) -> tuple[str, tuple[Any, ...]]:
    """The statement that sends a message, with its bindings, for any connection of psycopg.

    For an asynchronous one: `await connection.execute(*outbox.statement("orders", "m"))`. Options, errors: see `send`.
    """
    check_producible(queue)
    message = check_message(NewMessage(content, **options), time.time_ns() // 1_000_000)
    content.encode()
    values = list(_options_of(message))
    if message.attributes is not None:
        values[_ATTRIBUTES] = msgspec.json.encode(message.attributes).decode()
    pairs = [text for pair in (message.attributes or {}).items() for text in pair]
    if any(isinstance(each, str) and "\0" in each for each in (content, *values, *pairs)):
        raise ZeroCharacter
    return SQL["send"], (queue, content, *values)


def runner(connection: Any) -> Callable[[str, Sequence[Any]], Any] | None:
    """The function that runs a statement on a connection to PostgreSQL; None for any other connection.

    Raises TypeError for a connection to PostgreSQL that cannot be used here; its text says which can.
    """
    kind = type(connection)
    if any(each.__module__.partition(".")[0] == "psycopg" for each in kind.__mro__):
        if kind.__name__.startswith("Async"):
            raise TypeError("for asyncio: await connection.execute(*outbox.statement(queue, content, ...))")
        return partial(_run_plainly, getattr(connection, "connection", connection))
    if getattr(connection, "vendor", None) == "postgresql":
        return partial(_run_on_django, connection)
    if hasattr(connection, "run_sync"):
        return None
    if hasattr(connection, "get_bind"):
        connection = connection.connection()
    dialect = getattr(connection, "dialect", None)
    if getattr(dialect, "name", None) != "postgresql":
        return None
    driver = getattr(dialect, "driver", "")
    if driver not in _DRIVERS:
        raise TypeError(f"an outbox on PostgreSQL needs the driver psycopg, not {driver}")
    return lambda sql, bindings: connection.exec_driver_sql(sql, tuple(bindings))


def _run_plainly(connection: Any, sql: str, bindings: Sequence[Any]) -> Any:
    """Run a statement whose rows are tuples, whatever row factory the application has set."""
    return connection.cursor(row_factory=lambda cursor: tuple).execute(sql, bindings)


def _run_on_django(connection: Any, sql: str, bindings: Sequence[Any]) -> Any:
    cursor = connection.cursor()
    cursor.execute(sql, bindings)
    return cursor
