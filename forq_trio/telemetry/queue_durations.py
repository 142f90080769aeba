"""How long messages of each queue waited and were handled: histograms since the start.

Recording is cheap: one dict look-up for the durations of a queue. The first HISTOGRAM_QUEUES_MAX queues have histograms
of their own; all others share those of "other". A queue that is gone gives its place to one that has none.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from operator import add

from forq_trio.model import limits
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage.engine import DURATION_KINDS, END_TO_END, HANDLING, WAIT
from forq_trio.telemetry.families import QUEUE_LABELS, QUEUE_TEXTS, Family, QueueKey
from forq_trio.telemetry.histogram import MESSAGE_MS, Histogram
from forq_trio.telemetry.metric_places import MetricPlaces
from forq_trio.telemetry.queue_counters import OTHER

_NAMES = {
    WAIT: ("forq_message_wait_seconds", "From when a message could be claimed until it was."),
    END_TO_END: (
        "forq_message_end_to_end_seconds",
        "From when a message was sent until it was acknowledged.",
    ),
    HANDLING: (
        "forq_message_handling_seconds",
        "From when a message was claimed until it was acknowledged within its lease.",
    ),
}
"""The name and the meaning of each kind in /metrics."""


class QueueDurations:
    """Milliseconds by kind (`DURATION_KINDS`) and queue."""

    def __init__(self) -> None:
        self.histograms: dict[tuple[str, QueueKey], Histogram] = {}
        self._by_queue: dict[tuple[str, str], Histogram] = {}  # of those with histograms of their own
        self._timed = MetricPlaces(self._count, self._end)
        self._ended: dict[str, list[int]] = {}  # by kind, the sums of the buckets of removed histograms

    def record(self, durations: Mapping[tuple[str, str], Sequence[int]]) -> None:
        """Add the durations of one committed batch."""
        for key, values in durations.items():
            (self._by_queue.get(key) or self._admit(*key)).add_all(values)

    def histogram(self, kind: str, queue: str) -> Histogram | None:
        """The histogram of a queue; None if it has none of its own, or no durations."""
        return self._by_queue.get((kind, queue))

    def buckets(self, kind: str) -> list[int]:
        """The buckets of a duration, of all queues since the start together."""
        found = [each.counts for (each_kind, _), each in self.histograms.items() if each_kind == kind]
        ended = self._ended.get(kind, [0] * (len(MESSAGE_MS) + 1))
        return [*map(sum, zip(ended, *found, strict=True))]

    def families(self) -> Iterator[Family]:
        """The histograms of each queue."""
        for kind, (name, meaning) in _NAMES.items():
            found = [
                (QUEUE_TEXTS[key], each)
                for (each_kind, key), each in self.histograms.items()
                if each_kind == kind
            ]
            yield Family("histogram", name, meaning, QUEUE_LABELS, (), found, limits.SECOND_MS)

    def keep(self, queues: Container[str]) -> None:
        """Free the places of all queues but these, because they are gone."""
        self._timed.keep(queues)

    def _count(self, queue: str) -> int:
        return sum([each.count for kind in DURATION_KINDS if (each := self.histogram(kind, queue))])

    def _end(self, queue: str) -> None:
        """Remove the histograms of a queue that is gone."""
        for kind in DURATION_KINDS:
            histogram = self._by_queue.pop((kind, queue), None)
            if histogram is not None:
                del self.histograms[kind, (queue, is_dead_letter_queue(queue))]
                ended = self._ended.get(kind, [0] * len(histogram.counts))
                self._ended[kind] = [*map(add, ended, histogram.counts)]

    def _admit(self, kind: str, queue: str) -> Histogram:
        """The histogram of a new queue; beyond the bound, that of "other"."""
        is_known = self._timed.admit(queue, limits.HISTOGRAM_QUEUES_MAX)
        key = kind, (queue if is_known else OTHER, is_dead_letter_queue(queue))
        histogram = self.histograms.get(key)
        if histogram is None:
            histogram = self.histograms[key] = Histogram(MESSAGE_MS)
        if is_known:
            self._by_queue[kind, queue] = histogram
        return histogram
