"""Settlements of many handlers share requests: while one request is under way, the next ones gather."""

import logging

import anyio
from anyio.abc import TaskGroup

from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.worker.jobs import Job
from forq_trio.worker.outcomes import Settlement
from forq_trio.worker.source import Source, patiently

logger = logging.getLogger("forq_trio.worker")


class _Request:
    """Jobs that are settled together. current: the receipts that were."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.current: set[str] = set()
        self.answered = anyio.Event()


class Settler:
    """Settles the jobs of one queue. Requests are made by tasks of `tasks`."""

    def __init__(self, source: Source, queue: str, tasks: TaskGroup) -> None:
        self._source = source
        self._queue = queue
        self._tasks = tasks
        self._gathered: dict[Settlement, list[_Request]] = {}

    async def settle(self, job: Job, settlement: Settlement) -> bool:
        """Settle a job: True once that is durable, False if its receipt is not current or the time was too short.

        It is tried until the job's lease ends. Cancelled: the job may or may not be settled.
        """
        gathered = self._gathered.get(settlement)
        if gathered is None:
            gathered = self._gathered[settlement] = [_Request()]
            self._tasks.start_soon(self._send_all, settlement)
        if not gathered or len(gathered[-1].jobs) == limits.RECEIPTS_BATCH_MAX:
            gathered.append(_Request())
        request = gathered[-1]
        request.jobs.append(job)
        await request.answered.wait()
        return job.receipt in request.current

    async def settle_now(self, settlements: dict[Job, Settlement]) -> None:
        """Settle jobs at once, without waiting for others. It is tried once; if it fails, their leases run out."""
        receipts: dict[Settlement, list[str]] = {}
        for job, settlement in settlements.items():
            receipts.setdefault(settlement, []).append(job.receipt)
        for settlement, those in receipts.items():
            try:
                await self._request(settlement, those)
            except ForqError as error:
                logger.warning("%s: %s of %d failed: %s", self._queue, settlement.what, len(those), error)

    async def _send_all(self, settlement: Settlement) -> None:
        gathered = self._gathered[settlement]
        while gathered:
            request = gathered.pop(0)
            try:
                await self._send(settlement, request)
            finally:
                request.answered.set()
        del self._gathered[settlement]

    async def _send(self, settlement: Settlement, request: _Request) -> None:
        receipts = [job.receipt for job in request.jobs]
        problem = f"{self._queue}: {settlement.what} of {len(receipts)} failed"
        try:
            results = await patiently(
                self._source,
                lambda: self._request(settlement, receipts),
                problem,
                until=lambda: max(job.lease.ends_at for job in request.jobs),
            )
        except ForqError as error:
            logger.error("%s: %s", problem, error)
        else:
            request.current.update(result.receipt for result in results if result.ok)

    async def _request(self, settlement: Settlement, receipts: list[str]) -> list[ReceiptResult]:
        source, queue = self._source, self._queue
        match settlement.what:
            case "ack":
                return await source.ack(queue, receipts)
            case "release":
                return await source.release(queue, receipts)
            case "discard":
                return await source.discard(queue, receipts, reason=settlement.reason or "discarded")
        return await source.nack(
            queue, receipts, delay_ms=settlement.delay_ms, reason=settlement.reason, final=settlement.final
        )
