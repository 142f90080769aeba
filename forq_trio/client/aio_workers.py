"""The methods of the asynchronous client for workers and server processes that make themselves known.

`sync_workers.py` is generated from this file by script/blocking_client.py.
"""

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.client.types import ProcessInfo, WorkerInfo, WorkerReport
from forq_trio.wire.endpoints import processes as process_api
from forq_trio.wire.endpoints import workers as worker_api
from forq_trio.wire.workers import WorkersQuery, WorkerState


class AsyncWorkers(AsyncConnection):
    """The methods of a client for workers and processes; `forq_trio.worker.Worker` calls the first two."""

    async def report_worker(self, report: WorkerReport) -> None:
        """Take what a worker says of itself: at its start, and then every 5 seconds.

        Raises InvalidRequest, OutOfRange, InvalidContent, InvalidQueueName, MalformedMessageId, TooManyWorkers, and
        Forbidden if the key does not cover one of the queues, or if another key reported this id.
        """
        await self._call(worker_api.REPORT_WORKER, WorkerState.of(report), workerId=report.id)

    async def forget_worker(self, worker_id: str) -> None:
        """A worker ends: forget it at once. Without an effect if it is not known.

        Raises InvalidRequest for an id that is no UUID, and Forbidden if another key than this one reported it, unless
        this one is the server's secret.
        """
        await self._call(worker_api.FORGET_WORKER, workerId=worker_id)

    async def workers(self, queue: str | None = None) -> list[WorkerInfo]:
        """The workers that are known in queues that the key covers, silent ones too.

        queue: only those that serve it. Raises InvalidQueueName.
        """
        return (await self._call(worker_api.LIST_WORKERS, query=WorkersQuery(queue=queue))).workers

    async def processes(self) -> list[ProcessInfo]:
        """The server processes on the database, silent ones too, those that were started first first."""
        return (await self._call(process_api.LIST_PROCESSES)).processes
