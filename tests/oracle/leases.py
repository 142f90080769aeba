"""A consumer in the reference engine: the list of its leases, each with the list of its pages.

Nothing is stored twice: what a `PipelineConsumer` says about its leases is computed from these lists.
"""

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model.consumers.types import NumberedLease, PipelineConsumer


class Page(NamedTuple):
    """A page of a lease: the token of its messages' receipts, their sequence numbers, and their lines."""

    token: int
    sequences: tuple[int, ...]
    body: bytes


class Lease(Struct, frozen=True, gc=False):
    """A lease. follows: when the one before it was made. complete: it gets no further pages. ended: acknowledged."""

    number: int
    made_at: int
    follows: int = 0
    pages: tuple[Page, ...] = ()
    complete: bool = False
    ended: bool = False

    @property
    def messages(self) -> int:
        return sum(len(page.sequences) for page in self.pages)

    @property
    def size(self) -> int:
        """The bytes of all lines."""
        return sum(len(page.body) for page in self.pages)

    def told(self) -> NumberedLease:
        return NumberedLease(
            self.number, self.messages, self.size, len(self.pages), self.made_at, self.follows
        )


class StoredConsumer(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer with its leases by number: those still readable, and up to two unsettled ones."""

    queue: str
    name: str
    made_by: str
    generation: int
    idle_ms: int
    leased: int
    acknowledged: int
    released_before: int = 0
    opened_at: int
    used_at: int
    created_at: int
    leases: tuple[Lease, ...] = ()
    made: tuple[tuple[int, int], ...] = ()

    @property
    def open(self) -> Lease | None:
        return next(iter(self.unsettled), None)

    @property
    def unsettled(self) -> list[Lease]:
        return [lease for lease in self.leases if not lease.ended]

    @property
    def kept(self) -> list[Lease]:
        return [lease for lease in self.leases if lease.ended]

    def is_idle(self, now_ms: int) -> bool:
        return now_ms - self.used_at >= self.idle_ms

    def with_lease(self, lease: Lease) -> "StoredConsumer":
        """The consumer with this lease, which replaces the one with the same number or comes after all others."""
        others = [each for each in self.leases if each.number != lease.number]
        return replace(self, leases=tuple(sorted([*others, lease], key=lambda each: each.number)))

    def told(self) -> PipelineConsumer:
        lease, ahead = (*self.unsettled, None, None)[:2]
        return PipelineConsumer(
            queue=self.queue,
            name=self.name,
            generation=self.generation,
            idle_ms=self.idle_ms,
            leased=self.leased,
            leased_at=dict(self.made).get(self.leased, 0),
            acknowledged=self.acknowledged,
            released_before=self.released_before,
            open=None if lease is None else lease.told(),
            complete=lease is not None and lease.complete,
            ahead=None if ahead is None else ahead.told(),
            ahead_complete=ahead is not None and ahead.complete,
            kept=tuple(each.told() for each in self.kept),
            opened_at=self.opened_at,
            used_at=self.used_at,
            made_by=self.made_by,
            created_at=self.created_at,
        )
