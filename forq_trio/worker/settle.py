"""Settlements of many handlers share requests: while one request is under way, the next ones gather."""

import logging

import anyio
from anyio.abc import TaskGroup

from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.wire.receipts import ReceiptResult
from forq_trio.worker.jobs import Job
from forq_trio.worker.outcomes import Settlement
from forq_trio.worker.source import Source, passes

logger = logging.getLogger("forq_trio.worker")

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 2.0


class _Waiting:
    """A job whose settlement was not answered yet. ok: whether the receipt was current."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ok = False
        self.answered = anyio.Event()


class Settler:
    """Settles the jobs of one queue. Requests are made by tasks of `tasks`."""

    def __init__(self, source: Source, queue: str, tasks: TaskGroup) -> None:
        self._source = source
        self._queue = queue
        self._tasks = tasks
        self._gathered: dict[Settlement, list[_Waiting]] = {}

    async def settle(self, job: Job, settlement: Settlement) -> bool:
        """True once it is durable; False where the job's receipt is not current, or it could not be said in time.

        It is tried until the job's lease ends. Cancelled: it may or may not be carried out.
        """
        waiting = _Waiting(job)
        group = self._gathered.get(settlement)
        if group is None:
            self._gathered[settlement] = [waiting]
            self._tasks.start_soon(self._send_all, settlement)
        else:
            group.append(waiting)
        await waiting.answered.wait()
        return waiting.ok

    async def _send_all(self, settlement: Settlement) -> None:
        while group := self._gathered[settlement]:
            part, self._gathered[settlement] = (
                group[: limits.RECEIPTS_BATCH_MAX],
                group[limits.RECEIPTS_BATCH_MAX :],
            )
            try:
                await self._send(settlement, part)
            finally:
                for each in part:
                    each.answered.set()
        del self._gathered[settlement]

    async def _send(self, settlement: Settlement, group: list[_Waiting]) -> None:
        pause = PAUSE_SECONDS_MIN
        while True:
            try:
                results = await self._request(settlement, [each.job.receipt for each in group])
            except ForqError as error:
                ends_at = max(each.job.ends_at for each in group)
                if not passes(error) or anyio.current_time() + pause >= ends_at:
                    logger.error("%s: %s of %d failed: %s", self._queue, settlement.what, len(group), error)
                    return
            else:
                for each, result in zip(group, results, strict=True):
                    each.ok = result.ok
                return
            await anyio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _request(self, settlement: Settlement, receipts: list[str]) -> list[ReceiptResult]:
        source, queue = self._source, self._queue
        match settlement.what:
            case "ack":
                return await source.ack(queue, receipts)
            case "discard":
                return await source.nack(queue, receipts, reason=settlement.reason, final=True)
        return await source.nack(
            queue, receipts, delay_ms=settlement.delay_ms, reason=settlement.reason, final=settlement.final
        )
