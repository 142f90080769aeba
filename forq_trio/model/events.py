"""Which lifecycle events there are, and pages of them as readers make them."""

from typing import NamedTuple


class EventLog(NamedTuple):
    """The lifecycle events that are kept: those with the ids `first` to `last`; none where first is last + 1.

    enabled: new ones are added. begin, end: the bytes of all events before the first, and up to the last, ever.
    """

    enabled: bool = False
    first: int = 1
    last: int = 0
    begin: int = 0
    end: int = 0

    @property
    def bytes(self) -> int:
        """About how many bytes of a file they take."""
        return self.end - self.begin


class EventLines(NamedTuple):
    """A page of events. lines: as NDJSON, with an end of line behind each.

    next: the id behind which the next page goes on. first, last: see `EventLog`.
    """

    lines: bytes
    next: int
    first: int
    last: int
