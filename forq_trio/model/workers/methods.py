"""Methods for workers and server processes that make themselves known."""

from abc import ABC, abstractmethod

from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.workers.types import WorkerInfo, WorkerReport


class WorkerMethods(ABC):
    """`forq_trio.worker.Worker` calls the first two."""

    @abstractmethod
    async def report_worker(self, report: WorkerReport) -> None:
        """Take the report of a worker, which sends one at its start and then every 5 seconds.

        Raises InvalidRequest, OutOfRange, InvalidContent, InvalidQueueName, MalformedMessageId, TooManyWorkers, and
        Forbidden if the key does not cover one of the queues, or if another key reported this id.
        """

    @abstractmethod
    async def forget_worker(self, worker_id: str) -> None:
        """Forget a worker at once, because it ends. Does nothing if it is not known.

        Raises InvalidRequest for an id that is not a UUID, and Forbidden if another key reported it, unless this one is
        the server's secret.
        """

    @abstractmethod
    async def workers(self, queue: str | None = None) -> list[WorkerInfo]:
        """The workers in queues that the key covers, silent ones too, in the order of their first reports.

        queue: only those that serve it. Raises InvalidQueueName.
        """

    @abstractmethod
    async def processes(self) -> list[ProcessInfo]:
        """The server processes on this database, also silent ones, in the order of their starts.

        What is known of other processes is up to 5 seconds old. On a SQLite file there is only one process.
        """
