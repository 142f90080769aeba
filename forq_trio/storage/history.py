"""What all engines decide alike about the history: how a message ended, and how much one step removes.

The history of a queue is only ever shortened at its old end: by retention, oldest first whatever the queue, and by a
purge of the queue's own history. Ids are never used twice.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from forq_trio.model import limits
from forq_trio.model.history import Outcome
from forq_trio.storage.engine import ACKED
from forq_trio.storage.rules import believable_until

_OUTCOMES: dict[str, Outcome] = {"expired": "expired", "deleted_by_user": "deleted", "cancelled": "cancelled"}


class Kept(Protocol):
    """What a step looks at."""

    @property
    def bytes(self) -> int: ...
    @property
    def finished_at(self) -> int: ...


KeptT = TypeVar("KeptT", bound=Kept)


def outcome_of(change: str, event_reason: str) -> tuple[Outcome, str | None]:
    """How a message ended that goes for good, and why it was discarded. change: ACKED or CLEANED_UP."""
    if change == ACKED:
        return "acked", None
    outcome = _OUTCOMES.get(event_reason, "discarded")
    return outcome, event_reason if outcome == "discarded" else None


def one_step(kept: Sequence[KeptT], steps: int = 1) -> Sequence[KeptT]:
    """The first of these messages, as many as so many steps remove; at least one if there is one."""
    first, size = kept[: steps * limits.HISTORY_STEP_MESSAGES], 0
    for index, message in enumerate(first):
        if size >= steps * limits.HISTORY_STEP_BYTES:
            return kept[:index]
        size += message.bytes
    return first


def outlived(
    kept: Sequence[KeptT], finished_before: int, size: int, bytes_max: int, now_ms: int
) -> Sequence[KeptT]:
    """The first of these messages that retention removes: too old, or too many bytes with the later ones.

    kept: the oldest messages, oldest first. size: the bytes of all that are kept.
    """
    believable = believable_until(finished_before, now_ms)
    for index, message in enumerate(kept):
        if finished_before <= message.finished_at <= believable and size <= bytes_max:
            return kept[:index]
        size -= message.bytes
    return kept


def end_of_page(last: int, following: int | None, until: int) -> int:
    """The `next` of a page of the history: its last id, or (where nothing follows up to there) that of its span.

    following: the id of the message after the page, None for none.
    """
    return max(last, until) if following is None or following > until else last
