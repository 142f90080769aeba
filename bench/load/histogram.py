"""Latencies in constant memory: counts in buckets whose width grows with the value.

Values below 256 ns have a bucket each; above, every power of two is divided into 128 buckets, so that a percentile
is at most 0.8 % too high. One hour fits in fewer than 4,700 buckets. Percentiles are never below the true value,
and never above the greatest value seen.
"""

from collections.abc import Iterator

_SUB_BITS = 7
_SUB_BUCKETS = 1 << _SUB_BITS
VALUE_NS_MAX = 3_600 * 1_000_000_000


def _index(value: int) -> int:
    shift = max(value.bit_length() - _SUB_BITS - 1, 0)
    return (shift << _SUB_BITS) + (value >> shift)


def _highest(index: int) -> int:
    """The greatest value that falls into bucket `index`."""
    shift = max((index >> _SUB_BITS) - 1, 0)
    return (((index - (shift << _SUB_BITS)) + 1) << shift) - 1


_BUCKETS = _index(VALUE_NS_MAX) + 1


class Histogram:
    """Counts of durations in nanoseconds. Durations beyond an hour count as an hour, negative ones as 0."""

    __slots__ = ("_counts", "count", "max_ns", "sum_ns")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.sum_ns = 0
        self.max_ns = 0

    def record(self, value_ns: int) -> None:
        """Count one duration. It is `_index` written out: this runs once for every request of a load."""
        if value_ns > self.max_ns:
            self.max_ns = value_ns = min(value_ns, VALUE_NS_MAX)
        elif value_ns < 0:
            value_ns = 0
        self.count += 1
        self.sum_ns += value_ns
        shift = value_ns.bit_length() - _SUB_BITS - 1
        if shift < 0:
            shift = 0
        self._counts[(shift << _SUB_BITS) + (value_ns >> shift)] += 1

    def add(self, other: "Histogram") -> None:
        """Take over all that `other` has counted."""
        for index, count in other.buckets():
            self._counts[index] += count
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)

    def buckets(self) -> Iterator[tuple[int, int]]:
        """The buckets in use, lowest first: index and count."""
        return ((index, count) for index, count in enumerate(self._counts) if count)

    def percentile_ns(self, percent: float) -> int:
        """The value that `percent` of all values do not exceed; 0 without values."""
        wanted = max(self.count * percent / 100, 1)
        seen = 0
        for index, count in self.buckets():
            seen += count
            if seen >= wanted:
                return min(_highest(index), self.max_ns)
        return self.max_ns

    def summary(self) -> dict[str, float]:
        """p50, p90, p99, p99.9, max and mean in milliseconds, and the count."""
        points = {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p99_9_ms": 99.9}
        figures: dict[str, float] = {
            name: round(self.percentile_ns(percent) / 1e6, 4) for name, percent in points.items()
        }
        figures["max_ms"] = round(self.max_ns / 1e6, 4)
        figures["mean_ms"] = round(self.sum_ns / self.count / 1e6, 4) if self.count else 0.0
        figures["count"] = self.count
        return figures
