"""The decisions about the two logs, for all engines: which event a change has, and what a step of a trim removes.

Lifecycle events: one for each change of a message that has a kind, stored in the order of commits. All engines derive
them from `transition` and from nothing else. Ids are 1, 2, 3 … without a gap, because a batch that is rolled back uses
none. The newest event is never removed, so that no id is used twice. An event contains the size of the content, not
the content.

The history of a queue is shortened only at its old end: by retention, oldest first whatever the queue, and by a
purge of the queue's own history. Ids are never used twice.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from forq_trio.model import limits
from forq_trio.model.logs.events import EventKind
from forq_trio.model.logs.history import Outcome
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
from forq_trio.storage.transitions import EXTENDED, SHORTENED, UPDATED

ENDED_BY_CONSUMER = "ended_by_consumer"
"""The reason of a lease_expired where the consumer ended its own lease."""

_KIND_OF: Mapping[str, EventKind] = {
    PRODUCED: "produced",
    CONSUMED: "delivered",
    ACKED: "acked",
    NACKED: "nacked",
    RELEASED: "released",
    EXTENDED: "extended",
    SHORTENED: "lease_expired",
    STALE_RECOVERED: "lease_expired",
    MOVED_TO_DLQ: "dead_lettered",
    REQUEUED: "requeued",
    CLEANED_UP: "deleted",
    UPDATED: "updated",
}
"""By change; PROMOTED, HELD_BACK and UNHELD have none."""
_KIND_ENDED: Mapping[str, EventKind] = {"expired": "expired", "cancelled": "cancelled"}
"""The kinds of clean-ups that have one of their own, by reason."""
_OUTCOMES: dict[str, Outcome] = {"expired": "expired", "deleted_by_user": "deleted", "cancelled": "cancelled"}
"""How messages ended, by the reason of their clean-up; all others were discarded."""
DISCARDED_BY_CONSUMER = "consumer"
"""The reason of a clean-up of messages that their consumer discarded."""
TIMED = frozenset((ACKED, NACKED, RELEASED, SHORTENED, STALE_RECOVERED))
"""The changes that end a claim: their events say how long it lasted."""

_ROW_BYTES = 128


def kind_and_reason(change: str, reason: str, nack_reason: str | None) -> tuple[EventKind, str | None] | None:
    """The kind and the reason of the lifecycle event for a change; None for a change without one.

    reason: of the counted event, "" for none. nack_reason: the reason that the consumer gave with a nack.
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
    """The approximate bytes of an event in the database, with its index entry."""
    return _ROW_BYTES + len(queue) + (len(reason) if reason else 0) + (len(target) if target else 0)


def outcome_of(change: str, event_reason: str) -> tuple[Outcome, str | None]:
    """How a removed message ended, and the reason if it was discarded. change: ACKED or CLEANED_UP."""
    if change == ACKED:
        return "acked", None
    outcome = _OUTCOMES.get(event_reason, "discarded")
    return outcome, event_reason if outcome == "discarded" else None


class Kept(Protocol):
    """A finished message, as the steps of retention see it."""

    @property
    def bytes(self) -> int: ...
    @property
    def finished_at(self) -> int: ...
    @property
    def kept_until(self) -> int | None: ...


KeptT = TypeVar("KeptT", bound=Kept)


def one_step(kept: Sequence[KeptT], steps: int = 1) -> Sequence[KeptT]:
    """The messages that so many steps may remove: the first ones of `kept`, at least one if there is one."""
    first, size = kept[: steps * limits.HISTORY_STEP_MESSAGES], 0
    for index, message in enumerate(first):
        if size >= steps * limits.HISTORY_STEP_BYTES:
            return kept[:index]
        size += message.bytes
    return first


def outlived(
    kept: Sequence[KeptT],
    finished_before: int,
    size: int,
    bytes_max: int,
    now_ms: int,
    *,
    enabled: bool,
    beyond: int = 0,
) -> Sequence[KeptT]:
    """The messages that retention removes: those that are too old, or too many bytes together with all later ones.

    kept: the oldest finished messages, oldest first. size: the bytes of the whole history. enabled: whether the history
    is on. While it is off, a message with a result is too old once its time is over, else only where it is over.
    beyond: how many of the first go in any case.
    """
    believable = believable_until(finished_before, now_ms)
    for index, message in enumerate(kept):
        stays = finished_before <= message.finished_at <= believable
        if message.kept_until is not None:
            is_wanted = now_ms < message.kept_until <= now_ms + limits.RESULT_STORED_MS_MAX
            stays = is_wanted or (enabled and stays)
        if stays and size <= bytes_max and index >= beyond:
            return kept[:index]
        size -= message.bytes
    return kept


def end_of_page(last: int, following: int | None, until: int) -> int:
    """The `next` of a page of the history: its last id, or `until` if no message follows up to there.

    following: the id of the message after the page, None for none.
    """
    return max(last, until) if following is None or following > until else last


def believable_until(before_ms: int, now_ms: int) -> int:
    """The latest date that retention by age believes: as far in the future as its limit is in the past, at least a day.

    Entries that were written while a clock was far ahead have a date in the future. If it were believed, they would
    keep all later entries from being removed by age.
    """
    return max(now_ms, before_ms) + max(now_ms - before_ms, limits.DAY_MS)


def retention_steps(kept_bytes: int, bytes_max: int) -> int:
    """How many steps a command that trims events or the history takes; the further above the bound, the more."""
    excess = max(0, kept_bytes - bytes_max)
    return min(1 + excess * limits.RETENTION_SLACK_SHARE // max(1, bytes_max), limits.RETENTION_STEPS_MAX)
