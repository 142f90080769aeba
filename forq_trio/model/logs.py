"""The two logs: lifecycle events, and the history of finished messages.

New entries are added at one end of a log, and retention removes at the other. Ids grow in the order of commits, and
none is used twice.
"""

from typing import Literal, NamedTuple

LogName = Literal["events", "history"]


class Log(NamedTuple):
    """What is kept of a log: ids from `first` to `last`, none where first is last + 1.

    Of the history those of queues whose history was purged are missing.
    """

    enabled: bool = False  # what happens now is added
    first: int = 1
    last: int = 0
    # this and the next: of all that was removed, and of all that ever was, from some point on
    bytes_before_first: int = 0
    bytes_to_last: int = 0

    @property
    def bytes(self) -> int:
        """Of what is kept: about what events take in a file; content and attributes of finished messages."""
        return self.bytes_to_last - self.bytes_before_first


class LogLines(NamedTuple):
    """A page of a log, oldest first."""

    lines: bytes  # as NDJSON, with an end of line behind each
    next: int  # the id behind which the next page goes on
    first: int  # this and the next: see `Log`
    last: int
