"""Lifecycle events: one for each change of a message that somebody may want to know of, kept in the order of commits.

Both engines derive them from `transition` and from nothing else. Ids are 1, 2, 3 … without a gap: a batch that is
rolled back used none. The newest event is never removed, so that no id is given out twice. An event says nothing of a
content but its size.
"""

from typing import NamedTuple

from forq_trio.model.events import KINDS
from forq_trio.storage.engine import (
    ACKED,
    CLEANED_UP,
    CONSUMED,
    MOVED_TO_DLQ,
    NACKED,
    PRODUCED,
    RELEASED,
    REQUEUED,
    STALE_RECOVERED,
)
from forq_trio.storage.transitions import EXTENDED, SHORTENED

ENDED_BY_CONSUMER = "ended_by_consumer"
"""The reason of a lease_expired where the consumer ended its own lease."""

_KIND_OF = {
    PRODUCED: KINDS.index("produced"),
    CONSUMED: KINDS.index("delivered"),
    ACKED: KINDS.index("acked"),
    NACKED: KINDS.index("nacked"),
    RELEASED: KINDS.index("released"),
    EXTENDED: KINDS.index("extended"),
    SHORTENED: KINDS.index("lease_expired"),
    STALE_RECOVERED: KINDS.index("lease_expired"),
    MOVED_TO_DLQ: KINDS.index("dead_lettered"),
    REQUEUED: KINDS.index("requeued"),
    CLEANED_UP: KINDS.index("deleted"),
}
"""By change; PROMOTED, HELD_BACK and UNHELD have none."""
_KIND_ENDED = {"expired": KINDS.index("expired"), "cancelled": KINDS.index("cancelled")}
"""By the reason of a clean-up: of those that have a kind of their own."""
TIMED = frozenset((ACKED, NACKED, RELEASED, SHORTENED, STALE_RECOVERED))
"""The changes that end a claim: their events say how long it lasted."""

_ROW_BYTES = 128


class LoggedEvent(NamedTuple):
    """An event as it is stored; the columns of the table, in order.

    at: epoch ms. kind: a place in KINDS. queue: where the message was; target: the queue that it went to, None where it
    stayed. attempt: the delivery that it is about, 0 before the first. duration_ms: of a delivery, for how long the
    message could have been claimed; of what ends a claim, how long that lasted; below 0 where the clock was set back
    meanwhile. bytes: of content and attributes. total: the bytes of all events before this one, since the first.
    """

    id: int
    at: int
    kind: int
    queue: str
    sequence: int
    message_id: str
    attempt: int
    reason: str | None
    target: str | None
    received_at: int
    duration_ms: int | None
    bytes: int
    total: int


def kind_and_reason(change: str, reason: str, nack_reason: str | None) -> tuple[int, str | None] | None:
    """The kind of the event of a change, and its reason; None for a change without one.

    reason: of the counted event, "" for none. nack_reason: what the consumer said of a nack.
    """
    kind = _KIND_OF.get(change)
    if kind is None:
        return None
    if change == CLEANED_UP and reason in _KIND_ENDED:
        return _KIND_ENDED[reason], None
    if change == SHORTENED:
        return kind, ENDED_BY_CONSUMER
    return kind, nack_reason if change == NACKED else reason or None


def event_bytes(queue: str, reason: str | None, target: str | None) -> int:
    """About how many bytes an event takes in a file, with its index."""
    return _ROW_BYTES + len(queue) + (len(reason) if reason else 0) + (len(target) if target else 0)
