"""Withdrawn messages: those that were removed while a consumer had them, and not by that consumer.

Who has such a message hears of it at once, if he waits for that: a worker's handler is cancelled. Each withdrawal has a
position, the same in all processes on a database, so a wait goes on where the one before ended, at any of them. Only
the latest are known, and only in memory. Where one may have been missed the answer names no message: who has any of
that queue extends its leases, and the answers say which are lost.
"""

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Annotated, Literal, NamedTuple

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.values import Uuid, bounded, up_to

Why = Literal["cancelled", "deleted", "expired", "discarded"]
"""Somebody cancelled it; deleted it, or purged its queue; its time to live ended; it was evicted from a full queue."""


class Withdrawal(NamedTuple):
    """A message that was withdrawn, as processes tell each other."""

    position: int  # that of its batch: its time (epoch ms), or one more than that of the batch before
    queue: str  # where it was
    message_id: str  # which one; "" for many in one batch
    why: Why  # how it ended
    reason: str = ""  # that was given; "" for none


class WithdrawnMessage(Struct, frozen=True, rename="camel"):
    """A message that was withdrawn."""

    queue: str  # where it was
    message_id: Uuid | None  # which one; None: it may be any of this queue
    why: Why | None  # how it ended; None: that is not known
    reason: str | None = None  # that was given when it was cancelled; None for none


class WithdrawnMessages(Struct, frozen=True):
    """The messages that were withdrawn since a position."""

    messages: list[WithdrawnMessage]  # oldest first
    position: int  # the `after` of the next request


class WithdrawnRequest(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which withdrawals to wait for."""

    queues: Annotated[list[str], up_to(limits.WORKER_QUEUES_MAX, "In which queues; at least one.")]
    after: Annotated[
        int,
        bounded(
            0,
            limits.WORKER_TIME_MS_MAX,
            "The `position` of the answer before. At first a time of the server's clock in epoch milliseconds, "
            "one before that of the oldest delivery.",
        ),
    ]
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first one.")] = (
        limits.WAIT_MS_MAX
    )


class Withdrawals(Struct, frozen=True):
    """The latest withdrawals, as of a commit."""

    entries: tuple[Withdrawal, ...] = ()  # oldest first, at most WITHDRAWALS_KEPT_MAX
    last: int = 0  # the position of the newest; 0 before the first
    dropped: int = 0  # the position of the newest that is no longer among them; 0 for none

    def with_new(self, new: Sequence[Withdrawal]) -> "Withdrawals":
        """These and the new ones, at least one, without the oldest if there are too many."""
        entries = (*self.entries, *new)
        cut = max(0, len(entries) - limits.WITHDRAWALS_KEPT_MAX)
        dropped = entries[cut - 1].position if cut else self.dropped
        return Withdrawals(entries[cut:], max(self.last, new[-1].position), dropped)

    def next_position(self, now_ms: int) -> int:
        """The position of a batch with this time."""
        return max(now_ms, self.last + 1)

    def after(self, position: int) -> list[Withdrawal]:
        """Those after a position, newest first."""
        return list(takewhile(lambda each: each.position > position, reversed(self.entries)))

    def queues_after(self, position: int) -> set[str]:
        """The queues of those after a position."""
        return {each.queue for each in self.after(position)}

    def answer(self, queues: Collection[str], after: int) -> WithdrawnMessages:
        """What somebody is told who has messages of these queues."""
        if after < self.dropped:
            return WithdrawnMessages([WithdrawnMessage(queue, None, None) for queue in queues], self.last)
        found = [
            WithdrawnMessage(each.queue, each.message_id or None, each.why, each.reason or None)
            for each in reversed(self.after(after))
            if each.queue in queues
        ]
        return WithdrawnMessages(found, max(after, self.last))
