"""The two logs: lifecycle events, and the history of finished messages.

New entries are added at one end of a log, and retention removes at the other. Ids grow in the order of commits, and
none is used twice.
"""

from typing import Literal, NamedTuple

LogName = Literal["events", "history"]


class Log(NamedTuple):
    """The extent of a log: the ids from `first` to `last`; it is empty if first is last + 1.

    In the history, ids of purged queues are missing in between.
    """

    enabled: bool = False  # new entries are added
    first: int = 1
    last: int = 0
    # this and the next: the bytes of all entries that were removed, and of all that there ever were, counted from some
    # point on
    bytes_before_first: int = 0
    bytes_to_last: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of the stored entries: for events about what they take in a file; for the history their content and
        attributes."""
        return self.bytes_to_last - self.bytes_before_first


class LogLines(NamedTuple):
    """A page of a log, oldest first."""

    lines: bytes  # NDJSON, each with an end of line
    next: int  # the id after which the next page begins
    first: int  # this and the next: see `Log`
    last: int
