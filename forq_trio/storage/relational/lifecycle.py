"""Lifecycle events of one batch: noted by `Transaction.transition`, written at its end (see storage/logs.py)."""

from collections.abc import Callable, Sequence
from typing import Any

from forq_trio.model.events import KINDS
from forq_trio.model.logs import Log
from forq_trio.storage.engine import CONSUMED, PRODUCED
from forq_trio.storage.logs import TIMED, event_bytes, kind_and_reason
from forq_trio.storage.relational.row import (
    ATTEMPTS,
    BYTES,
    ID,
    PROCESS_AFTER,
    RECEIVED_AT,
    SEQ,
    ReadyRow,
    Row,
)

Noted = list[tuple[Any, ...]]
"""Events without their id, which comes first, and their total, which comes last."""


def note(
    noted: Noted,
    at: int,
    change: str,
    queue: str,
    messages: Sequence[Any],
    target: str | None,
    reason: str,
    nack_reason: str | None,
) -> None:
    """Note the events of a change; the arguments are those of `transition`.

    messages: of a send the bindings of its INSERT, of a claim each a `ReadyRow`, else a `Row`.
    """
    found = kind_and_reason(change, reason, nack_reason)
    if found is None:
        return
    kind, why = _NUMBERS[found[0]], found[1]
    if change == PRODUCED:
        noted += [
            (at, kind, queue, row[0], row[1], 0, None, None, at, None, row[_SENT_BYTES]) for row in messages
        ]
    elif change == CONSUMED:
        noted += [_delivered(at, kind, queue, row) for row in messages]
    else:
        is_timed = change in TIMED
        noted += [_changed(at, kind, queue, row, why, target, is_timed) for row in messages]


_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
"""The stored values of each kind."""
LOGGED_QUEUE = 2
"""Where an event that is noted has its queue."""
_SENT_BYTES = 8
"""Where the INSERT of a message has its bytes, the plain one and the other."""


def _delivered(at: int, kind: int, queue: str, row: ReadyRow) -> tuple[Any, ...]:
    process_after, received_at = row[PROCESS_AFTER], row[RECEIVED_AT]
    waited_ms = at - (process_after if process_after > received_at else received_at)
    attempt = row[ATTEMPTS] + 1
    return at, kind, queue, row[SEQ], row[ID], attempt, None, None, received_at, waited_ms, row[BYTES]


def _changed(
    at: int, kind: int, queue: str, row: Row, reason: str | None, target: str | None, is_timed: bool
) -> tuple[Any, ...]:
    started_at = row.processing_started_at
    took_ms = at - started_at if is_timed and started_at is not None else None
    return (
        at,
        kind,
        queue,
        row.seq,
        row.id,
        row.attempts,
        reason,
        target,
        row.received_at,
        took_ms,
        row.bytes,
    )


def write(run: Callable[[str, Noted], None], noted: Noted, log: Log) -> Log:
    """Write the events of a batch behind those of `log`; returns the log with them. run: of the transaction."""
    rows = []
    event_id, total = log.last, log.bytes_to_last
    for event in noted:
        event_id += 1
        rows.append((event_id, *event, total))
        total += event_bytes(event[2], event[6], event[7])
    run("insert_event", rows)
    return log._replace(last=event_id, bytes_to_last=total)
