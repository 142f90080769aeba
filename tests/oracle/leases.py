"""A consumer in the reference engine: the list of its leases, each with the list of its pages.

Nothing is stored twice: what a `PipelineConsumer` says about its leases is computed from these lists.
"""

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model.consumers.types import NumberedLease, PipelineConsumer, Settling


class Page(NamedTuple):
    """A page of a lease: the token of its messages' receipts, their sequence numbers, and their lines."""

    token: int
    sequences: tuple[int, ...]
    body: bytes


class Lease(Struct, frozen=True, gc=False):
    """A lease. pages: all that it ever had. complete: it gets no further ones.

    settled: how many of the first pages are settled. how: the mode of settling. ended: all are acknowledged. dropping:
    its pages are being deleted. dropped: how many of the last pages are deleted already.
    """

    number: int
    made_at: int
    follows: int = 0
    pages: tuple[Page, ...] = ()
    complete: bool = False
    how: Settling | None = None
    settled: int = 0
    ended: bool = False
    dropping: bool = False
    dropped: int = 0

    @property
    def given_back(self) -> bool:
        return self.how in (Settling.RELEASE, Settling.EXPIRE)

    @property
    def messages(self) -> int:
        return sum(len(page.sequences) for page in self.pages)

    @property
    def size(self) -> int:
        """The bytes of all lines. A dropped page counted as the average of the pages that there were at that time."""
        size = sum(len(page.body) for page in self.pages)
        for pages in range(len(self.pages), len(self.pages) - self.dropped, -1):
            size -= size // pages
        return size

    def bodies(self) -> list[bytes | None]:
        """The lines of each page; None for one that is deleted."""
        first, end = self.settled if self.given_back else 0, len(self.pages) - self.dropped
        return [page.body if first <= index < end else None for index, page in enumerate(self.pages)]

    def told(self) -> NumberedLease:
        pages = len(self.pages) - self.dropped
        return NumberedLease(self.number, self.messages, self.size, pages, self.made_at, self.follows)


class StoredConsumer(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer with its leases by number: those to drop, those still readable, and up to two unsettled ones."""

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
        return [lease for lease in self.leases if lease.ended and not lease.dropping]

    @property
    def dropping(self) -> list[Lease]:
        return [lease for lease in self.leases if lease.dropping]

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
            settling=None if lease is None else lease.how,
            settled_pages=0 if lease is None else lease.settled,
            kept=tuple(each.told() for each in self.kept),
            dropping=tuple(each.told() for each in self.dropping),
            opened_at=self.opened_at,
            used_at=self.used_at,
            made_by=self.made_by,
            created_at=self.created_at,
        )
