"""The page of a report: one file with everything in it, no script, in the look of the admin UI."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from forq_trio.drawing import charts, format
from forq_trio.drawing.chart_views import ChartView
from pyspark_forq.pipelines.report import look
from pyspark_forq.pipelines.report.facts import OTHERS, Facts, QueueFacts
from pyspark_forq.pipelines.report.look import Verdict, verdict
from pyspark_forq.pipelines.report.queue_page import DIRECTORY, page_name

_SPARK_STEPS = 60


@dataclass(frozen=True)
class QueueView:
    """A queue as the page shows it. link: to its own page, or to what this page says of it."""

    title: str
    facts: QueueFacts
    verdict: Verdict
    spark: Markup
    charts: Sequence[ChartView]
    is_others: bool
    link: str
    has_page: bool


def render(facts: Facts, *, made_at_ms: int, source: str, queue_pages: bool = False) -> str:
    """The page. made_at_ms: when the report was made; source: what it was made of, in words; queue_pages: whether
    queues have pages, to which this one links."""
    queues = [
        _queue_view(queue, number, queue_pages and queue.name != OTHERS)
        for number, queue in enumerate(facts.queues, 1)
    ]
    return look.render(
        "page.html",
        facts,
        made_at_ms=made_at_ms,
        source=source,
        queues=queues,
        attention=sum(view.verdict.level == "warn" for view in queues if not view.is_others),
        shown=sum(not view.is_others for view in queues),
        cut=any(view.is_others for view in queues),
        charts=_charts(facts.whole, {"produced": "In", "acked": "Acked"}) if facts.events else (),
        most_reasons=max([row["messages"] for row in facts.reasons], default=0),
        negative=sum(latency.negative for latency in facts.whole.latency.values()),
    )


def _queue_view(queue: QueueFacts, number: int, has_page: bool) -> QueueView:
    others = queue.name == OTHERS
    return QueueView(
        f"{format.plural(queue.queues, 'other queue')}" if others else queue.name,
        queue,
        verdict(queue),
        charts.sparkline(
            _stretched(_thinned(queue.series["backlog"].values)), "Backlog over the time of the report"
        ),
        _charts(queue, {"entered": "In", "left": "Out"}),
        others,
        f"{DIRECTORY}/{page_name(queue.name)}" if has_page else f"#q{number}",
        has_page,
    )


def _charts(queue: QueueFacts, flows: dict[str, str]) -> tuple[ChartView, ...]:
    """Messages a minute, backlog, and end-to-end latency."""
    chosen = "end_to_end" if "end_to_end" in queue.latency else "wait"
    return (
        look.flow_chart(queue, "Messages a minute", flows),
        look.backlog_chart(queue),
        look.latency_chart(queue, chosen),
    )


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    """At most _SPARK_STEPS of them: of each stretch the highest."""
    each = -(-len(values) // _SPARK_STEPS)
    return [max((value or 0) for value in values[at : at + each]) for at in range(0, len(values), each)]


def _stretched(values: Sequence[float | None]) -> Sequence[float | None]:
    """Twice a lone value, which makes a line of it."""
    return values if len(values) > 1 else [*values, *values]
