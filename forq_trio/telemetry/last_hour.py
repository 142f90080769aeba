"""Values of the last hour: how many fell into each bucket, minute by minute, and the greatest of each minute.

60 minutes are kept, whatever comes in: adding a value costs a binary search in a short tuple.
"""

from bisect import bisect_left

MINUTES = 60
_MINUTE_MS = 60_000


class _Minute:
    __slots__ = ("counts", "greatest", "greatest_at", "number")

    def __init__(self, number: int, buckets: int) -> None:
        self.number = number
        self.counts = [0] * buckets
        self.greatest = -1.0
        self.greatest_at = 0


class LastHour:
    """bounds: the upper bound of each bucket, included in it, ascending; one more bucket has what is above.

    Times are epoch ms. A clock that is set back makes what came before it count no more, until it is reached again.
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
        """How many values of the last `minutes`, the present one included, fell into each bucket."""
        sums = [0] * (len(self.bounds) + 1)
        for minute in self._recent(now_ms, minutes):
            sums = [one + other for one, other in zip(sums, minute.counts, strict=True)]
        return sums

    def greatest(self, now_ms: int) -> tuple[float, int] | None:
        """The greatest value of the last hour and when it came; None without any."""
        found = max(self._recent(now_ms, MINUTES), key=lambda minute: minute.greatest, default=None)
        return None if found is None else (found.greatest, found.greatest_at)

    def _recent(self, now_ms: int, minutes: int) -> list[_Minute]:
        now = now_ms // _MINUTE_MS
        return [minute for minute in self._minutes if now - minutes < minute.number <= now]
