"""How much of an outbox waits, and for how long: as of the relay's latest read, which tells it anyway.

Ids are given without gaps, and in the order of commit. So the messages behind the relayed position are as many as ids
have been given since, and one that has an id at some read is at least as old as that read.
"""

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from forq_trio.model import limits


class _Mark(NamedTuple):
    """At this time (seconds) the outbox had given ids up to this one."""

    last_id: int
    at: float


class Backlog:
    """Costs nothing beside the reads, and has at most OUTBOX_MARKS_MAX marks. now: a clock that only goes forward."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.waiting = 0  # how many messages are committed and not relayed
        self._now = now
        self._marks: deque[_Mark] = deque()
        self._oldest_at: float | None = None  # one value, because metrics are read in other threads

    @property
    def oldest_seconds(self) -> float:
        """For how long, at least, the oldest of them has waited since a relay of this process saw it; 0 without one."""
        oldest_at = self._oldest_at
        return 0.0 if oldest_at is None else self._now() - oldest_at

    def note(self, position: int, last_id: int) -> None:
        """Note a read. position: the id up to which all is relayed. last_id: the highest id that was given."""
        marks = self._marks
        self.waiting = max(0, last_id - position)
        while marks and marks[-1].last_id > last_id:  # the database was replaced by an older copy
            marks.pop()
        while marks and marks[0].last_id <= position:
            marks.popleft()
        if last_id > (marks[-1].last_id if marks else position):
            if len(marks) < limits.OUTBOX_MARKS_MAX:
                marks.append(_Mark(last_id, self._now()))
            else:  # the relay has been held up for long: what comes now counts as a little older
                marks[-1] = _Mark(last_id, marks[-1].at)
        self._oldest_at = marks[0].at if marks else None
