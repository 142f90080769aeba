"""The values of /metrics: counters, gauges and histograms, fed by the writer and by the job that refreshes the gauges.

The writer records after every commit. What is counted for each queue is in `queue_counters.py` and
`queue_durations.py`.
"""

from collections.abc import Container, Iterator, Mapping, Sequence, Sized
from operator import add, attrgetter

from msgspec import Struct
from msgspec.structs import astuple

from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.schedules.types import DUE_RESULTS, RunResult, SavedRun
from forq_trio.storage.engine import OFFERED, Batch, BatchResult
from forq_trio.telemetry.activity import NackReasons
from forq_trio.telemetry.exemplars import note_exemplars
from forq_trio.telemetry.families import (
    Family,
    QueueKey,
    by_label,
    by_queue,
    by_queue_and,
    counter,
    gauge,
    histogram,
)
from forq_trio.telemetry.histogram import COMMIT_CALLS, DISK_SECONDS, MESSAGE_MS, Histogram, Measurements
from forq_trio.telemetry.queue_counters import QueueCounters
from forq_trio.telemetry.queue_durations import QueueDurations
from forq_trio.telemetry.rejections import Cause, cause_of

STATES = ("ready", "delayed", "processing", "held", "failed")
"""The values of the label `state`. A message is counted in one of them."""
_by_state = attrgetter(*STATES)


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

    def families(self) -> Iterator[Family]:
        """How many there were."""
        yield counter(
            "forq_schedule_runs_total",
            "Runs of schedules whose time came, by what became of them.",
            by_label("result", self.by_result),
        )


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
        self.exemplars = False  # whether the traces of messages are noted

    def record_batch(self, batch: Batch, result: BatchResult) -> None:
        """Add what a committed batch did, and its waits for batches of other processes."""
        at_ms = batch.now_ms
        self.queues.record(result.events)
        if result.moved_in:
            self.queues.record_moved_in(result.moved_in)
        self.durations.record(result.durations)
        self.runs.record(result.own_work)
        self.sent_set_aside += result.sent_set_aside
        if result.gate_seconds is not None:
            self.gate_seconds.add(at_ms, result.gate_seconds)
        if result.lag_seconds is not None:
            self.lag_seconds.add(at_ms, result.lag_seconds)
        if self.exemplars:
            note_exemplars(batch, result, self.commits.seconds.all, self.durations)

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

    def count_families(self) -> Iterator[Family]:
        """What the queues held at the last refresh."""
        yield gauge(
            "forq_queue_depth",
            "Messages a queue holds, in whatever state, refreshed every 30 seconds.",
            by_queue(self.depths),
        )
        counts = self.counts.items()
        yield gauge(
            "forq_queue_messages",
            "Messages a queue holds, by state, refreshed every 30 seconds.",
            by_queue_and("state", STATES, ((key, _by_state(count)) for key, count in counts)),
        )
        yield gauge(
            "forq_queue_bytes",
            "Bytes of content and attributes a queue holds, refreshed every 30 seconds.",
            by_queue({key: count.bytes for key, count in counts}),
        )

    def send_families(self) -> Iterator[Family]:
        """What was sent in other ways than one by one."""
        yield self.queues.family(OFFERED)
        yield counter("forq_publications_total", "Publications of stages.", self.publications)
        yield counter(
            "forq_sent_set_aside_total",
            "Messages of forq.send that were refused for good and set aside.",
            self.sent_set_aside,
        )

    def families(self) -> Iterator[Family]:
        """What was refused, and how long everything took."""
        yield counter(
            "forq_rejections_total",
            "Calls and requests that were refused.",
            by_label("cause", self.rejections),
        )
        yield from self.durations.families()
        yield histogram("forq_commit_batch_calls", "Calls that shared a commit.", self.commits.calls.all)
        yield histogram(
            "forq_commit_duration_seconds", "How long a commit waited for the disk.", self.commits.seconds.all
        )
        yield histogram(
            "forq_gate_wait_seconds",
            "How long a batch waited until no other process ran one; PostgreSQL only.",
            self.gate_seconds.all,
        )
        yield histogram(
            "forq_process_lag_seconds",
            "How old the batches of other processes were when they were taken over.",
            self.lag_seconds.all,
        )
        yield histogram(
            "forq_checkpoint_duration_seconds",
            "How long a checkpoint of the write-ahead log took.",
            self.checkpoint_seconds,
        )
        yield histogram(
            "forq_checkpoint_pause_seconds",
            "How long no commit could begin because of a checkpoint.",
            self.checkpoint_pause_seconds,
        )
        yield histogram(
            "forq_schedule_lateness_seconds",
            "How much later than its time, with jitter, a run sent its message.",
            self.runs.late_ms,
            limits.SECOND_MS,
        )

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
