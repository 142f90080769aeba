"""The methods of the asynchronous client for workers and server processes that make themselves known.

`sync_workers.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model import limits
from forq_trio.model.checks import check_is_list
from forq_trio.model.server import process_endpoints as process_api
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.workers import endpoints as worker_api
from forq_trio.model.workers.bodies import WorkersQuery, WorkerState
from forq_trio.model.workers.methods import WorkerMethods
from forq_trio.model.workers.types import WorkerInfo, WorkerReport
from forq_trio.model.workers.withdrawn import WithdrawnMessages, WithdrawnRequest


class AsyncWorkers(WorkerMethods, AsyncConnection):
    """The methods of a client for workers and processes; `forq_trio.worker.Worker` calls the first three."""

    async def report_worker(self, report: WorkerReport) -> None:
        await self._call(worker_api.REPORT_WORKER, WorkerState.of(report), workerId=report.id)

    async def forget_worker(self, worker_id: str) -> None:
        await self._call(worker_api.FORGET_WORKER, workerId=worker_id)

    async def withdrawn(
        self, queues: Sequence[str], after: int, *, wait_ms: int = limits.WAIT_MS_MAX
    ) -> WithdrawnMessages:
        check_is_list("queues", queues)
        wanted = WithdrawnRequest(list(queues), after, wait_ms)
        return await self._call(worker_api.LIST_WITHDRAWN, wanted, wait_seconds=wait_ms / 1000)

    async def workers(self, queue: str | None = None) -> list[WorkerInfo]:
        return (await self._call(worker_api.LIST_WORKERS, query=WorkersQuery(queue=queue))).workers

    async def processes(self) -> list[ProcessInfo]:
        return (await self._call(process_api.LIST_PROCESSES)).processes
