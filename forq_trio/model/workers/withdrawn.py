"""Withdrawn messages: those that somebody else removed while a consumer had them.

A worker waits for them with a long poll, and cancels their handlers. Each withdrawal has a position. Positions are the
same in all processes on a database, so the next poll can go to another server. Only the latest withdrawals are known,
and only in memory. If some may be missing, the answer names the queue and no message: then the worker extends its
leases in that queue, and learns from the answers which are lost.

Many withdrawals of one queue push out older ones of others. It is known in which queues any were dropped, so a worker
of other queues need not extend its leases.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Literal, NamedTuple

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.values import Uuid, bounded, up_to

How = Literal["cancelled", "deleted"]
"""Somebody cancelled it; or deleted it, dropped its key, or purged its queue.

A message that a consumer has is not evicted, and does not expire.
"""


class Withdrawal(NamedTuple):
    """A message that was withdrawn, as processes tell each other."""

    position: int  # that of its batch: its time (epoch ms), or one more than that of the batch before
    queue: str  # where it was
    message_id: str  # which one; "" for many in one batch
    how: How  # it was removed
    reason: str = ""  # that was given; "" for none


class WithdrawnMessage(Struct, frozen=True, rename="camel"):
    """A message that somebody removed while a consumer had it."""

    queue: str  # where it was
    message_id: Uuid | None  # which one; None: it may be any of this queue
    how: How | None  # how it was removed; None: that is not known
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
    dropped: int = (
        0  # the position of the newest that is no longer among them, whatever its queue; 0 for none
    )
    dropped_in: Mapping[str, int] = {}  # the same for queues of which later ones were dropped

    @classmethod
    def unknown_until(cls, position: int) -> "Withdrawals":
        """None is known that has this position, or one before it."""
        return cls((), position, position)

    def with_new(self, new: Sequence[Withdrawal]) -> "Withdrawals":
        """These and the new ones, at least one, without the oldest if there are too many."""
        entries = (*self.entries, *new)
        last = max(self.last, new[-1].position)
        cut = len(entries) - limits.WITHDRAWALS_KEPT_MAX
        if cut <= 0:
            return Withdrawals(entries, last, self.dropped, self.dropped_in)
        dropped = self.dropped
        dropped_in = {**self.dropped_in, **{each.queue: each.position for each in entries[:cut]}}
        if len(dropped_in) > limits.WITHDRAWALS_KEPT_MAX:
            dropped = sorted(dropped_in.values())[-limits.WITHDRAWALS_KEPT_MAX - 1]
            dropped_in = {queue: position for queue, position in dropped_in.items() if position > dropped}
        return Withdrawals(entries[cut:], last, dropped, dropped_in)

    def next_position(self, now_ms: int) -> int:
        """The position of a batch with this time."""
        return max(now_ms, self.last + 1)

    def after(self, position: int) -> list[Withdrawal]:
        """Those after a position, newest first."""
        return list(takewhile(lambda each: each.position > position, reversed(self.entries)))

    def queues_after(self, position: int) -> set[str]:
        """The queues of those after a position, also of those that are no longer named."""
        named = {each.queue for each in self.after(position)}
        return named | {queue for queue, dropped_at in self.dropped_in.items() if dropped_at > position}

    def answer(self, queues: Collection[str], after: int, began_at: int) -> WithdrawnMessages:
        """What somebody is told who has messages of these queues.

        began_at: when this process began (epoch ms). Unless it shares a database, nothing is known of the time before.
        """
        dropped = self.dropped or began_at - 1
        missed = [queue for queue in queues if after < max(dropped, self.dropped_in.get(queue, 0))]
        found = [WithdrawnMessage(queue, None, None) for queue in missed]
        found += [
            WithdrawnMessage(each.queue, each.message_id or None, each.how, each.reason or None)
            for each in reversed(self.after(after))
            if each.queue in queues and each.queue not in missed
        ]
        return WithdrawnMessages(found, max(after, self.last, dropped))
