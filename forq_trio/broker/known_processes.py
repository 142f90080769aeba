"""What is known about the server processes on the same database, as of this process's last report.

Whether others are silent is judged as of that report, too, so a process that cannot reach the database calls nobody
silent.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from secrets import token_hex

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.server.processes import HeardProcess, JobRun, ProcessInfo, ProcessReport
from forq_trio.model.values import seen
from forq_trio.model.version import installed_version
from forq_trio.telemetry.families import Family, by_label, by_labels, gauge


class KnownProcesses:
    """This process and the others.

    waiting, last_batch_at, running, connections, gate_wait_ms, lag_ms, ran: functions for what this process reports
    about itself, see `ProcessReport`.
    """

    def __init__(self, clock: Clock, waiting: Callable[[], int]) -> None:
        self._clock = clock
        self._own = ProcessReport(
            id=f"{os.getpid()}-{token_hex(8)}",
            name=socket.gethostname()[: limits.PROCESS_NAME_LENGTH_MAX],
            process=os.getpid(),
            version=(installed_version() or "unknown")[: limits.PROCESS_VERSION_LENGTH_MAX],
            started_at=clock.now_ms(),
        )
        self._waiting = waiting
        self.last_batch_at: Callable[[], int | None] = lambda: None
        self.running: Callable[[], Iterable[str]] = tuple
        self.connections: Callable[[], int | None] = lambda: None
        self.gate_wait_ms: Callable[[], float | None] = lambda: None
        self.lag_ms: Callable[[], float | None] = lambda: None
        self.ran: Callable[[], Iterable[JobRun]] = tuple
        self._heard: Sequence[HeardProcess] = ()

    @property
    def name(self) -> str:
        """The name of this process."""
        return self._own.name

    def own(self) -> ProcessReport:
        """The report of this process, as of now."""
        running = sorted(title[: limits.PROCESS_JOB_LENGTH_MAX] for title in self.running())
        return seen(
            ProcessReport,
            self._own,
            last_batch_at=self.last_batch_at(),
            connections=self.connections(),
            waiting=self._waiting(),
            running=tuple(running[: limits.PROCESS_JOBS_MAX]),
            gate_wait_ms=self.gate_wait_ms(),
            lag_ms=self.lag_ms(),
            ran=tuple(_shortened(run) for run in islice(self.ran(), limits.PROCESS_JOBS_MAX)),
        )

    def heard(self, processes: Sequence[HeardProcess]) -> None:
        """Take over the reports that are in the database, this process's own among them, which is from just now."""
        self._heard = processes

    def all(self) -> list[ProcessInfo]:
        """All processes, in the order in which they were started."""
        own = self._own.id
        here = next((each for each in self._heard if each.report.id == own), None)
        others = [_info(each, here.heard_at) for each in self._heard if here is not None and each is not here]
        me = seen(
            ProcessInfo,
            self.own(),
            address=None if here is None else here.address,
            heard_at=self._clock.now_ms(),
            silent=False,
            here=True,
        )
        return sorted([me, *others], key=lambda each: (each.started_at, each.id))

    def states(self) -> dict[str, int]:
        """How many processes there are, by state."""
        every = self.all()
        silent = sum(each.silent for each in every)
        return {"running": len(every) - silent, "silent": silent}

    def families(self) -> Iterator[Family]:
        """The metrics of all, and which one answers."""
        yield gauge(
            "forq_processes",
            "Server processes on the database, by state: running or silent, now.",
            by_label("state", self.states()),
        )
        own = self._own
        yield gauge(
            "forq_process_info",
            "1 for the process that answers: its host, its number and version.",
            by_labels(("name", "process", "version"), {(own.name, str(own.process), own.version): 1}),
        )


def _shortened(run: JobRun) -> JobRun:
    result = "".join(each if each.isprintable() else " " for each in run.result)
    return replace(run, result=result[: limits.PROCESS_RESULT_LENGTH_MAX])


def _info(each: HeardProcess, now_ms: int) -> ProcessInfo:
    silent = now_ms - each.heard_at >= limits.PROCESS_SILENT_MS
    return seen(
        ProcessInfo, each.report, address=each.address, heard_at=each.heard_at, silent=silent, here=False
    )
