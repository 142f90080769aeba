"""The values of /metrics: counters, gauges and histograms, fed by the writer and by the job that refreshes the gauges.

The writer records after every commit, so recording is cheap: one dict look-up for an event or for the durations of a
queue. At most METRIC_QUEUES_MAX queues have a label, first come first served, and the first HISTOGRAM_QUEUES_MAX a
histogram; all others are summed under "other". A queue that is gone leaves its place to one that has none: its series
end, since a sum that they were added to would look as if all had happened at once. What the monitor wants to know of
each queue is in `activity.py`.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Sized
from operator import add

from msgspec.structs import astuple

from forq_trio.model import limits
from forq_trio.model.messages import QueueCounts
from forq_trio.model.queue_names import is_dead_letter_queue
from forq_trio.model.schedules import DUE_RESULTS, RunResult, SavedRun
from forq_trio.storage.engine import DURATION_KINDS, BatchResult, Event
from forq_trio.telemetry.activity import NO_ACTIVITY, Activity, NackReasons, Series
from forq_trio.telemetry.histogram import COMMIT_CALLS, DISK_SECONDS, MESSAGE_MS, Histogram, LastHour
from forq_trio.telemetry.metric_names import OF_ALL_QUEUES
from forq_trio.telemetry.metric_places import MetricPlaces
from forq_trio.telemetry.rejections import Cause, cause_of

OTHER = "other"

QueueKey = tuple[str, bool]
"""A queue's name, or "other" past the bound, and whether it is a dead-letter queue."""


class Counters:
    """Counters and histograms that only grow, and counts: messages by status as of the last refresh.

    publications: how many there were. sent_set_aside: messages of forq.send that were refused for good. runs: of
    schedules, by result; run_late_ms: how late those were that sent a
    message. last_commit_at: epoch ms, None before the first. Facts that are read when asked for are in `Gauges`.
    """

    def __init__(self) -> None:
        self.counts: dict[QueueKey, QueueCounts] = {}
        self.publications = self.sent_set_aside = 0
        self.last_commit_at: int | None = None
        self.runs: dict[RunResult, int] = dict.fromkeys(DUE_RESULTS, 0)
        self.run_late_ms = Histogram(MESSAGE_MS)
        self.nack_reasons = NackReasons()
        self.rejections = dict.fromkeys(Cause, 0)
        self.commit_calls = Histogram(COMMIT_CALLS)
        self.commit_seconds = Histogram(DISK_SECONDS)
        self.hour_of_commit_calls = LastHour(COMMIT_CALLS)
        self.hour_of_commit_seconds = LastHour(DISK_SECONDS)
        self.gate_seconds = Histogram(DISK_SECONDS)
        self.lag_seconds = Histogram(DISK_SECONDS)
        self.hour_of_gate_seconds = LastHour(DISK_SECONDS)
        self.hour_of_lag_seconds = LastHour(DISK_SECONDS)
        self.checkpoint_seconds = Histogram(DISK_SECONDS)
        self.checkpoint_pause_seconds = Histogram(DISK_SECONDS)
        self.durations: dict[tuple[str, QueueKey], Histogram] = {}
        self._by_event: dict[tuple[str, str, str], Series] = {}
        self._by_kind: dict[str, dict[Series, None]] = {}
        self._others: dict[tuple[str, bool, str], Series] = {}
        self._by_duration: dict[tuple[str, str], Histogram] = {}
        self._activities: dict[str, Activity] = {}
        self._gone = 0
        self._labelled = MetricPlaces(self._counted, self._end_series)
        self._timed = MetricPlaces(self._timings, self._end_histograms)
        self._ended: Counter[str] = Counter()
        self._ended_durations: dict[str, list[int]] = {}

    def record(self, events: Sequence[Event]) -> None:
        """Add the events of one committed batch."""
        for event in events:
            series = self._by_event.get((event.kind, event.queue, event.reason)) or self._admit(event)
            series.count += event.count

    def record_durations(self, durations: Mapping[tuple[str, str], Sequence[int]]) -> None:
        """Add the durations of one committed batch: milliseconds by kind (`DURATION_KINDS`) and queue."""
        for key, values in durations.items():
            (self._by_duration.get(key) or self._admit_duration(*key)).add_all(values)

    def record_runs(self, runs: Sequence[SavedRun]) -> None:
        """Add the runs of schedules of one committed batch."""
        for run in runs:
            self.runs[run.result] += run.runs
            if run.result == "sent":
                self.run_late_ms.add(run.late_ms)

    def record_batch(self, result: BatchResult, at_ms: int) -> None:
        """Add what one committed batch did, and how it stood to other processes."""
        self.record(result.events)
        self.record_durations(result.durations)
        self.record_runs(result.runs)
        self.sent_set_aside += result.sent_set_aside
        if result.gate_seconds is not None:
            self.gate_seconds.add(result.gate_seconds)
            self.hour_of_gate_seconds.add(at_ms, result.gate_seconds)
        if result.lag_seconds is not None:
            self.lag_seconds.add(result.lag_seconds)
            self.hour_of_lag_seconds.add(at_ms, result.lag_seconds)

    def record_commit(self, calls: int, seconds: float, at_ms: int) -> None:
        """Add a commit that changed something: how many calls shared it, how long it waited for the disk, and when."""
        self.last_commit_at = at_ms
        self.commit_calls.add(calls)
        self.commit_seconds.add(seconds)
        self.hour_of_commit_calls.add(at_ms, calls)
        self.hour_of_commit_seconds.add(at_ms, seconds)

    def record_refused(self, queue: str) -> None:
        """Count a send that was refused because its queue was full."""
        activity = self._activity(queue)
        if activity is not None:
            activity.refused += 1

    def record_rejection(self, rejected: Cause | BaseException) -> None:
        """Count a rejection by its cause or by its error; an error that is no rejection is ignored."""
        cause = rejected if isinstance(rejected, Cause) else cause_of(rejected)
        if cause is not None:
            self.rejections[cause] += 1

    def activity(self, queue: str) -> Activity | None:
        """What happened in a queue since the start; None past SERIES_QUEUES_MAX queues."""
        found = self._activities.get(queue)
        if found is None and self._has_place:
            return NO_ACTIVITY
        return found

    def histogram(self, kind: str, queue: str) -> Histogram | None:
        """The durations of a queue that has a histogram of its own and got some."""
        return self._by_duration.get((kind, queue))

    def total(self, kind: str) -> int:
        """How many messages of all queues the events of a kind counted since the start."""
        return self._ended[kind] + sum([series.shown for series in self._by_kind.get(kind, {})])

    def duration_counts(self, kind: str) -> list[int]:
        """The buckets of a duration, of all queues since the start together."""
        found = [each.counts for (each_kind, _), each in self.durations.items() if each_kind == kind]
        ended = self._ended_durations.get(kind, [0] * (len(MESSAGE_MS) + 1))
        return [*map(sum, zip(ended, *found, strict=True))]

    def keep(self, queues: Container[str]) -> None:
        """All queues but these are gone: their places are free for others.

        What happened in them is counted under "other" from then on, unless they have a label in /metrics, which they
        have until another queue needs it.
        """
        self._labelled.keep(queues)
        self._timed.keep(queues)
        gone = [queue for queue in self._activities if queue not in queues]
        for queue in gone:
            self._forget(queue)
        self._gone = sum(queue in self._activities for queue in gone)
        self.nack_reasons.keep(queues)

    def _forget(self, queue: str) -> None:
        if queue in self._labelled:
            self._activities[queue].refused = 0
            return
        for series in self._remove(queue):
            self._other(series.kind, series.is_dlq, series.reason).count += series.count

    def _remove(self, queue: str) -> list[Series]:
        """Forget what happened in a queue; returns its counters."""
        activity = self._activities.pop(queue, NO_ACTIVITY)
        for kind, series in activity.all:
            del self._by_event[kind, queue, series.reason]
            del self._by_kind[kind][series]
        return [series for _, series in activity.all]

    def _counted(self, queue: str) -> int:
        return sum([series.count for _, series in self._activities.get(queue, NO_ACTIVITY).all])

    def _end_series(self, queue: str) -> None:
        """A queue that is gone loses its label. Only totals still count what happened in it."""
        self._gone -= queue in self._activities
        for series in self._remove(queue):
            if series.kind in OF_ALL_QUEUES:
                self._other(series.kind, series.is_dlq, series.reason).count += series.shown
            else:
                self._ended[series.kind] += series.shown

    def _timings(self, queue: str) -> int:
        return sum([each.count for kind in DURATION_KINDS if (each := self.histogram(kind, queue))])

    def _end_histograms(self, queue: str) -> None:
        """A queue that is gone loses its histograms, as it does its label."""
        for kind in DURATION_KINDS:
            histogram = self._by_duration.pop((kind, queue), None)
            if histogram is not None:
                del self.durations[kind, (queue, is_dead_letter_queue(queue))]
                ended = self._ended_durations.get(kind, [0] * len(histogram.counts))
                self._ended_durations[kind] = [*map(add, ended, histogram.counts)]

    def refresh_counts(self, counts: Mapping[str, QueueCounts]) -> None:
        """Replace the counts of all queues; queues that are not in `counts` are forgotten."""
        fresh: dict[QueueKey, QueueCounts] = {}
        for queue, count in counts.items():
            key = self.key(queue)
            fresh[key] = _sum(fresh[key], count) if key in fresh else count
        self.counts = fresh

    @property
    def depths(self) -> dict[QueueKey, int]:
        """How many messages every queue had at the last refresh, whatever their status."""
        return {key: count.total for key, count in self.counts.items()}

    def key(self, queue: str) -> QueueKey:
        """The label of this queue: its own name if it has or gets one, else "other"."""
        return queue if self.has_label(queue) else OTHER, is_dead_letter_queue(queue)

    def has_label(self, queue: str) -> bool:
        """True for a queue that is counted under its own name, as it is from now on if there is a place."""
        if queue in self._labelled:
            return True
        if not self._labelled.admit(queue, limits.METRIC_QUEUES_MAX):
            return False
        for _, series in self._activities.get(queue, NO_ACTIVITY).all:
            self._other(series.kind, series.is_dlq, series.reason).count += series.count
            series.show_as(queue)
        return True

    def series(self) -> Iterable[Series]:
        """All counters, in no particular order. A queue that is really called "other" has counters of its own."""
        yield from self._by_event.values()
        yield from self._others.values()

    def waiting(self, parked: Mapping[str, Sized]) -> dict[QueueKey, int]:
        """How many receivers are parked, for every queue that has some or was known at the last refresh."""
        waiting = dict.fromkeys(self.counts, 0)
        for queue, receivers in parked.items():
            key = self.key(queue)
            waiting[key] = waiting.get(key, 0) + len(receivers)
        return waiting

    def _admit(self, event: Event) -> Series:
        """The counter of an event that is new, or of a queue past all bounds."""
        label, is_dlq = self.key(event.queue)
        activity = self._activity(event.queue)
        if activity is None:
            return self._other(event.kind, is_dlq, event.reason)
        series = self._note(Series(event.kind, label, is_dlq, event.reason))
        self._by_event[event.kind, event.queue, event.reason] = series
        activity.add(series)
        return series

    def _other(self, kind: str, is_dlq: bool, reason: str) -> Series:
        """The counter of all queues past the bounds."""
        series = self._others.get((kind, is_dlq, reason))
        if series is None:
            series = self._others[kind, is_dlq, reason] = self._note(Series(kind, OTHER, is_dlq, reason))
        return series

    def _note(self, series: Series) -> Series:
        self._by_kind.setdefault(series.kind, {})[series] = None
        return series

    @property
    def _has_place(self) -> bool:
        """Fewer than SERIES_QUEUES_MAX queues that are there have an activity."""
        return len(self._activities) - self._gone < limits.SERIES_QUEUES_MAX

    def _activity(self, queue: str) -> Activity | None:
        """The activity of a queue, which it gets if there is a place; a queue with a label has one."""
        found = self._activities.get(queue)
        if found is None and (self.has_label(queue) or self._has_place):
            found = self._activities[queue] = Activity()
        return found

    def _admit_duration(self, kind: str, queue: str) -> Histogram:
        """The histogram of a queue that is new, or past the bound."""
        is_known = self._timed.admit(queue, limits.HISTOGRAM_QUEUES_MAX)
        key = kind, (queue if is_known else OTHER, is_dead_letter_queue(queue))
        histogram = self.durations.get(key)
        if histogram is None:
            histogram = self.durations[key] = Histogram(MESSAGE_MS)
        if is_known:
            self._by_duration[kind, queue] = histogram
        return histogram


def _sum(one: QueueCounts, other: QueueCounts) -> QueueCounts:
    return QueueCounts(*map(add, astuple(one), astuple(other)))
