"""A worker hears of its messages that somebody else removed, and cancels their handlers at once.

One long poll asks for all of its queues, while any message is in process. A source that cannot say it, such as an
older server, is asked once: then the next heartbeat (leases.py) learns of each loss.

The first poll asks for what happened since the delivery of the oldest message, and each later one goes on where the one
before ended. A message may have been delivered before that, if the answer of its claim took long: then the poll under
way is given up, and the next one goes back to its delivery. So nothing is missed in between.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import anyio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.model.workers.withdrawn import WithdrawnMessage, WithdrawnMessages
from forq_trio.worker.loop import QueueLoop
from forq_trio.worker.source import PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN, Source, passes

logger = logging.getLogger("forq_trio.worker")

PAUSE_SECONDS = 1.0
"""After an answer that names no message."""

Ask = Callable[[Sequence[str], int], Awaitable[WithdrawnMessages]]


class WithdrawnWatch:
    """Asks for the withdrawn messages of one worker. Made inside of the event loop."""

    def __init__(self, loops: Sequence[QueueLoop]) -> None:
        self._leases = {loop.queue: loop.leases for loop in loops[: limits.WORKER_QUEUES_MAX]}
        self._held = anyio.Event()
        self._after = 0
        self._asking = anyio.CancelScope()  # around the poll under way
        for each in self._leases.values():
            each.on_hold = self._go_back

    async def run(self, source: Source) -> None:
        """Ask until cancelled, or until it is clear that the source never answers."""
        ask: Ask | None = getattr(source, "withdrawn", None)  # a source in a test may have it by __getattr__
        pause = PAUSE_SECONDS_MIN
        while ask is not None:
            await self._until_held()
            try:
                with anyio.CancelScope() as self._asking:
                    answer = await ask([*self._leases], self._after)
            except ForqError as error:
                if not passes(error):
                    logger.debug("the source does not tell of withdrawn messages: %s", error)
                    return
                await anyio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            else:
                if self._asking.cancel_called:  # an answer that came nevertheless is part of the next one
                    continue
                pause = PAUSE_SECONDS_MIN
                self._after = max(self._after, answer.position)
                for each in answer.messages:
                    self._tell(each)
                if answer.messages and not any(each.message_id for each in answer.messages):
                    await anyio.sleep(PAUSE_SECONDS)  # all leases are extended: not more often than this

    async def _until_held(self) -> None:
        """Wait until a message is in process; if none was, what happened since its delivery counts."""
        waited = False
        while not any(each.jobs for each in self._leases.values()):
            self._held = anyio.Event()
            waited = True
            await self._held.wait()
        if waited or not self._after:
            held = (
                job.lease.until - each.lease_ms
                for each in self._leases.values()
                for job in each.jobs.values()
            )
            self._after = max(self._after, min(held) - 1)

    def _go_back(self, delivered_at: int) -> None:
        self._held.set()
        if delivered_at <= self._after:
            self._after = delivered_at - 1
            self._asking.cancel()

    def _tell(self, withdrawn: WithdrawnMessage) -> None:
        leases = self._leases.get(withdrawn.queue)
        if leases is None:
            return
        if withdrawn.message_id is None:
            leases.extend_now()
        else:
            leases.remove(withdrawn.message_id, withdrawn.how, withdrawn.reason)
