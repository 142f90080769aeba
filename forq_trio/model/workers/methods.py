"""Methods for workers and server processes that make themselves known."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.workers.types import WorkerInfo, WorkerReport
from forq_trio.model.workers.withdrawn import WithdrawnMessages


class WorkerMethods(ABC):
    """`forq_trio.worker.Worker` calls the first three."""

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
    async def withdrawn(
        self, queues: Sequence[str], after: int, *, wait_ms: int = limits.WAIT_MS_MAX
    ) -> WithdrawnMessages:
        """The messages of these queues that were removed while a consumer had them, and not by that consumer.

        It waits up to `wait_ms` (0-30,000) for the first one. queues: at most 64. after: the `position` of the answer
        before; at first a time in epoch milliseconds, by the server's clock, one before that of the oldest delivery.

        An answer may say instead that any message of a queue may be one: when many were removed at once, or when the
        server does not know all since `after`. Then an `extend` tells. Raises InvalidRequest, OutOfRange,
        InvalidQueueName, Overloaded, Stopping, and Forbidden if the key does not cover one of the queues.
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
