"""Pipeline consumers: named, durable readers of a queue that read in numbered leases."""

import re
from enum import Enum

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.access.types import UNKNOWN
from forq_trio.model.errors import OtherLease, OutOfRange

_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{limits.CONSUMER_NAME_LENGTH_MAX}}}")


class Settling(Enum):
    """How the messages of a lease are settled: removed, released with the attempt uncounted, or with it counted."""

    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    EXPIRE = "expire"


class NumberedLease(Struct, frozen=True, gc=False):
    """A lease of many messages, stored as pages 0 to `pages` - 1 of lines."""

    number: int
    messages: int = 0
    bytes: int = 0  # of all lines
    pages: int = 0
    # when its last page was made, epoch ms; 0 for a lease of an earlier version. A server that was restored from a
    # backup gives out the same numbers again; this tells their leases apart.
    made_at: int = 0
    # when the lease with the previous number was made, whatever became of it; 0 if that is not known
    follows: int = 0


class PipelineConsumer(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer as it is stored; times in epoch ms."""

    queue: str
    name: str
    generation: int = 1  # grows whenever it is opened
    # its open lease is released when the consumer was not used for so long
    idle_ms: int = limits.CONSUMER_IDLE_SECONDS_DEFAULT * limits.SECOND_MS
    leased: int = 0  # the number of the newest lease, 0 for none
    leased_at: int = 0  # when that one was made, 0 if that is not known
    acknowledged: int = 0  # all leases up to this number are settled
    released_before: int = 0  # the leases below this number that were not acknowledged were released
    open: NumberedLease | None = None  # the oldest unsettled lease, None for none
    complete: bool = False  # the open lease gets no more messages
    # the next lease, if it was made before the open one is settled; it then becomes the open one
    ahead: NumberedLease | None = None
    ahead_complete: bool = False
    settling: Settling | None = None  # how the open lease is being settled, None while it is not
    settled_pages: int = 0  # how many pages of the open lease are settled
    kept: tuple[NumberedLease, ...] = ()  # acknowledged leases that can still be read
    # leases whose pages are still to be deleted; their `pages` says how many are left
    dropping: tuple[NumberedLease, ...] = ()
    opened_at: int
    used_at: int
    made_by: str = UNKNOWN  # the key that opened it first (`Key.name`), UNKNOWN if that was not stored
    created_at: int = 0  # when it was opened first, 0 if that was not stored

    @property
    def key(self) -> str:
        return consumer_key(self.queue, self.name)

    @property
    def stored_bytes(self) -> int:
        """The bytes of all its pages, some of which may be deleted already."""
        return sum([lease.bytes for lease in (*self.unsettled, *self.kept, *self.dropping)])

    @property
    def leased_bytes(self) -> int:
        """The bytes of the pages of its unsettled leases."""
        return sum([lease.bytes for lease in self.unsettled])

    @property
    def unsettled(self) -> list[NumberedLease]:
        """The unsettled leases: the open one, and the one that was made ahead."""
        return [lease for lease in (self.open, self.ahead) if lease is not None]

    @property
    def being_given_back(self) -> bool:
        """True while the open lease is being released."""
        return self.settling is not None and self.settling is not Settling.ACKNOWLEDGE

    def is_idle(self, now_ms: int) -> bool:
        """Whether the consumer was not used for `idle_ms`."""
        return self.used_at + self.idle_ms <= now_ms

    def open_lease_expired(self, now_ms: int) -> bool:
        """Whether the consumer is idle and has an open lease."""
        return self.open is not None and self.is_idle(now_ms)

    def is_complete(self, lease: NumberedLease) -> bool:
        """False for an unsettled lease that may get more messages."""
        if lease is self.ahead:
            return self.ahead_complete
        return lease is not self.open or self.complete

    def lease_times(self) -> dict[int, int]:
        """When leases were made (epoch ms), by number and sorted by it, as far as that is known.

        It is known of leases that are unsettled or can still be read, of the one before each, and of the newest.
        """
        stored = (*self.kept, *self.unsettled)
        before = {lease.number - 1: lease.follows for lease in stored if lease.follows}
        newest = {self.leased: self.leased_at} if self.leased_at else {}
        return dict(sorted((before | newest | {lease.number: lease.made_at for lease in stored}).items()))

    def check_lease(self, number: int, made_at: int | None) -> None:
        """Raise OtherLease if the lease with this number is known to have another time. made_at: None for any."""
        known = self.lease_times().get(number)
        if made_at is not None and known is not None and known != made_at:
            raise OtherLease(f"lease {number} was made at {known}, not at {made_at}: it is another one")

    def readable(self, number: int) -> NumberedLease | None:
        """The lease with this number if it can be read, else None."""
        leases = (*(() if self.being_given_back else self.unsettled), *self.kept)
        return next((lease for lease in leases if lease.number == number), None)


class ConsumerTotals(Struct, frozen=True, gc=False):
    """The totals of all consumers."""

    pages_bytes: int = 0  # of the pages of their leases
    # the highest generation of forgotten consumers; a new consumer begins above it, so that no generation of a name
    # is used twice
    forgotten_generation: int = 0
    # the highest lease number of the names whose own is no longer stored; the numbers of a name without a stored
    # one begin above it
    forgotten_number: int = 0
    leased_bytes: int = 0  # only of the pages of unsettled leases


def consumer_key(queue: str, name: str) -> str:
    """The key of a consumer among all consumers; neither name contains a slash."""
    return f"{queue}/{name}"


def check_consumer_name(name: str) -> str:
    """Return `name`. Raises OutOfRange unless it is 1 to 64 characters of A-Z a-z 0-9 . _ -, but not . or .. alone."""
    if _NAME.fullmatch(name) is None or name in (".", ".."):
        raise OutOfRange(
            f"the name of a consumer is 1 to {limits.CONSUMER_NAME_LENGTH_MAX} characters of A-Z a-z 0-9 . _ -",
            field="consumer",
        )
    return name
