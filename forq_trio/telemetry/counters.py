"""The values of /metrics: counters, gauges and histograms, fed by the writer and by the job that refreshes the gauges.

The writer records after every commit. What is counted for each queue is in `queue_counters.py` and
`queue_durations.py`. Facts that are read when asked for are in `Gauges`.
"""

from collections.abc import Container, Mapping, Sequence, Sized
from operator import add

from msgspec import Struct
from msgspec.structs import astuple

from forq_trio.model.messages import QueueCounts
from forq_trio.model.schedules import DUE_RESULTS, RunResult, SavedRun
from forq_trio.storage.engine import BatchResult
from forq_trio.telemetry.activity import NackReasons
from forq_trio.telemetry.histogram import COMMIT_CALLS, DISK_SECONDS, MESSAGE_MS, Histogram, Measurements
from forq_trio.telemetry.queue_counters import QueueCounters, QueueKey
from forq_trio.telemetry.queue_durations import QueueDurations
from forq_trio.telemetry.rejections import Cause, cause_of


class Commits:
    """The commits that changed something."""

    def __init__(self) -> None:
        self.calls = Measurements(COMMIT_CALLS)  # how many shared each commit
        self.seconds = Measurements(DISK_SECONDS)  # how long each waited for the disk
        self.last_at: int | None = None  # epoch ms, None before the first

    def record(self, calls: int, seconds: float, at_ms: int) -> None:
        """Add a commit: how many calls shared it, how long it waited for the disk, and when."""
        self.last_at = at_ms
        self.calls.add(at_ms, calls)
        self.seconds.add(at_ms, seconds)

    @property
    def count(self) -> int:
        """How many there were."""
        return self.calls.all.count


class RunCounters:
    """The runs of schedules."""

    def __init__(self) -> None:
        self.by_result: dict[RunResult, int] = dict.fromkeys(DUE_RESULTS, 0)
        self.late_ms = Histogram(MESSAGE_MS)  # how late those were that sent a message

    def record(self, own_work: Sequence[Struct]) -> None:
        """Add the runs among what one committed batch did by itself."""
        for run in own_work:
            if isinstance(run, SavedRun):
                self.by_result[run.result] += run.runs
                if run.result == "sent":
                    self.late_ms.add(run.late_ms)


class Counters:
    """Counters and histograms that only grow, and counts."""

    def __init__(self) -> None:
        self.queues = QueueCounters()
        self.durations = QueueDurations()
        self.counts: dict[QueueKey, QueueCounts] = {}  # messages by status as of the last refresh
        self.publications = 0
        self.sent_set_aside = 0  # messages of forq.send that were refused for good
        self.runs = RunCounters()
        self.nack_reasons = NackReasons()
        self.rejections = dict.fromkeys(Cause, 0)
        self.commits = Commits()
        self.gate_seconds = Measurements(DISK_SECONDS)  # how long batches waited for those of other processes
        self.lag_seconds = Measurements(DISK_SECONDS)  # how old theirs were when they were taken over
        self.checkpoint_seconds = Histogram(DISK_SECONDS)
        self.checkpoint_pause_seconds = Histogram(DISK_SECONDS)

    def record_batch(self, result: BatchResult, at_ms: int) -> None:
        """Add what a committed batch did, and its waits for batches of other processes."""
        self.queues.record(result.events)
        self.durations.record(result.durations)
        self.runs.record(result.own_work)
        self.sent_set_aside += result.sent_set_aside
        if result.gate_seconds is not None:
            self.gate_seconds.add(at_ms, result.gate_seconds)
        if result.lag_seconds is not None:
            self.lag_seconds.add(at_ms, result.lag_seconds)

    def record_rejection(self, rejected: Cause | BaseException) -> None:
        """Count a rejection by its cause or its error. An error that is not a rejection is ignored."""
        cause = rejected if isinstance(rejected, Cause) else cause_of(rejected)
        if cause is not None:
            self.rejections[cause] += 1

    def keep(self, queues: Container[str]) -> None:
        """Free the places of all queues but these, because they are gone."""
        self.queues.keep(queues)
        self.durations.keep(queues)
        self.nack_reasons.keep(queues)

    def refresh_counts(self, counts: Mapping[str, QueueCounts]) -> None:
        """Replace the counts of all queues; queues that are not in `counts` are forgotten."""
        fresh: dict[QueueKey, QueueCounts] = {}
        for queue, count in counts.items():
            key = self.queues.key(queue)
            fresh[key] = _sum(fresh[key], count) if key in fresh else count
        self.counts = fresh

    @property
    def depths(self) -> dict[QueueKey, int]:
        """How many messages every queue had at the last refresh, whatever their status."""
        return {key: count.total for key, count in self.counts.items()}

    def waiting(self, parked: Mapping[str, Sized]) -> dict[QueueKey, int]:
        """How many receivers are parked, for every queue that has some or was known at the last refresh."""
        waiting = dict.fromkeys(self.counts, 0)
        for queue, receivers in parked.items():
            key = self.queues.key(queue)
            waiting[key] = waiting.get(key, 0) + len(receivers)
        return waiting


def _sum(one: QueueCounts, other: QueueCounts) -> QueueCounts:
    return QueueCounts(*map(add, astuple(one), astuple(other)))
