"""Quantiles of the values that histograms got recently."""

from collections import deque
from collections.abc import Sequence
from math import nan
from operator import sub

from forq_trio.model import limits
from forq_trio.storage.engine import HANDLING, WAIT
from forq_trio.telemetry.histogram import Histogram, quantile
from forq_trio.telemetry.queue_durations import QueueDurations

_MARKS = 5


def added(now: Sequence[int], before: Sequence[int]) -> list[int]:
    """The values that a histogram got between two states of its counts."""
    return list(map(sub, now, before))


class Recent:
    """The values that a histogram got in about the last five minutes: it is marked once a minute."""

    def __init__(self, histogram: Histogram) -> None:
        self.histogram = histogram
        self._marks: deque[list[int]] = deque([[0] * len(histogram.counts)], maxlen=_MARKS)

    def mark(self) -> None:
        """A minute has passed."""
        self._marks.append([*self.histogram.counts])

    def quantile(self, share: float) -> float | None:
        """The value below which this share of the recent values lies; None if there are none."""
        return quantile(self.histogram.bounds, added(self.histogram.counts, self._marks[0]), share)


class QueueTimes:
    """How long messages of a queue have recently waited and been handled."""

    __slots__ = ("_durations", "_handled", "_queue", "handling", "waits")

    def __init__(self, queue: str, durations: QueueDurations) -> None:
        self.waits: Recent | None = None  # None as long as the queue has no such histogram
        self.handling: Recent | None = None
        self._queue = queue
        self._durations = durations
        self._handled: list[int] | None = None  # the buckets at the last `ack_p90`

    def mark(self) -> None:
        """A minute has passed."""
        self.handling = self._marked(HANDLING, self.handling)
        self.waits = self._marked(WAIT, self.waits)

    def _marked(self, kind: str, recent: Recent | None) -> Recent | None:
        if recent is not None:
            recent.mark()
            return recent
        found = self._durations.histogram(kind, self._queue)
        return None if found is None else Recent(found)

    def ack_p90(self) -> float:
        """The 90th percentile, in seconds, of the messages acknowledged since the last call; NaN if it is not known."""
        histogram = self._durations.histogram(HANDLING, self._queue)
        if histogram is None:
            return nan
        counts = [*histogram.counts]
        new = counts if self._handled is None else added(counts, self._handled)
        self._handled = counts
        found = quantile(histogram.bounds, new, 0.9)
        return nan if found is None else found / limits.SECOND_MS
