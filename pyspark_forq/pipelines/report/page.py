"""The page of a report: one file with everything in it, no script, in the look of the admin UI."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from forq_trio.drawing import charts, format
from forq_trio.drawing.chart_views import ChartView, Line, make_chart
from forq_trio.drawing.unseen import visible
from pyspark_forq.pipelines.report.facts import OTHERS, Facts, QueueFacts, Series

REASON_SHOWN_LENGTH_MAX = 200
RETRIES_MANY = 0.1
DEAD_MANY = 0.01
_FONTS = files("forq_trio") / "ui" / "static" / "fonts"
_DAY_MS = 86_400_000
_SHORT_MS = 240_000
_SPARK_STEPS = 60
_NAMES = {
    "lease_expired": "lease ended",
    "dead_lettered": "dead-lettered",
    "requeued": "redriven",
    "extended": "lease extended",
}


@dataclass(frozen=True)
class Verdict:
    """level: ok, or warn, as the admin UI has them; wait: neither, messages wait for a consumer."""

    level: str
    words: str


@dataclass(frozen=True)
class QueueView:
    """A queue as the page shows it."""

    title: str
    facts: QueueFacts
    verdict: Verdict
    spark: Markup
    charts: Sequence[ChartView]
    is_others: bool


def render(facts: Facts, *, made_at_ms: int, source: str) -> str:
    """The page. made_at_ms: when the report was made; source: what it was made of, in words."""
    queues = [_queue_view(queue) for queue in facts.queues]
    return (
        _environment()
        .get_template("page.html")
        .render(
            facts=facts,
            queues=queues,
            attention=sum(view.verdict.level == "warn" for view in queues if not view.is_others),
            shown=sum(not view.is_others for view in queues),
            cut=any(view.is_others for view in queues),
            charts=_charts(facts.whole, ("produced", "acked"), ("In", "Acked")) if facts.events else (),
            most=max([acked + dead for _, acked, dead in facts.attempts], default=0),
            most_reasons=max([row["messages"] for row in facts.reasons], default=0),
            negative=sum(latency.negative for latency in facts.whole.latency.values()),
            kind=lambda name: _NAMES.get(name, name),
            reason=lambda text: _cut(text or ""),
            share=_share,
            ms=lambda at: round(at.timestamp() * 1000),
            clock=lambda at_ms: _moment(at_ms, facts.last_ms - facts.first_ms),
            source=source,
            made_at_ms=made_at_ms,
            fonts={"inter": _font("inter"), "mono": _font("mono")},
            f=format,
        )
    )


def verdict(queue: QueueFacts) -> Verdict:
    """What to know about a queue first; the first that holds."""
    counts = queue.counts
    if queue.stuck:
        words = f"{format.whole(queue.stuck)} stuck, up to {format.duration(queue.stuck_longest_ms)}"
        return Verdict("warn", words)
    if (ended := counts.get("ended", 0)) and counts["dead_lettered"] / ended >= DEAD_MANY:
        return Verdict("warn", f"{_share(counts['dead_lettered'], ended)} ended as dead letters")
    if (deliveries := counts.get("deliveries", 0)) and counts["retries"] / deliveries >= RETRIES_MANY:
        return Verdict("warn", f"{_share(counts['retries'], deliveries)} of deliveries are retries")
    if queue.waiting:
        words = f"{format.whole(queue.waiting)} waiting, up to {format.duration(queue.waiting_longest_ms)}"
        return Verdict("wait", words)
    more = queue.backlog_end - queue.backlog_start
    if more > 0 and more > 0.1 * counts.get("entered", 0):
        return Verdict("wait", f"{format.whole(more)} more waiting than at the start")
    return Verdict("ok", "Healthy")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _font(name: str) -> str:
    return base64.b64encode((_FONTS / f"{name}.woff2").read_bytes()).decode("ascii")


def _queue_view(queue: QueueFacts) -> QueueView:
    others = queue.name == OTHERS
    return QueueView(
        f"{format.plural(queue.queues, 'other queue')}" if others else queue.name,
        queue,
        verdict(queue),
        charts.sparkline(
            _stretched(_thinned(queue.series["backlog"].values)), "Backlog over the time of the report"
        ),
        _charts(queue, ("entered", "left"), ("In", "Out")),
        others,
    )


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    """At most _SPARK_STEPS of them: of each stretch the highest."""
    each = -(-len(values) // _SPARK_STEPS)
    return [max((value or 0) for value in values[at : at + each]) for at in range(0, len(values), each)]


def _stretched(values: Sequence[float | None]) -> Sequence[float | None]:
    """Twice a lone value, which makes a line of it."""
    return values if len(values) > 1 else [*values, *values]


def _charts(queue: QueueFacts, flows: tuple[str, str], words: tuple[str, str]) -> tuple[ChartView, ...]:
    """Messages a minute, backlog, and end-to-end latency."""
    level = queue.series["backlog"]
    nothing = Series(level.start_ms, level.step_ms, (None,) * len(level.values))
    flow_lines = []
    for css, name, word in zip(("ln-a", "ln-b"), flows, words, strict=True):
        series = queue.series.get(name, nothing)
        flow_lines.append(Line(css, word, series, format.rate(_mean(series.values))))
    chosen = "end_to_end" if "end_to_end" in queue.latency else "wait"
    latency = queue.latency.get(chosen)
    latency_lines = [
        Line(
            css,
            name,
            queue.series.get(f"{chosen} {name}", nothing),
            format.duration(None if latency is None else getattr(latency, name)),
        )
        for css, name in (("ln-a", "p50"), ("ln-b", "p95"), ("ln-c", "p99"))
    ]
    title = "Received until acked" if chosen == "end_to_end" else "Wait until delivered"
    barred = len(level.values) <= charts.BARS_MAX
    return (
        make_chart("flow", "Messages a minute", "rate", flow_lines, barred=barred),
        make_chart(
            "backlog",
            "Backlog",
            "count",
            [Line("ln-a", "at the end", level, format.figure(queue.backlog_end))],
            filled=True,
            barred=barred,
        ),
        make_chart("latency", title, "seconds", latency_lines, barred=barred),
    )


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0 for value in values) / max(1, len(values))


def _share(part: int, whole: int) -> str:
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
