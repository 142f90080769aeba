"""What is known about the server processes on the same database, as of this process's last report.

Whether others are silent is judged as of that report, too, so a process that cannot reach the database calls nobody
silent.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from secrets import token_hex

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.access.secret_checks import SecretCheck
from forq_trio.model.clock import Clock
from forq_trio.model.server.processes import HeardProcess, JobRun, ProcessInfo, ProcessReport
from forq_trio.model.values import seen
from forq_trio.model.version import installed_version
from forq_trio.telemetry.families import Family, by_label, by_labels, gauge
from forq_trio.telemetry.log import LogEvent, log


class KnownProcesses:
    """This process and the others.

    waiting, last_batch_at, running, connections, gate_wait_ms, lag_ms, ran: functions for what this process reports
    about itself, see `ProcessReport`. secret: the check of this process's secret, None without one.
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
        self.secret: SecretCheck | None = None
        self._heard: Sequence[HeardProcess] = ()
        self._differ: Mapping[
            str, bool
        ] = {}  # by the id of another process: whether its secret is another one

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
            secret_check=None if self.secret is None else self.secret.own,
        )

    def compare(self, processes: Sequence[HeardProcess]) -> Mapping[str, bool]:
        """Whether the secrets of others differ from this process's, by their ids. Blocks; for any thread."""
        secret, known = self.secret, self._differ
        if secret is None:
            return {}
        others = [each.report for each in processes if each.report.id != self._own.id]
        unknown = [each for each in others if each.id not in known and each.secret_check is not None]
        new = {
            each.id: secret.differs(each.secret_check)
            for each in unknown[: limits.PROCESS_SECRETS_COMPARED_MAX]
        }
        return {each.id: known[each.id] for each in others if each.id in known} | new

    def heard(self, processes: Sequence[HeardProcess], differ: Mapping[str, bool] | None = None) -> None:
        """Take over the reports that are in the database, this process's own among them, which is from just now.

        differ: what `compare` says of them.
        """
        before, self._heard, self._differ = self._differ, processes, differ or {}
        for each in processes:
            if self._differ.get(each.report.id) and not before.get(each.report.id):
                log(
                    LogEvent.OTHER_SECRET,
                    name=each.report.name,
                    pid=each.report.process,
                    address=each.address,
                )

    def all(self) -> list[ProcessInfo]:
        """All processes, in the order in which they were started."""
        own = self._own.id
        here = next((each for each in self._heard if each.report.id == own), None)
        others = [
            _info(each, here.heard_at, other_secret=self._differ.get(each.report.id, False))
            for each in self._heard
            if here is not None and each is not here
        ]
        me = seen(
            ProcessInfo,
            self.own(),
            address=None if here is None else here.address,
            heard_at=self._clock.now_ms(),
            silent=False,
            here=True,
            other_secret=False,
        )
        return sorted([me, *others], key=lambda each: (each.started_at, each.id))

    @property
    def other_secrets(self) -> int:
        """How many others that answer have another secret."""
        return sum(each.other_secret and not each.silent for each in self.all())

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


def _info(each: HeardProcess, now_ms: int, *, other_secret: bool) -> ProcessInfo:
    return seen(
        ProcessInfo,
        each.report,
        address=each.address,
        heard_at=each.heard_at,
        silent=now_ms - each.heard_at >= limits.PROCESS_SILENT_MS,
        here=False,
        other_secret=other_secret,
    )
