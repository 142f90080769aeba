"""Claims: the statement's parameters, and its rows as deliveries. Rows that are not messages are discarded."""

import logging
from datetime import timedelta
from math import inf, isfinite
from typing import Any, NamedTuple

import msgspec
import psycopg
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.messages.types import Delivery, MessageInfo, StatusName
from forq_trio.model.messages.where import Wanted, where_of
from forq_trio.pgq.connections import PgqConnection
from forq_trio.pgq.messages import metadata_of
from forq_trio.pgq.receipts import PgqReceipt, parameters
from forq_trio.pgq.statements import check_table_name, statement

logger = logging.getLogger("forq_trio.pgq")

MAY_WAKE_LATE_SECONDS = 0.001


class InvalidRow(Struct, frozen=True):
    """A row that was discarded: its payload is not an object, its metadata are not texts, or it is too large."""

    table: str
    id: str
    payload: str | None  # this and the next: JSON; None if it is NULL or too large to read
    metadata: str | None
    reason: str


def asked_of(
    number: int, lease: timedelta, where: Wanted | None, attempts_max: int, history: timedelta | None
) -> dict[str, Any]:
    """The parameters of a claim. attempts_max: 0 for no bound. Raises InvalidRequest for invalid conditions."""
    conditions = where_of(where)
    equal = {each.key: each.value for each in conditions if not each.negated}
    others = [each for each in conditions if each.negated]
    return {
        "limit": number,
        "bytes": limits.PGQ_CLAIM_BYTES_MAX,
        "row_bytes": limits.PGQ_ROW_BYTES_MAX,
        "metadata_bytes": limits.PGQ_METADATA_BYTES_MAX,
        "lease": lease,
        "walked": None,
        "attempts": attempts_max or None,
        "history": history,
        "equal": msgspec.json.encode(equal).decode() if equal else None,
        "keys": [each.key for each in others] or None,
        "values": [each.value for each in others] or None,
        "absent": [each.or_absent for each in others] or None,
    }


class Claimed(NamedTuple):
    """The result of a claim.

    pause_seconds: how long until the next message; 0 if there were rows. due_at: when the first row was due, as the
    database writes it, or when it was claimed if it had no due time; None without rows.
    """

    deliveries: list[Delivery]
    invalid: list[InvalidRow]
    pause_seconds: float
    due_at: str | None


def claim(connection: PgqConnection, queue: str, asked: dict[str, Any]) -> Claimed:
    """Claim messages, and discard rows that are not messages."""
    invalid: list[InvalidRow] = []
    try:
        with connection.apart():
            rows = _execute(connection, "claim", check_table_name(queue), asked).fetchall()
    except _UNREADABLE:
        invalid = _discard_unread(connection, queue, asked)
        if not invalid:
            raise
        rows = connection.execute(statement("claim", queue), asked).fetchall()
    claimed: list[Delivery] = []
    for id, created, started, count, received, first, until, payload, metadata, size, is_large, _ in rows:
        receipt = PgqReceipt(id, created, started, count)
        attributes = metadata_of(metadata)
        if is_large or attributes is None or payload is None or not payload.startswith("{"):
            what = "the metadata are not texts" if attributes is None else "the payload is no object"
            if is_large:
                what = f"the metadata have more than {limits.PGQ_METADATA_BYTES_MAX:,} bytes"
            if size > limits.PGQ_ROW_BYTES_MAX:
                what = f"it has {size:,} bytes; at most {limits.PGQ_ROW_BYTES_MAX:,} are read"
            reason = {"reason": f"invalid: {what}"}
            try:
                with connection.apart():
                    connection.execute(statement("finish", queue), parameters([receipt]) | reason)
            except psycopg.Error as problem:  # it can be claimed again when its lock ends
                logger.error("%s: row %s could not be discarded: %s", queue, id, problem)
            else:
                invalid.append(InvalidRow(queue, id, payload, metadata, what))
            continue
        claimed.append(
            Delivery(
                id,
                payload,
                str(receipt),
                count,
                0,
                epoch_ms(received),
                epoch_ms(until),
                limits.PRIORITY_DEFAULT,
                epoch_ms(first),
                attributes,
            )
        )
    if rows:
        return Claimed(claimed, invalid, 0.0, rows[0][-1])
    due = _execute(connection, "next_due", queue, {}).fetchone()
    return Claimed([], invalid, inf if due is None else max(due[0], 0) + MAY_WAKE_LATE_SECONDS, None)


def _execute(
    connection: PgqConnection, name: str, queue: str, asked: dict[str, Any]
) -> psycopg.Cursor[tuple[Any, ...]]:
    """Run a statement of a claim, with a stored plan: on 20 partitions a claim takes 2 ms, and up to 12 ms to plan.

    A claim with conditions on metadata or age gets a plan of its own, because the values decide which index or
    partitions it can use.
    """
    plain = all(asked.get(each) is None for each in ("equal", "keys", "history"))
    if plain and not connection.pooled and connection.is_partitioned(queue):
        return connection.execute_planned(statement(name, queue), asked)
    return connection.execute(statement(name, queue), asked)


_UNREADABLE = (psycopg.errors.ProgramLimitExceeded, psycopg.errors.OutOfMemory)
"""The errors of a claim if a row as text is larger than PostgreSQL allows: 1 GiB."""


def _discard_unread(connection: PgqConnection, queue: str, asked: dict[str, Any]) -> list[InvalidRow]:
    """Discard the next messages that cannot be read, because a single one would make every claim fail."""
    discarded = []
    for id, created_at in connection.execute(statement("next_ids", queue), asked).fetchall():
        message = {"id": id, "created_at": created_at}
        try:
            with connection.apart():
                connection.execute(statement("measure", queue), message)
        except _UNREADABLE as problem:
            what = f"it cannot be read: {problem.diag.message_primary}"
            given = message | {"reason": f"invalid: {what}"}
            for (text,) in connection.execute(statement("discard_unread", queue), given).fetchall():
                discarded.append(InvalidRow(queue, text, None, None, what))
    return discarded


def list_messages(
    connection: PgqConnection, name: str, queue: str, given: dict[str, Any]
) -> list[MessageInfo]:
    """The messages that a statement returns, without content and attributes if they are too large for a claim."""
    bounds = {
        "bytes": limits.PGQ_CLAIM_BYTES_MAX,
        "metadata_bytes": limits.PGQ_METADATA_BYTES_MAX,
        "characters": limits.PGQ_LIST_PAYLOAD_CHARACTERS_MAX,
    }
    rows = connection.execute(statement(name, check_table_name(queue)), given | bounds).fetchall()
    shown = []
    for id, payload, metadata, count, created, scheduled, started, until, reason, state, size in rows:
        created_at, is_held = epoch_ms(created), state == "in process"
        shown.append(
            MessageInfo(
                id=id,
                queue=queue,
                sequence=0,
                status=STATUS_OF[state],
                content=payload or "",
                attempts=count,
                priority=limits.PRIORITY_DEFAULT,
                received_at=created_at,
                process_after=created_at if scheduled is None else epoch_ms(scheduled),
                updated_at=created_at if started is None else epoch_ms(started),
                expires_after=0,
                processing_started_at=epoch_ms(started) if is_held else None,
                lease_until=epoch_ms(until) if is_held else None,
                last_error=reason,
                attributes=metadata_of(metadata) or {},
                bytes=size,
            )
        )
    return shown


STATUS_OF: dict[str, StatusName] = {
    "waiting": "ready",
    "scheduled": "delayed",
    "in process": "processing",
    "exhausted": "failed",
}
"""The queue's name of each state of an unfinished message."""


def epoch_ms(seconds: float) -> int:
    """A time of the database in epoch ms; 0 if it is infinite."""
    return round(seconds * 1_000) if isfinite(seconds) else 0
