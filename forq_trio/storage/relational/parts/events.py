"""Lifecycle events: noted by `Transaction.transition`, written at the end of the batch (see storage/logs.py).

They are stored in the batch of their change, with the next ids, so the events of a message are in order."""

from collections.abc import Callable, Sequence, Set
from typing import Any

from forq_trio.model.logs.events import KINDS
from forq_trio.model.logs.types import Log
from forq_trio.storage.engine import CONSUMED, PRODUCED
from forq_trio.storage.logs import TIMED, event_bytes, kind_and_reason
from forq_trio.storage.relational.parts import inserts
from forq_trio.storage.relational.parts.part import Part
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
from forq_trio.storage.relational.statements import Query

Noted = list[tuple[Any, ...]]
"""Events without their id, which comes first, and their total, which comes last."""
Shipped = tuple[Log, list[str]]
"""`log`, and the queues of the events of the batch."""

_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
"""The stored values of each kind."""
_QUEUE = 2
"""The index of the queue in a noted event."""


class EventLog(Part):
    """The stored events, and those of this batch. enabled: whether changes are noted (a setting)."""

    shipped = Shipped

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self.committed = Log(enabled)
        self.log = Log(enabled)  # without the events of this batch until they are written
        self._noted: Noted = []

    def note(
        self,
        at: int,
        change: str,
        queue: str,
        messages: Sequence[Any],
        target: str | None,
        reason: str,
        nack_reason: str | None,
    ) -> None:
        """Note the events of a change; the arguments are those of `transition`.

        messages: for a send the bindings of its INSERT, for a claim `ReadyRow`s, else `Row`s.
        """
        found = kind_and_reason(change, reason, nack_reason)
        if found is None:
            return
        kind, why = _NUMBERS[found[0]], found[1]
        if change == PRODUCED:
            self._noted += [
                (
                    at,
                    kind,
                    queue,
                    row[inserts.SEQ],
                    row[inserts.ID],
                    0,
                    None,
                    None,
                    at,
                    None,
                    row[inserts.BYTES],
                )
                for row in messages
            ]
        elif change == CONSUMED:
            self._noted += [_delivered(at, kind, queue, row) for row in messages]
        else:
            is_timed = change in TIMED
            self._noted += [_changed(at, kind, queue, row, why, target, is_timed) for row in messages]

    def queues(self) -> Set[str]:
        """The queues that have events of this batch."""
        return {event[_QUEUE] for event in self._noted} if self._noted else frozenset()

    def write(self, run: Callable[[str, Noted], None]) -> None:
        """Write the events of the batch. run: of the transaction."""
        if not self._noted:
            return
        rows = []
        event_id, total = self.log.last, self.log.bytes_to_last
        for event in self._noted:
            event_id += 1
            rows.append((event_id, *event, total))
            total += event_bytes(event[2], event[6], event[7])
        run("insert_event", rows)
        self.log = self.log._replace(last=event_id, bytes_to_last=total)

    def load(self, query: Query, path: str) -> None:
        """Read the extent of the log. Damaged byte counts are taken as 0: then fewer events are removed."""
        rows = [*query("first_event", 1), *query("last_event")]
        if not rows:
            return
        (first, begin), (last, end, queue, reason, target) = rows
        begin, end = (total if type(total) is int else 0 for total in (begin, end))
        self.log = self.committed = self.log._replace(
            first=first,
            last=last,
            bytes_before_first=begin,
            bytes_to_last=max(begin, end + event_bytes(queue or "", reason, target)),
        )

    def copy(self) -> Any:
        return self.log, self._noted.copy()

    def restore(self, copied: Any) -> None:
        self.log, self._noted = copied

    def adopt(self) -> None:
        self.committed = self.log
        self.discard()

    def discard(self) -> None:
        self.log = self.committed
        if self._noted:
            self._noted = []

    def ship(self) -> Shipped | None:
        return None if self.log is self.committed else (self.log, list(self.queues()))

    def take_over(self, shipped: Shipped) -> None:
        self.log = shipped[0]._replace(enabled=self.enabled)  # each process has its own setting


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
