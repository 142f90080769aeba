"""Heartbeats: the leases of a queue's jobs are extended at a third of their length, many in one request.

If a lease cannot be extended, the handler is cancelled, and its result no longer counts. That happens when the answer
says that the receipt is not current, or when the lease has run out while the server does not answer.
"""

import logging
import math
from collections.abc import Callable

import anyio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.worker.jobs import Job
from forq_trio.worker.source import Source

logger = logging.getLogger("forq_trio.worker")

RESERVE_SHARE = 0.1
RESERVE_SECONDS_MAX = 1.0
"""A new lease counts as this much shorter at most, because it began before its answer arrived."""

SHORTEN_SECONDS_MAX = 2.0
"""How long a deadline that is earlier than this may take to reach the queue, though it has passed meanwhile."""


class JobLeases:
    """The leases of one queue's jobs. lease_ms: their length."""

    def __init__(self, source: Source, queue: str, lease_ms: int) -> None:
        self.lease_ms = lease_ms
        self.jobs: dict[str, Job] = {}
        self._source = source
        self._queue = queue
        self._due: dict[str, float] = {}
        self._changed = anyio.Event()
        self._sleeps_until = math.inf
        self._asking = anyio.Lock()
        # called when jobs come, with the time of their delivery (epoch ms, by the queue's clock)
        self.on_hold: Callable[[int], object] = lambda delivered_at: None

    def end_of_new(self) -> float:
        """When the lease of a message received now ends, on the event loop's clock."""
        seconds = self.lease_ms / 1_000
        return anyio.current_time() + seconds - min(RESERVE_SECONDS_MAX, seconds * RESERVE_SHARE)

    def hold(self, jobs: list[Job]) -> None:
        """Extend the leases of these jobs until `let_go`."""
        due = anyio.current_time() + self.lease_ms / 3_000
        for job in jobs:
            self.jobs[job.receipt] = job
            self._due[job.receipt] = due
        if due < self._sleeps_until:
            self._wake()
        self.on_hold(min(job.lease.until for job in jobs) - self.lease_ms)

    def let_go(self, jobs: list[Job]) -> None:
        """Stop extending the leases of these jobs."""
        for job in jobs:
            self.jobs.pop(job.receipt, None)
            self._due.pop(job.receipt, None)

    def remove(self, message_id: str, removed: str | None, reason: str | None = None) -> None:
        """Cancel the handler of a message that somebody else removed, if there is one. removed, reason: see `Job`."""
        for job in self.jobs.values():
            if job.id == message_id and not job.lost:
                self._due.pop(job.receipt, None)
                job.lose(removed, reason)

    def extend_now(self) -> None:
        """Extend all leases now, and so learn which are lost."""
        self._due = dict.fromkeys(self._due, anyio.current_time())
        self._wake()

    async def shorten(self, job: Job, seconds: float) -> None:
        """Let a job's lease end in `seconds`, and do not extend it again.

        Raises what `extend` raises; then the handler is cancelled in time nevertheless, and the message comes back
        later.
        """
        ends_at = anyio.current_time() + seconds
        job.lease.extended = False
        job.lease.end_at(ends_at)  # before the queue is asked: its answer may be lost
        self._due.pop(job.receipt, None)
        # The end of the lease cancels the handler, which waits for this: at once, if it was to be now.
        urgent = seconds < SHORTEN_SECONDS_MAX
        until = anyio.current_time() + SHORTEN_SECONDS_MAX if urgent else math.inf
        with anyio.CancelScope(deadline=until, shield=urgent):
            async with self._asking:  # a heartbeat under way would extend it again
                left = max(0.0, ends_at - anyio.current_time())
                await self._extend([job], math.ceil(left * 1_000))
        self._wake()

    async def run(self) -> None:
        """Extend and end leases until cancelled."""
        while True:
            changed = self._changed
            self._sleeps_until = self._next()
            with anyio.CancelScope(deadline=self._sleeps_until):
                await changed.wait()
            self._end_those_over()
            await self._extend_due()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _next(self) -> float:
        """When the next lease has to be extended or ended, on the event loop's clock."""
        ends = (job.lease.ends_at for job in self.jobs.values() if not job.lost)
        return min([*self._due.values(), *ends], default=math.inf)

    def _end_those_over(self) -> None:
        """Mark ended leases as lost. Handlers on the loop are cancelled by their scopes; those in threads need this."""
        now = anyio.current_time()
        for job in self.jobs.values():
            if now >= job.lease.ends_at and not job.lost:
                self._due.pop(job.receipt, None)
                job.lose()

    async def _extend_due(self) -> None:
        soon = anyio.current_time() + self.lease_ms / 30_000
        for receipt in [each for each in self._due if not self.jobs[each].lease.extended]:
            del self._due[receipt]  # its thread has timed out
        due = [self.jobs[receipt] for receipt, at in self._due.items() if at <= soon]
        for start in range(0, len(due), limits.RECEIPTS_BATCH_MAX):
            part = due[start : start + limits.RECEIPTS_BATCH_MAX]
            again_at = anyio.current_time() + self.lease_ms / 3_000
            with anyio.move_on_after(self.lease_ms / 6_000) as waited:
                try:
                    async with self._asking:
                        await self._extend([job for job in part if job.receipt in self._due], self.lease_ms)
                except ForqError as error:
                    logger.warning("%s: leases could not be extended: %s", self._queue, error)
                    again_at = anyio.current_time() + self.lease_ms / 12_000
            if waited.cancelled_caught:
                logger.warning("%s: the source takes long to extend leases", self._queue)
                again_at = anyio.current_time() + self.lease_ms / 12_000
            for job in part:
                if job.receipt in self._due:
                    self._due[job.receipt] = again_at

    async def _extend(self, jobs: list[Job], lease_ms: int) -> None:
        asked_at = anyio.current_time()
        results = await self._source.extend(self._queue, [job.receipt for job in jobs], lease_ms)
        for job, result in zip(jobs, results, strict=True):
            if result.ok:
                job.lease.until = result.lease_until or job.lease.until
                ends_at_most = math.inf if job.lease.extended else job.lease.ends_at
                job.lease.end_at(min(asked_at + lease_ms / 1_000, ends_at_most))
            elif job.receipt in self.jobs and not job.lost:  # it may have been told of meanwhile, and how
                self._due.pop(job.receipt, None)
                job.lose()
