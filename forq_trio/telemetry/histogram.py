"""Histograms with fixed buckets: durations and sizes of /metrics, and of the last hour.

A value costs one binary search in a short tuple. Equal values of a batch are counted first, so the thousand messages of
a busy commit, which share a few waiting times, cost little more than one.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

_COUNTED_FIRST_MIN = 16
MINUTES = 60
RECENT_MINUTES = 5
_MINUTE_MS = 60_000

MESSAGE_MS = (
    *(1, 2, 5, 10, 25, 50, 100, 250, 500),
    *(1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000),
)
"""Bounds of durations of messages, in milliseconds: from 1 ms to 1 h."""

DISK_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Bounds of how long commits, checkpoints and pauses for them take: from 0.1 ms to 10 s."""

COMMIT_CALLS = tuple(2**power for power in range(13))
"""Bounds of how many calls share a commit: from 1 to 4,096."""


class Exemplar(NamedTuple):
    """One of the values in a bucket."""

    trace_id: str  # of the message that it belongs to
    value: float
    at_ms: int  # epoch ms


class Histogram:
    """How many values fell into each bucket, and their sum.

    bounds: the upper bound of each bucket, included in it, ascending. counts: values per bucket, not cumulative; the
    last is that of values above all bounds. exemplars: the latest of each bucket; None before the first one.
    """

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.exemplars: list[Exemplar | None] | None = None
        self.sum: float = 0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add_all(self, values: Sequence[float]) -> None:
        bounds, counts = self.bounds, self.counts
        if len(values) < _COUNTED_FIRST_MIN:
            for value in values:
                counts[bisect_left(bounds, value)] += 1
        else:
            counted: Iterable[tuple[float, int]] = Counter(values).items()
            for value, count in counted:
                counts[bisect_left(bounds, value)] += count
        self.sum += sum(values)

    def cumulative(self) -> list[int]:
        """How many values were at most each bound, and last how many there were."""
        return list(accumulate(self.counts))

    def copy(self) -> "Histogram":
        """One with the same values, which changes no more."""
        made = Histogram(self.bounds)
        made.counts = self.counts.copy()
        made.sum = self.sum
        made.exemplars = self.exemplars and self.exemplars.copy()
        return made

    def note_exemplar(self, trace_id: str, value: float, at_ms: int) -> None:
        """Note to which trace a value belongs; the value itself is added in addition."""
        if self.exemplars is None:
            self.exemplars = [None] * len(self.counts)
        self.exemplars[bisect_left(self.bounds, value)] = Exemplar(trace_id, value, at_ms)


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value below which this share of the values lies, if they are spread evenly in each bucket; None without any.

    For values above the last bound this is the last bound.
    """
    total = sum(counts)
    if total == 0:
        return None
    below = 0.0
    for (low, high), count in zip(pairwise((0.0, *bounds)), counts, strict=False):
        if count and below + count >= share * total:
            return low + (high - low) * (share * total - below) / count
        below += count
    return bounds[-1]


def milliseconds_p99(hour: "LastHour", now_ms: int) -> float | None:
    """The 99th percentile of seconds of the last five minutes, in milliseconds; None without any."""
    p99 = hour.quantile(now_ms, 0.99, RECENT_MINUTES)
    return None if p99 is None else round(p99 * 1_000, 3)


class _Minute:
    __slots__ = ("counts", "greatest", "greatest_at", "number")

    def __init__(self, number: int, buckets: int) -> None:
        self.number = number
        self.counts = [0] * buckets
        self.greatest = -1.0
        self.greatest_at = 0


class LastHour:
    """How many values of the last hour fell into each bucket, minute by minute, and the greatest of each minute.

    60 minutes are kept, whatever comes in. bounds: the upper bound of each bucket, included in it, ascending; one more
    bucket has what is above.

    Times are epoch ms. After the clock is set back, later values are ignored until it has caught up.
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._minutes = [_Minute(-1, 0) for _ in range(MINUTES)]

    def add(self, at_ms: int, value: float) -> None:
        number = at_ms // _MINUTE_MS
        minute = self._minutes[number % MINUTES]
        if minute.number != number:
            minute = self._minutes[number % MINUTES] = _Minute(number, len(self.bounds) + 1)
        minute.counts[bisect_left(self.bounds, value)] += 1
        if value > minute.greatest:
            minute.greatest, minute.greatest_at = value, at_ms

    def counts(self, now_ms: int, minutes: int = MINUTES) -> list[int]:
        """How many values of the last `minutes`, including the current one, fell into each bucket."""
        sums = [0] * (len(self.bounds) + 1)
        for minute in self._recent(now_ms, minutes):
            sums = [one + other for one, other in zip(sums, minute.counts, strict=True)]
        return sums

    def quantile(self, now_ms: int, share: float, minutes: int = MINUTES) -> float | None:
        """`quantile` of the values of the last `minutes`, and no more than the greatest of them."""
        found = quantile(self.bounds, self.counts(now_ms, minutes), share)
        if found is None:
            return None
        return min(found, max(minute.greatest for minute in self._recent(now_ms, minutes)))

    def greatest(self, now_ms: int) -> tuple[float, int] | None:
        """The greatest value of the last hour and when it came; None without any."""
        found = max(self._recent(now_ms, MINUTES), key=lambda minute: minute.greatest, default=None)
        return None if found is None else (found.greatest, found.greatest_at)

    def _recent(self, now_ms: int, minutes: int) -> list[_Minute]:
        now = now_ms // _MINUTE_MS
        return [minute for minute in self._minutes if now - minutes < minute.number <= now]


class Measurements:
    """Values since the start, and those of the last hour."""

    __slots__ = ("all", "hour")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.all = Histogram(bounds)
        self.hour = LastHour(bounds)

    def add(self, at_ms: int, value: float) -> None:
        self.all.add(value)
        self.hour.add(at_ms, value)
