"""Charts as templates show them: the drawing, its axes, the legend with the values of now, the values behind it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from forq_trio.drawing import charts

RANGES = {"10m": "10 min", "1h": "1 h", "24h": "24 h"}
YOUNG_MS = 30 * 60_000
"""A server that is younger shows ten minutes where nobody asks for a range: an hour would be mostly empty."""
_UNITS: dict[str, tuple[Callable[[float], str], float]] = {
    "rate": (lambda value: f"{value:,g}", 4.0),
    "count": (lambda value: _short_count(value), 4.0),
    "seconds": (lambda value: _axis_time(value), 2.0),
}


def range_default(age_ms: int) -> str:
    """The range of charts where nobody asks for one. age_ms: of the server."""
    return "10m" if age_ms < YOUNG_MS else "1h"


class ChartLine(Struct, frozen=True):
    """css: ln-a, ln-b or ln-c; word: its name in the legend; series: 120 values; now: the value of now, in words."""

    css: str
    word: str
    series: Any
    now: str


class ChartView(Struct, frozen=True):
    """key: of its live cells. axis: three labels from the top; since: epoch ms of the first known value, if late."""

    key: str
    title: str
    lines: Sequence[ChartLine]
    drawing: Markup
    axis: tuple[str, str, str]
    ticks: tuple[int, ...]
    values: str
    since: int | None
    limit: tuple[str, str] | None = None


def make_chart(
    key: str,
    title: str,
    unit: str,
    lines: Sequence[ChartLine],
    *,
    filled: bool = False,
    limit: tuple[str, float] | None = None,
    raised: float = 0,
    barred: bool = False,
) -> ChartView:
    """A chart of lines or bars over the same time. unit: rate, count or seconds; limit: a word and a value, dotted."""
    words, least = _UNITS[unit]
    known = [value for line in lines for value in line.series.values if value is not None]
    highest = max([*known, limit[1] if limit else 0.0], default=0.0)
    top = _top(unit, highest, least)
    series = lines[0].series
    count = len(series.values)
    end_ms = series.start_ms + count * series.step_ms
    ticks = tuple(round(series.start_ms + (end_ms - series.start_ms) * share / 4) for share in range(4))
    return ChartView(
        key,
        title,
        lines,
        charts.chart(
            [(line.css, line.series.values) for line in lines],
            top,
            filled=filled,
            limit=None if limit is None else limit[1],
            raised=raised,
            barred=barred,
        ),
        (words(top), words(top / 2), "0"),
        ticks,
        json.dumps(
            {
                "start": series.start_ms,
                "step": series.step_ms,
                "unit": unit,
                "lines": [[line.word, [_rounded(value) for value in line.series.values]] for line in lines],
            },
            separators=(",", ":"),
        ),
        _since(series),
        None if limit is None else (limit[0], words(limit[1])),
    )


def _top(unit: str, highest: float, least: float) -> float:
    if unit != "seconds" or highest <= 60:
        return charts.nice_top(highest, least)
    size = next((size for size in (60, 3_600) if highest <= size * 90), 86_400)
    return charts.nice_top(highest / size) * size


def _axis_time(seconds: float) -> str:
    """A time in one unit, short enough for an axis: 500 ms, 20 s, 90 min, 12 h, 3 d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1_000:.3g} ms"


def _since(series: Any) -> int | None:
    """When the first known value is, if the first twentieth of the range is unknown."""
    first = next((place for place, value in enumerate(series.values) if value is not None), None)
    if first is None or first <= len(series.values) // 20:
        return None
    return int(series.start_ms + first * series.step_ms)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _short_count(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (value >= size and value % size == 0):
            return f"{value / size:g} {unit}"
    return f"{value:,g}"
