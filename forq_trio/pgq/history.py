"""Lists the messages of a table by state, requeues failed ones and purges old ones.

Plain functions on a connection of psycopg, in its transaction. attempts_max is that of the consumers: a message that
was delivered so often and is not finished is exhausted. pgq does not remove those, and no consumer gets them.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.rows import tuple_row
from psycopg.types.datetime import TimestamptzLoader

from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.pgq.statements import check_table_name, statement

State = Literal["waiting", "scheduled", "in process", "exhausted", "ok", "failed"]
STATES: tuple[State, ...] = ("waiting", "scheduled", "in process", "exhausted", "ok", "failed")


class _AnyTime(TimestamptzLoader):
    """Reads times as datetimes; a time outside their range becomes the first or the last datetime."""

    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            text = bytes(data)
            return (datetime.min if text.startswith(b"-") or b"BC" in text else datetime.max).replace(
                tzinfo=UTC
            )


class HistoryRow(NamedTuple):
    """A message of a table."""

    id: UUID
    created_at: datetime
    started_at: datetime | None
    processed_at: datetime | None
    scheduled_for: datetime | None
    locked_until: datetime | None
    attempts: int
    reason: str | None  # why it failed last
    payload: str  # this and the next: as JSON, the payload's first 64 KiB
    metadata: str
    state: State

    @property
    def took(self) -> timedelta | None:
        """From its last claim to its end."""
        if self.started_at is None or self.processed_at is None:
            return None
        return self.processed_at - self.started_at


def counts(
    connection: psycopg.Connection[Any], table: str, *, attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT
) -> dict[State, int]:
    """How many messages are in each state. It reads the whole table."""
    found = dict(_rows(connection, "counts", table, attempts=attempts_max or None))
    return {state: found.get(state, 0) for state in STATES}


def find(
    connection: psycopg.Connection[Any],
    table: str,
    state: State,
    *,
    limit: int = 100,
    attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT,
) -> list[HistoryRow]:
    """The newest messages in a state, up to `limit` (1-1,000)."""
    return _messages(connection, "find", table, limit, attempts_max, state=state)


def slowest(
    connection: psycopg.Connection[Any],
    table: str,
    *,
    since: datetime,
    limit: int = 100,
    attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT,
) -> list[HistoryRow]:
    """The messages that took longest, of those that ended since, up to `limit` (1-1,000)."""
    return _messages(connection, "slowest", table, limit, attempts_max, since=since)


def requeue(
    connection: psycopg.Connection[Any],
    table: str,
    ids: Iterable[UUID] | None = None,
    *,
    attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT,
) -> int:
    """Make failed and exhausted messages claimable again, those with these ids or all; returns how many.

    Their deliveries count from 0. One call takes at most 10,000 messages: call it until it returns 0.
    """
    return _changed(
        connection, "requeue", table, ids=None if ids is None else list(ids), attempts=attempts_max or None
    )


def purge(connection: psycopg.Connection[Any], table: str, *, older_than: timedelta) -> int:
    """Delete messages that ended longer ago than that; returns how many, at most 10,000 in one call, like `requeue`."""
    return _changed(connection, "purge", table, age=older_than)


def _messages(
    connection: psycopg.Connection[Any], name: str, table: str, limit: int, attempts_max: int, **more: Any
) -> list[HistoryRow]:
    more |= {
        "limit": check_range("limit", limit, 1, limits.PGQ_LIST_MAX),
        "attempts": attempts_max or None,
        "characters": limits.PGQ_LIST_PAYLOAD_CHARACTERS_MAX,
    }
    return list(map(HistoryRow._make, _rows(connection, name, table, **more)))


def _changed(connection: psycopg.Connection[Any], name: str, table: str, **parameters: Any) -> int:
    parameters["limit"] = limits.PGQ_STEP_MAX
    return connection.execute(statement(name, check_table_name(table)), parameters).rowcount


def _rows(
    connection: psycopg.Connection[Any], name: str, table: str, **parameters: Any
) -> list[tuple[Any, ...]]:
    cursor = connection.cursor(row_factory=tuple_row)
    cursor.adapters.register_loader("timestamptz", _AnyTime)
    return cursor.execute(statement(name, check_table_name(table)), parameters).fetchall()
