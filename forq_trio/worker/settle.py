"""Settlements of many handlers share requests: while one request is under way, the next ones gather."""

import logging
from collections.abc import Callable, Mapping

import anyio
from anyio.abc import TaskGroup

from forq_trio.model.errors import CallerError, ForqError
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.worker.jobs import Job
from forq_trio.worker.outcomes import Settlement
from forq_trio.worker.result_codec import ack_with_result
from forq_trio.worker.source import Source, passes, patiently

logger = logging.getLogger("forq_trio.worker")

RELEASE_SECONDS = 2.0
"""For how long a cancelled worker tries to release its messages, and to settle those that are done."""

Settled = Callable[[Settlement, list[Job], Mapping[str, bool]], None]
"""Is called with jobs that were settled together, and the receipts of those that are settled durably now.

Each receipt has whether its message has failed for good.
"""
ResultRefused = Callable[[ForqError, Job], Settlement]
"""What becomes of a job whose result the queue refuses for good."""


class Settler:
    """Settles the jobs of one queue. Requests are made by tasks of `tasks`."""

    def __init__(
        self, source: Source, queue: str, tasks: TaskGroup, settled: Settled, result_refused: ResultRefused
    ) -> None:
        self._source = source
        self._queue = queue
        self._tasks = tasks
        self._settled = settled
        self._result_refused = result_refused
        self._gathered: dict[Settlement, list[Job]] = {}

    def settle(self, job: Job, settlement: Settlement) -> None:
        """Settle a job soon; `settled` is told of it, unless the worker is cancelled.

        It is tried until the job's lease ends. If the worker is cancelled, it is tried once more, at once: the job may
        or may not be settled then.
        """
        gathered = self._gathered.get(settlement)
        if gathered is None:
            gathered = self._gathered[settlement] = []
            self._tasks.start_soon(self._send_all, settlement, gathered)
        gathered.append(job)

    async def _send_all(self, settlement: Settlement, gathered: list[Job]) -> None:
        try:
            while gathered:
                jobs = gathered[: settlement.messages_max]
                current = await self._send(settlement, jobs)
                del gathered[: len(jobs)]
                if isinstance(current, ForqError):
                    for job in jobs:
                        self.settle(job, self._result_refused(current, job))
                else:
                    self._settled(settlement, jobs, current)
        except BaseException:
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                await self._send_once(settlement, gathered)
            raise
        finally:
            del self._gathered[settlement]

    async def _send(self, settlement: Settlement, jobs: list[Job]) -> dict[str, bool] | ForqError:
        """As `Settled` takes it. The other receipts are not current, or the time was too short.

        If the result of the jobs is refused for good: why.
        """
        receipts = [job.receipt for job in jobs]
        problem = f"{self._queue}: {settlement.what} of {len(receipts)} failed"
        try:
            results = await patiently(
                self._source,
                lambda: self._request(settlement, receipts),
                problem,
                until=lambda: max(job.lease.ends_at for job in jobs),
            )
        except ForqError as error:
            logger.error("%s: %s", problem, error)
            return error if _refuses_result(error, settlement) else {}
        return {result.receipt: settlement.final or result.failed for result in results if result.ok}

    async def _send_once(self, settlement: Settlement, gathered: list[Job]) -> None:
        """Settle jobs, also those that come meanwhile. If it fails, their leases run out."""
        while gathered:
            jobs = gathered[: settlement.messages_max]
            current = [job for job in jobs if not job.lost]
            try:
                if current:
                    await self._request(settlement, [job.receipt for job in current])
            except ForqError as error:
                logger.warning("%s: %s of %d failed: %s", self._queue, settlement.what, len(current), error)
                if _refuses_result(error, settlement):
                    for job in current:
                        await self._send_once(self._result_refused(error, job), [job])
            del gathered[: len(jobs)]

    async def _request(self, settlement: Settlement, receipts: list[str]) -> list[ReceiptResult]:
        source, queue = self._source, self._queue
        match settlement.what:
            case "ack":
                if settlement.result is not None:
                    return await ack_with_result(source, queue, receipts, settlement.result)
                return await source.ack(queue, receipts)
            case "release":
                return await source.release(queue, receipts)
            case "discard":
                return await source.discard(queue, receipts, reason=settlement.reason or "discarded")
        return await source.nack(
            queue,
            receipts,
            delay_ms=settlement.delay_ms,
            reason=settlement.reason,
            final=settlement.final,
            max_attempts=settlement.max_attempts,
        )


def _refuses_result(error: ForqError, settlement: Settlement) -> bool:
    """Whether an error means that the queue never takes this result. A message that is not settled runs again."""
    return settlement.result is not None and isinstance(error, CallerError) and not passes(error)
