"""Counts what the writer did, by kind, queue and reason: the source of the counters in /metrics.

Fed after every commit, so recording an event costs two dict look-ups. The names of at most METRIC_QUEUES_MAX
queues are kept, first come first served; what happens in further ones is summed under "other".
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forq_trio import limits
from forq_trio.model import QueueCounts, is_dead_letter_queue
from forq_trio.storage.engine import Event

OTHER = "other"


class Series(NamedTuple):
    """What is counted apart. queue: its name, or "other" past the bound; reason: "" without one."""

    kind: str
    queue: str
    is_dlq: bool
    reason: str


class Tally:
    """Counters that only grow, and the depth of the queues as of the last `refresh_depth`."""

    def __init__(self) -> None:
        self.counts: dict[Series, int] = {}
        self.depths: dict[tuple[str, bool], int] = {}
        self._series: dict[tuple[str, str, str], Series] = {}
        self._queues: set[str] = set()

    def record(self, events: Sequence[Event]) -> None:
        """Add the events of one committed batch."""
        counts = self.counts
        for event in events:
            series = self._series.get((event.kind, event.queue, event.reason))
            if series is None:
                series = self._admit(event)
            counts[series] = counts.get(series, 0) + event.count

    def refresh_depth(self, counts: Mapping[str, QueueCounts]) -> None:
        """Take over how many messages every queue holds, whatever their status; others are forgotten."""
        depths: dict[tuple[str, bool], int] = {}
        for queue, count in counts.items():
            key = self._label(queue), is_dead_letter_queue(queue)
            depths[key] = depths.get(key, 0) + count.total
        self.depths = depths

    def _admit(self, event: Event) -> Series:
        label = self._label(event.queue)
        series = Series(event.kind, label, is_dead_letter_queue(event.queue), event.reason)
        if label == event.queue:
            self._series[event.kind, event.queue, event.reason] = series
        return series

    def _label(self, queue: str) -> str:
        if queue in self._queues:
            return queue
        if len(self._queues) >= limits.METRIC_QUEUES_MAX:
            return OTHER
        self._queues.add(queue)
        return queue
