"""Quantiles of what was added to histograms lately."""

from collections import deque
from collections.abc import Sequence
from operator import sub

from forq_trio.telemetry.histogram import Histogram, quantile

_MARKS = 5


def added(now: Sequence[int], before: Sequence[int]) -> list[int]:
    """What was added to the counts of a histogram."""
    return list(map(sub, now, before))


class Recent:
    """What a histogram got in the last five minutes or so: it is marked once a minute."""

    def __init__(self, histogram: Histogram) -> None:
        self.histogram = histogram
        self._marks: deque[list[int]] = deque([[0] * len(histogram.counts)], maxlen=_MARKS)

    def mark(self) -> None:
        """A minute has passed."""
        self._marks.append([*self.histogram.counts])

    def quantile(self, share: float) -> float | None:
        """None where nothing was added lately."""
        return quantile(self.histogram.bounds, added(self.histogram.counts, self._marks[0]), share)
