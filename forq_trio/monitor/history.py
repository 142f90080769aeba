"""The data of charts: 120 points of the last ten minutes, the last hour or the last day, for all queues or one.

It is all in memory, so it begins with the server. Totals have steps of a second for ten minutes and of ten seconds for
a day; a single queue has steps of 5 s, 30 s and 12 min.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from forq_trio.model.clock import Clock
from forq_trio.monitor.rings import Cascade, Values, averaged
from forq_trio.monitor.watched import COLUMNS, POINTS, STEP_SECONDS, Metric, Watched

_TOTAL_LENGTHS = (600, 8_640)
_TOTAL_RATIO = 10
_SPARKLINE_POINTS = 60
_CLOCK_STEP_MS = 1_000


class Range(StrEnum):
    """How far back a chart goes."""

    TEN_MINUTES = "10m"
    HOUR = "1h"
    DAY = "24h"


class TimeSeries(Struct, frozen=True, gc=False):
    """120 values, the latest last; None where nothing is known. start_ms: of the first step, epoch ms."""

    start_ms: int
    step_ms: int
    values: tuple[float | None, ...]


_LEVELS = {Range.TEN_MINUTES: 0, Range.HOUR: 1, Range.DAY: 2}
_STEPS = {Range.TEN_MINUTES: 5, Range.HOUR: 30, Range.DAY: 720}
_TOTAL_LEVELS = {Range.TEN_MINUTES: 0, Range.HOUR: 1, Range.DAY: 1}
_TOTAL_STEPS = (1, 10)


class MetricHistory:
    """Reads the rings. seconds: the monitor's clock, which only goes forward; clock: the wall's, for people."""

    def __init__(self, watched: Mapping[str, Watched], seconds: Callable[[], float], clock: Clock) -> None:
        self._watched = watched
        self._seconds = seconds
        self._clock = clock
        self._ahead_ms = 0.0
        self._totals = Cascade(_TOTAL_LENGTHS, (_TOTAL_RATIO,), len(COLUMNS))

    def add_total(self, second: int, values: Values) -> None:
        """The totals of a second, by column."""
        self._totals.put(second, values)

    def total(self, metric: Metric, range: Range) -> TimeSeries:
        """A metric of all queues together; the age is that of the oldest."""
        level, step = _TOTAL_LEVELS[range], _STEPS[range]
        size = step // _TOTAL_STEPS[level]
        last = self._last(step, self._totals.latest(0), 1)
        first = (last - POINTS + 1) * size
        values = self._totals.column(level, COLUMNS[metric], first, last * size + size - 1)
        return self._series(last, step, averaged(values, size))

    def queue(self, name: str, metric: Metric, range: Range) -> TimeSeries:
        """A metric of one queue; one that is not watched has 120 times None."""
        step = _STEPS[range]
        watched = self._watched.get(name)
        if watched is None:
            return self._series(self._last(step, -1, STEP_SECONDS), step, [])
        last = self._last(step, watched.rings.latest(0), STEP_SECONDS)
        column = watched.rings.column(_LEVELS[range], COLUMNS[metric], last - POINTS + 1, last)
        return self._series(last, step, column)

    def sparkline(self, name: str) -> tuple[float | None, ...]:
        """How many messages were ready in the last hour, in 60 steps; None where nothing is known."""
        return tuple(map(_known, averaged(self._ready(name), POINTS // _SPARKLINE_POINTS)))

    def _ready(self, name: str) -> list[float]:
        values = self.queue(name, Metric.READY, Range.HOUR).values
        return [float("nan") if value is None else value for value in values]

    def _last(self, step: int, latest: int, latest_seconds: int) -> int:
        """The last step to show: the running one once something is known of it, else the one before."""
        running = int(self._seconds() // step)
        return running if latest * latest_seconds // step == running else running - 1

    def _series(self, last: int, step: int, values: list[float]) -> TimeSeries:
        shown = tuple(map(_known, values)) or (None,) * POINTS
        start_ms = (last - POINTS + 1) * step * 1_000 + round(self._ahead())
        return TimeSeries(start_ms, step * 1_000, shown)

    def _ahead(self) -> float:
        """By how many ms the wall clock is ahead of the monitor's. It changes only if the clock is set, so that charts
        do not jitter.
        """
        ahead = self._clock.now_ms() - self._seconds() * 1_000
        if abs(ahead - self._ahead_ms) > _CLOCK_STEP_MS:
            self._ahead_ms = ahead
        return self._ahead_ms


def _known(value: float) -> float | None:
    return value if value == value else None  # NaN differs from itself
