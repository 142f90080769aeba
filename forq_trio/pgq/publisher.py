"""Publishing: several messages are stored together or not at all, also within a transaction of the caller."""

from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import tuple_row

from forq_trio.pgq.connections import PgqConnection, PgqConnections, check_encoding, error_of
from forq_trio.pgq.errors import DatabaseRefused
from forq_trio.pgq.messages import Injector, Message, MessageRows, rows_of
from forq_trio.pgq.statements import check_table_name, statement


def publish(
    connection: psycopg.Connection[Any], table: str, *messages: Message, injectors: Sequence[Injector] = ()
) -> list[UUID]:
    """Publish messages in the transaction of `connection`; returns their ids in the order of the messages.

    Consumers get them once the caller commits, and never if the transaction is rolled back. injectors: add metadata to
    each message. Raises InvalidPayload before anything is stored, DatabaseRefused, and what psycopg raises.
    """
    check_encoding(connection.info)
    rows = _rows(table, messages, injectors)
    if not rows.payloads:
        return []
    cursor = connection.cursor(row_factory=tuple_row)
    return _ids(cursor.execute(statement("publish", table), _parameters(rows)).fetchall(), rows)


def publish_each(connection: PgqConnection, table: str, *messages: Message) -> list[UUID | DatabaseRefused]:
    """Like `publish`; if the database refuses some, for example by a constraint, the others are stored together.

    The refused ones are found by halving the list, in transactions that are rolled back. Raises like `publish`, but
    DatabaseRefused only if messages that are accepted alone are refused together.
    """
    try:
        with connection.apart():
            return list(publish(connection, table, *messages))
    except psycopg.Error as problem:
        refusal = error_of(problem, connection)
        if not isinstance(refusal, DatabaseRefused):
            raise
    refused = _refused(connection, table, messages) if len(messages) > 1 else {0: refusal}
    ids = iter(publish(connection, table, *[each for n, each in enumerate(messages) if n not in refused]))
    return [refused[n] if n in refused else next(ids) for n in range(len(messages))]


def _refused(
    connection: PgqConnection, table: str, messages: Sequence[Message], first: int = 0
) -> dict[int, DatabaseRefused]:
    """The messages that the database refuses, by their places counted from `first`. Stores nothing."""
    try:
        with connection.transaction(force_rollback=True):
            publish(connection, table, *messages)
    except psycopg.Error as problem:
        refusal = error_of(problem, connection)
        if not isinstance(refusal, DatabaseRefused):
            raise
        if len(messages) == 1:
            return {first: refusal}
        half = len(messages) // 2
        found = _refused(connection, table, messages[:half], first)
        return found | _refused(connection, table, messages[half:], first + half)
    return {}


async def publish_async(
    connection: psycopg.AsyncConnection[Any],
    table: str,
    *messages: Message,
    injectors: Sequence[Injector] = (),
) -> list[UUID]:
    """`publish` for a connection of asyncio. Cancelled: psycopg cancels the statement."""
    check_encoding(connection.info)
    rows = _rows(table, messages, injectors)
    if not rows.payloads:
        return []
    cursor = connection.cursor(row_factory=tuple_row)
    await cursor.execute(statement("publish", table), _parameters(rows))
    return _ids(await cursor.fetchall(), rows)


class Publisher:
    """Publishes over connections of its own, on trio or asyncio: `async with Publisher(url) as publisher`.

    injectors: add metadata to each message. Raises InvalidDatabaseUrl.
    """

    def __init__(self, database_url: str, *, injectors: Sequence[Injector] = ()) -> None:
        self._connections = PgqConnections(database_url)
        self._injectors = tuple(injectors)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._connections.close()

    async def publish(self, table: str, *messages: Message) -> list[UUID]:
        """Publish messages; returns their ids in the order of the messages, once they are durable.

        Raises InvalidPayload, NoTable and WrongTable; StorageUnavailable if nothing was stored, OutcomeUnknown if that
        is not known. Cancelled: they may be stored or not.
        """
        return await self._connections.run(
            table, lambda connection: publish(connection, table, *messages, injectors=self._injectors)
        )


def _rows(table: str, messages: Sequence[Message], injectors: Sequence[Injector]) -> MessageRows:
    check_table_name(table)
    return rows_of(messages, injectors)


def _parameters(rows: MessageRows) -> dict[str, Any]:
    return msgspec.structs.asdict(rows)


def _ids(stored: list[tuple[UUID]], rows: MessageRows) -> list[UUID]:
    """The ids of all messages. Raises DatabaseRefused if a trigger of the table has dropped unknown ones of them."""
    if len(stored) != len(rows.payloads):
        raise DatabaseRefused(
            f"the table took {len(stored)} of {len(rows.payloads)} messages: it has a trigger"
        )
    return [id for (id,) in stored]
