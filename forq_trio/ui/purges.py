"""Purges that run in the background, so that no browser has to wait while millions of messages are removed.

Each queue has one at a time, all queues together PURGES_RUNNING_MAX. Purges end with the server: removed messages are
gone, the rest stays. The latest purges are remembered, so that pages can say how they ended.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import trio
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, Overloaded


class RemoveAll(Protocol):
    """`Broker.purge`, or `Broker.purge_history`."""

    async def __call__(self, queue: str, *, on_step: Callable[[int], None]) -> int: ...


class PurgeRun(Struct):
    """A purge of a queue."""

    queue: str
    total: int  # how many messages there were
    started_by: str
    removed: int = 0  # so far
    error: str | None = None  # why it ended early, None if it did not
    ended_at: float | None = None  # on trio's clock, None while it runs

    def note(self, removed: int) -> None:
        self.removed = removed


class Purges:
    """Runs purges; `run` is its task. purge: removes a queue's messages. count: returns how many there are now."""

    def __init__(self, purge: RemoveAll, count: Callable[[str], int]) -> None:
        self._purge = purge
        self._count = count
        self._purges: OrderedDict[str, PurgeRun] = OrderedDict()
        self._send, self._receive = trio.open_memory_channel[PurgeRun](limits.PURGES_RUNNING_MAX)

    async def run(self) -> None:
        """Run the purges that are started, until cancelled."""
        async with trio.open_nursery() as nursery:
            async for purge in self._receive:
                nursery.start_soon(self._carry_out, purge)

    def start(self, queue: str, started_by: str) -> PurgeRun:
        """Start to purge a queue; if its purge runs already, returns that one. Raises Overloaded if too many run."""
        running = self._purges.get(queue)
        if running is not None and running.ended_at is None:
            return running
        if sum(purge.ended_at is None for purge in self._purges.values()) >= limits.PURGES_RUNNING_MAX:
            raise Overloaded("as many purges run as are allowed; try again when one has ended")
        purge = PurgeRun(queue, self._count(queue), started_by)
        self._send.send_nowait(purge)
        self._purges[queue] = purge
        self._purges.move_to_end(queue)
        self._forget()
        return purge

    def of(self, queue: str) -> PurgeRun | None:
        """The purge of a queue that runs, or ended less than PURGE_SHOWN_SECONDS ago."""
        purge = self._purges.get(queue)
        if purge is None or purge.ended_at is None:
            return purge
        return purge if trio.current_time() - purge.ended_at < limits.PURGE_SHOWN_SECONDS else None

    def _forget(self) -> None:
        """Forget those that ended longest ago."""
        ended = [queue for queue, purge in self._purges.items() if purge.ended_at is not None]
        for queue in ended[: max(0, len(self._purges) - limits.PURGES_REMEMBERED_MAX)]:
            del self._purges[queue]

    async def _carry_out(self, purge: PurgeRun) -> None:
        try:
            purge.removed = await self._purge(purge.queue, on_step=purge.note)
        except ForqError as error:
            purge.error = error.message
        finally:
            purge.ended_at = trio.current_time()
