"""Counters of the events in each queue since the start, under at most METRIC_QUEUES_MAX labels.

The writer records after every commit, so recording is cheap: one dict look-up for an event. Labels are given first
come, first served; all other queues are summed under "other". A queue that is gone gives its place to one that has
none. Then its series end: if they were added to a sum, that would look as if all had happened at once. `activity.py`
has what the monitor needs to know about each queue.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage.engine import (
    ACKED,
    CLEANED_UP,
    CONSUMED,
    MOVED_TO_DLQ,
    NACKED,
    OFFERED,
    PRODUCED,
    RELEASED,
    REQUEUED,
    STALE_RECOVERED,
    Event,
)
from forq_trio.telemetry.activity import NO_ACTIVITY, Activity, Series
from forq_trio.telemetry.families import (
    QUEUE_LABELS,
    QUEUE_TEXTS,
    Family,
    Labelled,
    QueueKey,
    counter,
    label_text,
)
from forq_trio.telemetry.metric_places import MetricPlaces

OTHER = "other"


class _Counted(NamedTuple):
    """How a kind of event is counted in /metrics."""

    name: str
    meaning: str
    labels: tuple[str, ...]


COUNTED = {
    PRODUCED: _Counted("forq_messages_produced_total", "Messages stored for producers.", QUEUE_LABELS),
    CONSUMED: _Counted("forq_messages_consumed_total", "Messages handed to consumers.", QUEUE_LABELS),
    ACKED: _Counted("forq_messages_acked_total", "Messages acknowledged by consumers.", QUEUE_LABELS),
    NACKED: _Counted(
        "forq_messages_nacked_total", "Messages given back after a failed attempt.", QUEUE_LABELS
    ),
    REQUEUED: _Counted(
        "forq_messages_requeued_total",
        "Messages moved from a dead-letter queue back to its queue by an administrator.",
        ("queue_name",),
    ),
    MOVED_TO_DLQ: _Counted(
        "forq_messages_moved_to_dlq_total", "Messages moved to a dead-letter queue.", ("queue_name", "reason")
    ),
    STALE_RECOVERED: _Counted(
        "forq_messages_stale_recovered_total",
        "Messages whose consumer let the lease run out, made ready again.",
        ("queue_name",),
    ),
    CLEANED_UP: _Counted(
        "forq_messages_cleanup_total", "Messages deleted from dead-letter queues.", ("reason",)
    ),
    OFFERED: _Counted(
        "forq_messages_offered_total",
        "Offers of messages with a key; reason: created, updated or ignored.",
        ("queue_name", "reason"),
    ),
}
"""By kind of event. All but the offers are Forq's (contract F11) and do not change, nor do their help texts."""

NOT_COUNTED = frozenset({RELEASED})

OF_ALL_QUEUES = frozenset(kind for kind, each in COUNTED.items() if "queue_name" not in each.labels)
"""Kinds of events whose series do not name a queue: they sum queues that are gone, too."""


class QueueCounters:
    """Counters that only grow, by kind of event, queue and reason."""

    def __init__(self) -> None:
        self._by_event: dict[tuple[str, str, str], Series] = {}
        self._by_kind: dict[str, dict[Series, None]] = {}
        self._others: dict[tuple[str, bool, str], Series] = {}  # of all queues past the bounds
        self._activities: dict[str, Activity] = {}
        self._gone = 0  # how many activities belong to queues that are gone
        self._labelled = MetricPlaces(self._counted, self._end_series)
        self._ended: Counter[str] = Counter()  # by kind, the sum of the series that have ended

    def record(self, events: Sequence[Event]) -> None:
        """Add the events of one committed batch."""
        for event in events:
            series = self._by_event.get((event.kind, event.queue, event.reason)) or self._admit(event)
            series.count += event.count

    def record_moved_in(self, counts: Mapping[str, int]) -> None:
        """Add how many messages came into each queue from another one."""
        for queue, count in counts.items():
            activity = self._activity(queue)
            if activity is not None:
                activity.moved_in += count

    def record_refused(self, queue: str) -> None:
        """Count a send that was refused because its queue was full."""
        activity = self._activity(queue)
        if activity is not None:
            activity.refused += 1

    def activity(self, queue: str) -> Activity | None:
        """The activity of a queue since the start; None beyond SERIES_QUEUES_MAX queues."""
        found = self._activities.get(queue)
        if found is None and self._has_place:
            return NO_ACTIVITY
        return found

    def total(self, kind: str) -> int:
        """How many messages of all queues the events of a kind counted since the start."""
        return self._ended[kind] + sum([series.shown for series in self._by_kind.get(kind, {})])

    def keep(self, queues: Container[str]) -> None:
        """Free the places of all queues but these, because they are gone.

        Their events count under "other" from then on. A queue with a label in /metrics has it until another queue needs
        the label.
        """
        self._labelled.keep(queues)
        gone = [queue for queue in self._activities if queue not in queues]
        for queue in gone:
            self._forget(queue)
        self._gone = sum(queue in self._activities for queue in gone)

    def key(self, queue: str) -> QueueKey:
        """The label of this queue: its own name if it has or gets one, else "other"."""
        return queue if self.has_label(queue) else OTHER, is_dead_letter_queue(queue)

    def has_label(self, queue: str) -> bool:
        """Whether a queue is counted under its own name; if there is a free place, it gets one now."""
        if queue in self._labelled:
            return True
        if not self._labelled.admit(queue, limits.METRIC_QUEUES_MAX):
            return False
        for _, series in self._activities.get(queue, NO_ACTIVITY).all:
            self._other(series.kind, series.is_dlq, series.reason).count += series.count
            series.show_as(queue)
        return True

    def families(self) -> Iterator[Family]:
        """The counters that Forq has, too."""
        return (self.family(kind) for kind in COUNTED if kind != OFFERED)

    def family(self, kind: str) -> Family:
        """The counter of one kind of event."""
        name, meaning, labels = COUNTED[kind]
        found: Iterable[Series] = self._by_kind.get(kind, {})
        others = dict.fromkeys([each for each in self._others.values() if each.kind == kind])
        if others:  # they come last
            found = [*(each for each in found if each not in others), *others]
        sums: dict[str, int] = {}
        for series in found:
            text = series.text
            if not text:
                text = series.text = _text(labels, series)
            sums[text] = sums.get(text, 0) + series.count - series.before
        return counter(name, meaning, Labelled(labels, sums.items()))

    def _forget(self, queue: str) -> None:
        if queue in self._labelled:
            self._activities[queue].refused = self._activities[queue].moved_in = 0
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
        """Remove the label of a queue that is gone. Only totals still contain its events."""
        self._gone -= queue in self._activities
        for series in self._remove(queue):
            if series.kind in OF_ALL_QUEUES:
                self._other(series.kind, series.is_dlq, series.reason).count += series.shown
            else:
                self._ended[series.kind] += series.shown

    def _admit(self, event: Event) -> Series:
        """Make the counter of a new kind of event; beyond the bounds, find that of "other"."""
        label, is_dlq = self.key(event.queue)
        activity = self._activity(event.queue)
        if activity is None:
            return self._other(event.kind, is_dlq, event.reason)
        series = self._note(Series(event.kind, label, is_dlq, event.reason))
        self._by_event[event.kind, event.queue, event.reason] = series
        activity.add(series)
        return series

    def _other(self, kind: str, is_dlq: bool, reason: str) -> Series:
        """The counter of all queues beyond the bounds."""
        series = self._others.get((kind, is_dlq, reason))
        if series is None:
            series = self._others[kind, is_dlq, reason] = self._note(Series(kind, OTHER, is_dlq, reason))
        return series

    def _note(self, series: Series) -> Series:
        self._by_kind.setdefault(series.kind, {})[series] = None
        return series

    @property
    def _has_place(self) -> bool:
        """Whether fewer than SERIES_QUEUES_MAX existing queues have an activity."""
        return len(self._activities) - self._gone < limits.SERIES_QUEUES_MAX

    def _activity(self, queue: str) -> Activity | None:
        """The activity of a queue, which it gets if there is a place; a queue with a label has one."""
        found = self._activities.get(queue)
        if found is None and (self.has_label(queue) or self._has_place):
            found = self._activities[queue] = Activity()
        return found


def _text(labels: tuple[str, ...], series: Series) -> str:
    if labels == QUEUE_LABELS:
        return QUEUE_TEXTS[series.queue, series.is_dlq]
    values = {"queue_name": series.queue, "reason": series.reason}
    return label_text(labels, [values[label] for label in labels])
