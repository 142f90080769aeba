"""Decides which read runs next: callers share a number of slots fairly, and long reads never hold all of them.

Rules
- A read is short (some rows by an index) or long (it may cover thousands of rows). Long reads hold at most `long_max`
  slots; the others serve only short reads.
- Waiting reads are served round-robin by caller, one read of each in turn.
- A caller may have a bounded number of reads waiting; one more is refused.
- A free slot goes to a short read before a long one, because short reads hold it for less time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from forq_trio.model import limits
from forq_trio.model.errors import Overloaded
from forq_trio.model.round_robin import RoundRobin


class _Lane:
    """The reads of one length: how many run, and which wait."""

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self.running_max = running_max
        self.running = 0
        self.waiting = RoundRobin[trio.Event]()
        self._waiting_max = waiting_max

    def add(self, caller: str) -> trio.Event:
        """Let a read wait after the caller's others; the event is set when it gets a slot. Raises Overloaded."""
        if self.waiting.count(caller) >= self._waiting_max:
            raise Overloaded("too many reads of this client are waiting; try again shortly")
        granted = trio.Event()
        self.waiting.add(caller, granted)
        return granted

    def grant_next(self) -> None:
        self.waiting.next().set()
        self.running += 1


class ReadSlots:
    """`size` slots. For one event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._short = _Lane(size, limits.READS_WAITING_MAX)
        self._long = _Lane(max(1, size // 2), limits.LONG_READS_WAITING_MAX)

    @property
    def waiting(self) -> int:
        """How many reads wait."""
        return len(self._short.waiting) + len(self._long.waiting)

    @asynccontextmanager
    async def hold(self, caller: str, *, long: bool) -> AsyncIterator[None]:
        """Wait for a slot and hold it while the body runs. Raises Overloaded; cancelled, nothing is held."""
        await trio.lowlevel.checkpoint_if_cancelled()
        lane = self._long if long else self._short
        granted = lane.add(caller)
        self._grant()
        try:
            await granted.wait()
        except trio.Cancelled:
            if granted.is_set():
                self._free_slot(lane)
            else:
                lane.waiting.remove(caller, granted)
            raise
        try:
            yield
        finally:
            self._free_slot(lane)

    def _free_slot(self, lane: _Lane) -> None:
        lane.running -= 1
        self._grant()

    def _grant(self) -> None:
        for lane in (self._short, self._long):
            while lane.waiting and lane.running < lane.running_max and self._running < self._size:
                lane.grant_next()

    @property
    def _running(self) -> int:
        return self._short.running + self._long.running
