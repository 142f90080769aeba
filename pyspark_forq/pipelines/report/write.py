"""The report: every table as Parquet, the page, and pages of queues."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from pyspark_forq.pipelines.report import facts, page, queue_facts, queue_page, tables
from pyspark_forq.pipelines.results import ReportResult, Show, show_nothing

PAGE = "report.html"
TABLES = "tables"


def report(
    events: DataFrame,
    to: str | Path,
    *,
    window: str = "1 minute",
    start: Mapping[str, int] | None = None,
    stuck_after: str = "1 hour",
    now: datetime | None = None,
    source: str = "a table of events",
    queue_pages: bool = False,
    show: Show = show_nothing,
) -> ReportResult:
    """Write `to`/tables/* and `to`/report.html of a frame of lifecycle events; what was there is replaced.

    window: of the tables over time. start: how many messages each queue held before the first event. stuck_after, now:
    which messages are stuck (`tables.stuck`). source: what the events are of, for the foot of the page. queue_pages:
    also a page for each queue that the page shows one by one, in `to`/queues, which it links to. to: a local directory.
    The tables have every queue and window; the page has the queues with the most traffic, and the others as
    one.
    """
    target = Path(to)
    target.mkdir(parents=True, exist_ok=True)
    events = events.persist()
    try:
        frames = {
            "throughput": tables.throughput(events, window),
            "backlog": tables.backlog(events, window, start=start),
            "latencies": tables.latencies(events, window),
            "rates": tables.rates(events, window),
            "attempts": tables.attempts(events),
            "reasons": tables.reasons(events),
            "stuck": tables.stuck(events, stuck_after, now=now),
        }
        steps = len(frames) + 1
        for done, (name, frame) in enumerate(frames.items()):
            show(done, steps, name)
            frame.coalesce(1).write.mode("overwrite").parquet(str(target / TABLES / name))
        show(len(frames), steps, "page")
        found = facts.gather(events, start=start, stuck_after=stuck_after, now=now)
        if queue_pages:
            queue_facts.add(found, events, now=now)
    finally:
        events.unpersist()
    made_at_ms = time.time_ns() // 1_000_000
    pages = queue_page.render(found, made_at_ms=made_at_ms, source=source) if queue_pages else {}
    _replace_pages(target / queue_page.DIRECTORY, pages)
    html = page.render(found, made_at_ms=made_at_ms, source=source, queue_pages=queue_pages)
    _write(target / PAGE, html)
    return ReportResult(
        str(target / PAGE),
        str(target / TABLES),
        len(html.encode()),
        found.events,
        found.queue_count,
        found.whole.stuck,
        len(pages),
    )


def _write(place: Path, html: str) -> None:
    """Write a page in one step, so that a reader sees the old page or the new one."""
    aside = place.with_name(f".{place.name}.new")
    aside.write_text(html, encoding="utf-8")
    aside.replace(place)


def _replace_pages(directory: Path, pages: Mapping[str, str]) -> None:
    """Write the pages, and remove those of an earlier report whose queues are not shown now; other files stay."""
    if pages:
        directory.mkdir(exist_ok=True)
    for name, html in pages.items():
        _write(directory / name, html)
    for place in directory.glob("*.html"):
        if place.name not in pages and queue_page.is_page_name(place.name):
            place.unlink()
