"""Facts that only the page of a queue shows: at most a few hundred rows for each queue with a page."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as f

from pyspark_forq.pipelines.report import tables
from pyspark_forq.pipelines.report.facts import OTHERS, REASONS_SHOWN, STUCK_SHOWN, Facts, ms_of, series_of

WAITS_SHOWN = 10
_FAILED = ("failures", "dead_lettered")


def add(facts: Facts, events: DataFrame, *, now: datetime | None = None) -> None:
    """Add what only these pages show to the queues of `facts`, made of the same events. now: see `tables.stuck`."""
    of = {queue.name: queue for queue in facts.queues if queue.name != OTHERS}
    if not of:
        return
    shown = f.col("queue").isin(list(of))
    minutes = facts.step_ms // 60_000
    failed: dict[tuple[str, str], dict[int, float]] = {}
    for row in tables.rates(events.where(shown), f"{minutes} minutes").collect():
        for name in _FAILED:
            failed.setdefault((row["queue"], name), {})[ms_of(row["at"])] = row[name] / minutes
    for (queue, name), values in failed.items():
        of[queue].series[name] = series_of(facts, values, missing=0)
    reasons = tables.reasons(events.where(shown), None)
    for row in _first(reasons, REASONS_SHOWN, f.desc("messages"), f.col("kind"), f.col("reason")):
        of[row["queue"]].reasons.append(row)
    waits = events.where(shown & (f.col("kind") == "delivered") & f.col("duration_ms").isNotNull())
    waits = waits.select("queue", "message_id", "attempt", "at", "duration_ms")
    for row in _first(waits, WAITS_SHOWN, f.desc("duration_ms"), f.col("at"), f.col("message_id")):
        of[row["queue"]].waits.append(row)
    idle = tables.stuck(events, facts.stuck_after, now=now, top=None).where(shown)
    for row in _first(idle, STUCK_SHOWN, f.col("since"), f.col("message_id")):
        of[row["queue"]].idle.append(row)


def _first(rows: DataFrame, count: int, *order: Column) -> Sequence[Row]:
    """The first `count` rows of each queue, in this order."""
    place = f.row_number().over(Window.partitionBy("queue").orderBy(*order))
    return rows.withColumn("place", place).where(f.col("place") <= count).orderBy("queue", "place").collect()
