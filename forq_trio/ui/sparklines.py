"""The small lines in the list of queues. They show an hour in steps of a minute, so each is drawn every half minute."""

import trio
from markupsafe import Markup

from forq_trio.drawing import charts
from forq_trio.model import limits
from forq_trio.monitor.history import MetricHistory

_SECONDS = 30.0
_LABEL = "ready messages in the last hour"


class Sparklines:
    """Draws the lines of queues, and caches them."""

    def __init__(self, history: MetricHistory) -> None:
        self._history = history
        self._drawn: dict[str, tuple[float, Markup]] = {}

    def of(self, queue: str) -> Markup:
        """The line of a queue, at most half a minute old."""
        now = trio.current_time()
        known = self._drawn.get(queue)
        if known is not None and now - known[0] < _SECONDS:
            return known[1]
        if len(self._drawn) >= limits.SERIES_QUEUES_MAX:
            self._drawn.clear()
        drawing = charts.sparkline(self._history.sparkline(queue), _LABEL)
        self._drawn[queue] = now, drawing
        return drawing
