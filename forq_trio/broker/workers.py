"""Workers and server processes that make themselves known. A part of `Broker`; what is known of them is in memory."""

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model.access import SECRET, Key
from forq_trio.model.errors import Forbidden
from forq_trio.model.messages import check_queue_name
from forq_trio.model.processes import ProcessInfo
from forq_trio.model.workers import WorkerInfo, WorkerReport


class WorkerCalls(BrokerBase):
    """Nothing of this is stored: after a restart the server knows a worker from its next report on."""

    async def report_worker(self, report: WorkerReport, *, key: Key = SECRET) -> None:
        """Take what a worker says of itself: at its start, and then every 5 seconds.

        Does not wait. Raises InvalidRequest, OutOfRange, InvalidContent, InvalidQueueName, MalformedMessageId,
        TooManyWorkers, and Forbidden if `key` does not cover one of the queues, or if another key reported this id.
        """
        await trio.lowlevel.checkpoint()
        for part in report.queues:
            if not key.covers(part.queue):
                raise Forbidden(f"the token has not the scope consume for the queue {part.queue}")
        self.known_workers.report(report, key=key)

    async def forget_worker(self, worker_id: str, *, key: Key = SECRET) -> None:
        """A worker ends: forget it at once. Without an effect if it is not known.

        Does not wait. Raises InvalidRequest for an id that is no UUID, and Forbidden if another key than `key` and
        the server's secret reported it.
        """
        await trio.lowlevel.checkpoint()
        self.known_workers.forget(worker_id, key=key)

    async def workers(self, queue: str | None = None, *, key: Key = SECRET) -> list[WorkerInfo]:
        """The workers that are known, silent ones too, in the order of their first reports.

        queue: only those that serve it. key: only what is in queues that it covers. Does not wait. Raises
        InvalidQueueName.
        """
        await trio.lowlevel.checkpoint()
        known = self.known_workers
        if queue is not None and not key.covers(check_queue_name(queue)):
            return []
        found = known.all() if queue is None else known.of(queue)
        seen = (info.within(key.covers) for info in found)
        return [info for info in seen if info is not None]

    async def processes(self) -> list[ProcessInfo]:
        """The server processes on this database, silent ones too, those that were started first first.

        Of the others it is known what they said within the last 5 seconds. On a SQLite file it is this process alone.
        Does not wait.
        """
        await trio.lowlevel.checkpoint()
        return self.known_processes.all()
