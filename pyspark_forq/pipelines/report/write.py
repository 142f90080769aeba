"""The report: every table as Parquet, and the page."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from pyspark_forq.pipelines.report import facts, page, tables
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
    show: Show = show_nothing,
) -> ReportResult:
    """Write `to`/tables/* and `to`/report.html of a frame of lifecycle events; what was there is replaced.

    window: of the tables over time. start: how many messages each queue held before the first event. stuck_after, now:
    which messages are stuck (`tables.stuck`). source: what the events are of, for the foot of the page. to: a local
    directory. The tables have every queue and window; the page has the queues with the most traffic, and the others as
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
    finally:
        events.unpersist()
    html = page.render(found, made_at_ms=time.time_ns() // 1_000_000, source=source).encode()
    place = target / PAGE
    aside = place.with_name(f".{PAGE}.new")
    aside.write_bytes(html)
    aside.replace(place)
    return ReportResult(
        str(place), str(target / TABLES), len(html), found.events, found.queue_count, found.whole.stuck
    )
