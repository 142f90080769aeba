"""Counts what the writer did, by kind, queue and reason: the source of the counters in /metrics.

Fed after every commit, so recording an event costs one dict look-up. The names of at most METRIC_QUEUES_MAX queues
are kept, first come first served; what happens in further ones is summed under "other".
"""

from collections.abc import Iterable, Mapping, Sequence

from forq_trio import limits
from forq_trio.model import QueueCounts, is_dead_letter_queue
from forq_trio.storage.engine import Event

OTHER = "other"


class Series:
    """One counter. queue: its name, or "other" past the bound; reason: "" without one."""

    __slots__ = ("count", "is_dlq", "kind", "queue", "reason")

    def __init__(self, kind: str, queue: str, is_dlq: bool, reason: str) -> None:
        self.kind = kind
        self.queue = queue
        self.is_dlq = is_dlq
        self.reason = reason
        self.count = 0


class Tally:
    """Counters that only grow, and the depth of the queues as of the last `refresh_depth`.

    depths: messages by queue name (or "other") and whether it is a dead-letter queue.
    """

    def __init__(self) -> None:
        self.depths: dict[tuple[str, bool], int] = {}
        self._by_event: dict[tuple[str, str, str], Series] = {}
        self._others: dict[tuple[str, bool, str], Series] = {}
        self._queues: set[str] = set()

    def record(self, events: Sequence[Event]) -> None:
        """Add the events of one committed batch."""
        for event in events:
            series = self._by_event.get((event.kind, event.queue, event.reason)) or self._admit(event)
            series.count += event.count

    def refresh_depth(self, counts: Mapping[str, QueueCounts]) -> None:
        """Take over how many messages every queue holds, whatever their status; others are forgotten."""
        depths: dict[tuple[str, bool], int] = {}
        for queue, count in counts.items():
            key = queue if self._has_label(queue) else OTHER, is_dead_letter_queue(queue)
            depths[key] = depths.get(key, 0) + count.total
        self.depths = depths

    def series(self) -> Iterable[Series]:
        """All counters, in no particular order; a queue that is really called "other" has one of its own."""
        yield from self._by_event.values()
        yield from self._others.values()

    def _admit(self, event: Event) -> Series:
        """The counter of an event that is new, or of a queue past the bound."""
        is_dlq = is_dead_letter_queue(event.queue)
        if self._has_label(event.queue):
            series = Series(event.kind, event.queue, is_dlq, event.reason)
            self._by_event[event.kind, event.queue, event.reason] = series
            return series
        key = event.kind, is_dlq, event.reason
        if key not in self._others:
            self._others[key] = Series(event.kind, OTHER, is_dlq, event.reason)
        return self._others[key]

    def _has_label(self, queue: str) -> bool:
        if queue in self._queues:
            return True
        if len(self._queues) >= limits.METRIC_QUEUES_MAX:
            return False
        self._queues.add(queue)
        return True
