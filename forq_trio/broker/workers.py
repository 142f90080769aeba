"""Reports of workers and server processes. A part of `Broker`; what is known about them is only in memory."""

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.errors import Forbidden
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.workers.methods import WorkerMethods
from forq_trio.model.workers.types import WorkerInfo, WorkerReport


class WorkerCalls(WorkerMethods, BrokerBase):
    """Nothing here is stored: after a restart the server learns of a worker with its next report."""

    async def report_worker(self, report: WorkerReport, *, key: Key = SECRET) -> None:
        await trio.lowlevel.checkpoint()
        for part in report.queues:
            if not key.covers(part.queue):
                raise Forbidden(f"the token has not the scope consume for the queue {part.queue}")
        self.known_workers.report(report, key=key)

    async def forget_worker(self, worker_id: str, *, key: Key = SECRET) -> None:
        await trio.lowlevel.checkpoint()
        self.known_workers.forget(worker_id, key=key)

    async def workers(self, queue: str | None = None, *, key: Key = SECRET) -> list[WorkerInfo]:
        await trio.lowlevel.checkpoint()
        known = self.known_workers
        if queue is not None and not key.covers(check_queue_name(queue)):
            return []
        found = known.all() if queue is None else known.of(queue)
        seen = (info.within(key.covers) for info in found)
        return [info for info in seen if info is not None]

    async def processes(self) -> list[ProcessInfo]:
        await trio.lowlevel.checkpoint()
        return self.known_processes.all()
