"""A consumer of a pipeline: a named, durable reader of one queue, that reads in numbered leases."""

import re
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.access import UNKNOWN
from forq_trio.model.errors import OtherLease, OutOfRange

_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{limits.CONSUMER_NAME_LENGTH_MAX}}}")


class Settling(Enum):
    """How the messages of a lease are settled: removed, given back with the attempt uncounted, or with it counted."""

    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    EXPIRE = "expire"


class NumberedLease(Struct, frozen=True, gc=False):
    """A lease of many messages, stored as pages 0 to `pages` - 1 of lines."""

    number: int
    messages: int = 0
    bytes: int = 0  # of all lines
    pages: int = 0
    # when its last page was made, epoch ms; 0 for a lease that an earlier version made. A server that was
    # restored from a backup gives out numbers again, and this tells the leases apart.
    made_at: int = 0
    # when the lease of the number before was made, whatever became of it; 0 where that is not known
    follows: int = 0


class PipelineConsumer(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer as it is stored; times in epoch ms."""

    queue: str
    name: str
    generation: int = 1  # grows whenever it is opened
    # its open lease is given back when it is not used for so long
    idle_ms: int = limits.CONSUMER_IDLE_SECONDS_DEFAULT * limits.SECOND_MS
    leased: int = 0  # the number of the newest lease, 0 for none
    leased_at: int = 0  # when it was made, 0 where that is not known
    acknowledged: int = 0  # all leases up to this number are settled
    released_before: int = 0  # the leases below this number that were not acknowledged were given back
    open: NumberedLease | None = None  # the older lease whose messages are leased, None for none
    complete: bool = False  # that lease gets no more messages
    # the lease behind it, made before it is settled; it is the open one then
    ahead: NumberedLease | None = None
    ahead_complete: bool = False
    settling: Settling | None = None  # how the open lease is being settled, None while nobody does
    settled_pages: int = 0  # how many of its pages are
    kept: tuple[NumberedLease, ...] = ()  # acknowledged leases that can still be read
    # leases whose pages are yet to be deleted; `pages` says how many are left
    dropping: tuple[NumberedLease, ...] = ()
    opened_at: int
    used_at: int
    made_by: str = UNKNOWN  # the key that opened it first (`Key.name`), UNKNOWN where that was not stored
    created_at: int = 0  # when, 0 where that was not stored

    @property
    def key(self) -> str:
        return consumer_key(self.queue, self.name)

    @property
    def stored_bytes(self) -> int:
        """The bytes of all of its pages, some of which may be deleted already."""
        return sum([lease.bytes for lease in (*self.unsettled, *self.kept, *self.dropping)])

    @property
    def leased_bytes(self) -> int:
        """The bytes of the pages of its unsettled leases."""
        return sum([lease.bytes for lease in self.unsettled])

    @property
    def unsettled(self) -> list[NumberedLease]:
        """The leases whose messages are leased."""
        return [lease for lease in (self.open, self.ahead) if lease is not None]

    @property
    def being_given_back(self) -> bool:
        """True while the open lease is being given back."""
        return self.settling is not None and self.settling is not Settling.ACKNOWLEDGE

    def is_idle(self, now_ms: int) -> bool:
        """True for one that was not used for `idle_ms`."""
        return self.used_at + self.idle_ms <= now_ms

    def open_lease_expired(self, now_ms: int) -> bool:
        """True for an idle one with an open lease."""
        return self.open is not None and self.is_idle(now_ms)

    def is_complete(self, lease: NumberedLease) -> bool:
        """False for an unsettled lease that may get more messages."""
        if lease is self.ahead:
            return self.ahead_complete
        return lease is not self.open or self.complete

    def lease_times(self) -> dict[int, int]:
        """When leases were made, by their numbers, of those of which that is known: in the order of numbers.

        These are the ones that are not settled or can still be read, the one before each of them, and the newest one.
        """
        stored = (*self.kept, *self.unsettled)
        before = {lease.number - 1: lease.follows for lease in stored if lease.follows}
        newest = {self.leased: self.leased_at} if self.leased_at else {}
        return dict(sorted((before | newest | {lease.number: lease.made_at for lease in stored}).items()))

    def check_lease(self, number: int, made_at: int | None) -> None:
        """Raise OtherLease where the lease of this number is known to be made at another time. None: it is not told."""
        known = self.lease_times().get(number)
        if made_at is not None and known is not None and known != made_at:
            raise OtherLease(f"lease {number} was made at {known}, not at {made_at}: it is another one")

    def readable(self, number: int) -> NumberedLease | None:
        """The lease of this number if it can be read."""
        leases = (*(() if self.being_given_back else self.unsettled), *self.kept)
        return next((lease for lease in leases if lease.number == number), None)


class ConsumerTotals(Struct, frozen=True, gc=False):
    """Of all consumers."""

    pages_bytes: int = 0  # of the pages of their leases
    # the highest one of those that were forgotten; a new consumer begins above it, so that no generation of a
    # name comes back
    forgotten_generation: int = 0
    # the highest lease number of those whose own is no longer stored, above which the numbers of a name
    # without one begin
    forgotten_number: int = 0
    leased_bytes: int = 0  # of the pages of unsettled leases alone


class ConsumerGauges(NamedTuple):
    """The metrics of a consumer. lag: messages of its queue that it could lease."""

    queue: str
    name: str
    lag: int
    open_messages: int
    seconds_since_use: float


def consumer_key(queue: str, name: str) -> str:
    """The key of a consumer among those of all queues; neither name has a slash."""
    return f"{queue}/{name}"


def check_consumer_name(name: str) -> str:
    """Return `name`, or raise OutOfRange unless it is 1 to 64 of A-Z a-z 0-9 . _ -, and no step in a path."""
    if _NAME.fullmatch(name) is None or name in (".", ".."):
        raise OutOfRange(
            f"the name of a consumer is 1 to {limits.CONSUMER_NAME_LENGTH_MAX} characters of A-Z a-z 0-9 . _ -",
            field="consumer",
        )
    return name
