"""Quantiles of what was added to histograms lately."""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from operator import sub

from forq_trio.telemetry.histogram import Histogram

_MARKS = 5


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value below which `share` of the values are, linear within its bucket; None without values.

    Above all bounds it is the last one.
    """
    running = list(accumulate(counts))
    wanted = share * running[-1]
    if not running[-1]:
        return None
    for place, below in enumerate(running):
        if below >= wanted and counts[place]:
            break
    if place == len(bounds):
        return bounds[-1]
    low = bounds[place - 1] if place else 0.0
    return low + (bounds[place] - low) * (1 - (below - wanted) / counts[place])


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
