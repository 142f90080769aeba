"""A worker makes itself known to its source: who it is, and what it has in process (docs/admin-ui.md)."""

import logging
import os
from collections.abc import Sequence
from heapq import nsmallest
from typing import Protocol, runtime_checkable
from uuid import uuid4

import anyio

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.clock import machine_ms
from forq_trio.model.errors import CallerError, ForqError, TooManyWorkers
from forq_trio.model.workers.types import HeldMessage, JobProgress, WorkerQueue, WorkerReport
from forq_trio.worker.jobs import Job
from forq_trio.worker.loop import QueueLoop
from forq_trio.worker.outcomes import text_of
from forq_trio.worker.source import Source

logger = logging.getLogger("forq_trio.worker")

FORGET_SECONDS = 1.0


@runtime_checkable
class Reported(Protocol):
    """A source that takes reports of workers."""

    async def report_worker(self, report: WorkerReport) -> None: ...

    async def forget_worker(self, worker_id: str) -> None: ...


class Presence:
    """Reports of one worker, for one time that it serves."""

    def __init__(self, name: str, host: str, version: str) -> None:
        self._id = str(uuid4())
        self._name = name
        self._host = host
        self._version = version
        self._started_at = machine_ms()

    def report(self, loops: Sequence[QueueLoop]) -> WorkerReport:
        """The current report of the worker."""
        return WorkerReport(
            self._id,
            self._name[: limits.WORKER_NAME_LENGTH_MAX],
            self._host[: limits.WORKER_HOST_LENGTH_MAX],
            self._version[: limits.WORKER_VERSION_LENGTH_MAX],
            os.getpid(),
            self._started_at,
            tuple(map(_queue, loops[: limits.WORKER_QUEUES_MAX])),
        )

    async def run(self, source: Source, loops: Sequence[QueueLoop]) -> None:
        """Report every 5 seconds until cancelled, then report the end. Errors are logged and stop no work."""
        if not isinstance(source, Reported):
            return
        try:
            listed = await self._tell(source, loops)
            while listed:
                await anyio.sleep(limits.WORKER_REPORT_SECONDS)
                listed = await self._tell(source, loops)
        finally:
            with anyio.move_on_after(FORGET_SECONDS, shield=True):
                try:
                    await source.forget_worker(self._id)
                except ForqError as error:
                    logger.debug("the source was not told that the worker ends: %s", error)

    async def _tell(self, source: Reported, loops: Sequence[QueueLoop]) -> bool:
        """Report once; False if another report would be pointless."""
        try:
            await source.report_worker(self.report(loops))
        except CallerError as error:
            logger.info("the source does not list this worker: %s", error)
            return isinstance(error, TooManyWorkers)  # later there may be fewer
        except ForqError as error:
            logger.debug("the worker could not report: %s", error)
        return True


def _queue(loop: QueueLoop) -> WorkerQueue:
    stats = loop.stats
    held = nsmallest(limits.WORKER_QUEUE_HOLDS_MAX, loop.leases.jobs.values(), key=_since)
    return WorkerQueue(
        loop.queue,
        stats.slots,
        len(loop.leases.jobs),
        stats.handled + stats.discarded,
        stats.failed + stats.dead,
        tuple(map(_held, held)),
    )


def _held(job: Job) -> HeldMessage:
    lease = job.lease
    return HeldMessage(job.id, job.sequence, lease.since, job.attempt, lease.until, _told(lease.progress))


def _told(progress: tuple[float, str] | None) -> JobProgress | None:
    if progress is None:
        return None
    percent, text = progress
    return JobProgress(int(percent), storable_reason(text_of(text))[: limits.PROGRESS_TEXT_LENGTH_MAX])


def _since(job: Job) -> int:
    return job.lease.since
