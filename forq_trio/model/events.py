"""Which kinds of lifecycle events there are, which are kept, and pages of them as readers make them."""

from typing import Literal, NamedTuple, get_args

EventKind = Literal[
    "produced",
    "delivered",
    "acked",
    "nacked",
    "released",
    "extended",
    "lease_expired",
    "dead_lettered",
    "requeued",
    "expired",
    "deleted",
    "cancelled",
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""What is stored of a kind is its place here, so the order never changes; new ones come at the end."""


class EventLog(NamedTuple):
    """The lifecycle events that are kept: those with the ids `first` to `last`; none where first is last + 1.

    enabled: new ones are added. bytes_before_first, bytes_to_last: the bytes of all events before the first, and up to
    the last, ever.
    """

    enabled: bool = False
    first: int = 1
    last: int = 0
    bytes_before_first: int = 0
    bytes_to_last: int = 0

    @property
    def bytes(self) -> int:
        """About how many bytes of a file they take."""
        return self.bytes_to_last - self.bytes_before_first


class EventLines(NamedTuple):
    """A page of events. lines: as NDJSON, with an end of line behind each.

    next: the id behind which the next page goes on. first, last: see `EventLog`.
    """

    lines: bytes
    next: int
    first: int
    last: int
