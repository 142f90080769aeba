"""Workers that make themselves known."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.queries import Query
from forq_trio.model.values import Count, EpochMs, text_up_to, up_to
from forq_trio.model.workers.types import WorkerInfo, WorkerQueue, WorkerReport


class WorkerState(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a worker says of itself; its id is in the path."""

    name: Annotated[str, text_up_to(limits.WORKER_NAME_LENGTH_MAX, "What it is called.")]
    host: str  # on which machine it runs
    version: str  # of its program
    process: Count  # its process id on the host
    started_at: EpochMs  # when it started
    queues: Annotated[list[WorkerQueue], up_to(limits.WORKER_QUEUES_MAX, "Each queue once.")]

    @classmethod
    def of(cls, report: WorkerReport) -> "WorkerState":
        """The report without its id."""
        return cls(
            report.name, report.host, report.version, report.process, report.started_at, list(report.queues)
        )

    def report(self, worker_id: str) -> WorkerReport:
        """The report of the worker with this id."""
        return WorkerReport(
            worker_id, self.name, self.host, self.version, self.process, self.started_at, tuple(self.queues)
        )


class WorkersQuery(Query, frozen=True, kw_only=True):
    """Which workers are wanted."""

    queue: Annotated[str, Meta(description="Only those that serve this queue.")] | None = None


class WorkerList(Struct, frozen=True):
    """The workers that are known, silent ones too."""

    workers: list[WorkerInfo]  # in queues that the key covers
