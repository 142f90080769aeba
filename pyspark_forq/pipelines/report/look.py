"""What all pages of a report have in common: their templates, words, verdicts and charts."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from forq_trio.drawing import charts, format
from forq_trio.drawing.chart_views import ChartLine, ChartView, make_chart
from forq_trio.drawing.unseen import visible
from pyspark_forq.pipelines.report.facts import Facts, QueueFacts, Series

REASON_SHOWN_LENGTH_MAX = 200
RETRIES_MANY = 0.1
DEAD_MANY = 0.01
KINDS = {
    "lease_expired": "lease ended",
    "dead_lettered": "dead-lettered",
    "requeued": "redriven",
    "extended": "lease extended",
}
"""Kinds of events whose names are not words."""
MEASURES = {
    "wait": "Wait until delivered",
    "handling": "Delivered until acked",
    "end_to_end": "Received until acked",
}
_FONTS = files("forq_trio") / "ui" / "static" / "fonts"
_DAY_MS = 86_400_000
_SHORT_MS = 240_000


@dataclass(frozen=True)
class Verdict:
    """level: ok, or warn, as the admin UI has them; wait: neither, messages wait for a consumer."""

    level: str
    words: str


def verdict(queue: QueueFacts) -> Verdict:
    """The most important thing to know about a queue: the first of these that holds."""
    counts = queue.counts
    if queue.stuck:
        words = f"{format.whole(queue.stuck)} stuck, up to {format.duration(queue.stuck_longest_ms)}"
        return Verdict("warn", words)
    if (ended := counts["ended"]) and counts["dead_lettered"] / ended >= DEAD_MANY:
        return Verdict("warn", f"{share(counts['dead_lettered'], ended)} ended as dead letters")
    if (deliveries := counts["deliveries"]) and counts["retries"] / deliveries >= RETRIES_MANY:
        return Verdict("warn", f"{share(counts['retries'], deliveries)} of deliveries are retries")
    if queue.waiting:
        words = f"{format.whole(queue.waiting)} waiting, up to {format.duration(queue.waiting_longest_ms)}"
        return Verdict("wait", words)
    more = queue.backlog_end - queue.backlog_start
    if more > 0 and more > 0.1 * counts["entered"]:
        return Verdict("wait", f"{format.whole(more)} more waiting than at the start")
    return Verdict("ok", "Healthy")


def render(template: str, facts: Facts, *, made_at_ms: int, source: str, **more: object) -> str:
    """A page. made_at_ms: when the report was made; source: what it was made of, in words."""
    span_ms = facts.last_ms - facts.first_ms
    return (
        _environment()
        .get_template(template)
        .render(
            facts=facts,
            made_at_ms=made_at_ms,
            source=source,
            clock=lambda at_ms: _moment(at_ms, span_ms),
            **more,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "f": format,
        "fonts": {"inter": _font("inter"), "mono": _font("mono")},
        "kind": lambda name: KINDS.get(name, name),
        "reason": lambda text: _cut(text or ""),
        "share": share,
        "largest": lambda rows: max(acked + dead for _, acked, dead in rows),
        "ms": lambda at: round(at.timestamp() * 1000),
    }
    return environment


def _font(name: str) -> str:
    return base64.b64encode((_FONTS / f"{name}.woff2").read_bytes()).decode("ascii")


def flow_chart(queue: QueueFacts, title: str, flows: Mapping[str, str]) -> ChartView:
    """Numbers a minute. flows: series of the queue, each with the word for it."""
    nothing = _nothing(queue)
    lines = []
    for css, (name, word) in zip(("ln-a", "ln-b"), flows.items(), strict=True):
        series = queue.series.get(name, nothing)
        lines.append(ChartLine(css, word, series, format.rate(_mean(series.values))))
    return _chart("flow", title, "rate", lines)


def backlog_chart(queue: QueueFacts) -> ChartView:
    """How many messages the queue held."""
    line = ChartLine("ln-a", "at the end", queue.series["backlog"], format.figure(queue.backlog_end))
    return _chart("backlog", "Backlog", "count", [line], filled=True)


def latency_chart(queue: QueueFacts, measure: str) -> ChartView:
    """Percentiles of one of MEASURES."""
    nothing, latency = _nothing(queue), queue.latency.get(measure)
    lines = [
        ChartLine(
            css,
            name,
            queue.series.get(f"{measure} {name}", nothing),
            format.duration(None if latency is None else getattr(latency, name)),
        )
        for css, name in (("ln-a", "p50"), ("ln-b", "p95"), ("ln-c", "p99"))
    ]
    return _chart("latency", MEASURES[measure], "seconds", lines)


def _chart(key: str, title: str, unit: str, lines: Sequence[ChartLine], *, filled: bool = False) -> ChartView:
    barred = len(lines[0].series.values) <= charts.BARS_MAX
    return make_chart(key, title, unit, lines, filled=filled, barred=barred)


def _nothing(queue: QueueFacts) -> Series:
    level = queue.series["backlog"]
    return Series(level.start_ms, level.step_ms, (None,) * len(level.values))


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0 for value in values) / max(1, len(values))


def share(part: int, whole: int) -> str:
    """ "4.2 %", "0 %", "< 0.1 %"; a dash of nothing."""
    if not whole:
        return format.NOTHING
    percent = 100 * part / whole
    if part and percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.0f} %" if percent in (0, 100) or percent >= 10 else f"{percent:.1f} %"


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= REASON_SHOWN_LENGTH_MAX else f"{flat[: REASON_SHOWN_LENGTH_MAX - 1]}…"


def _moment(at_ms: int, span_ms: int) -> str:
    """A time on an axis: the clock, with seconds on a short axis, or the day where it is longer than two of them."""
    exact: Any = format.exact_time(at_ms)
    if span_ms > 2 * _DAY_MS:
        day = format.clock(at_ms, 0).split(" ")
        return " ".join(day[:2])
    return str(exact[11 : 19 if span_ms < _SHORT_MS else 16])
