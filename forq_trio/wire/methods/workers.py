"""Methods for workers and server processes that make themselves known."""

from abc import ABC, abstractmethod

from forq_trio.model.processes import ProcessInfo
from forq_trio.model.workers import WorkerInfo, WorkerReport


class WorkerMethods(ABC):
    """`forq_trio.worker.Worker` calls the first two."""

    @abstractmethod
    async def report_worker(self, report: WorkerReport) -> None:
        """Take what a worker says of itself: at its start, and then every 5 seconds.

        Raises InvalidRequest, OutOfRange, InvalidContent, InvalidQueueName, MalformedMessageId, TooManyWorkers, and
        Forbidden if the key does not cover one of the queues, or if another key reported this id.
        """

    @abstractmethod
    async def forget_worker(self, worker_id: str) -> None:
        """A worker ends: forget it at once. Without an effect if it is not known.

        Raises InvalidRequest for an id that is no UUID, and Forbidden if another key reported it, unless this one is
        the server's secret.
        """

    @abstractmethod
    async def workers(self, queue: str | None = None) -> list[WorkerInfo]:
        """The workers in queues that the key covers, silent ones too, in the order of their first reports.

        queue: only those that serve it. Raises InvalidQueueName.
        """

    @abstractmethod
    async def processes(self) -> list[ProcessInfo]:
        """The server processes on this database, silent ones too, those that were started first first.

        Of the others it is known what they said within the last 5 seconds. On a SQLite file it is one process alone.
        """
