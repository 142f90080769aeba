"""What the page of a report shows, as plain values: Spark counts, and this collects at most a few thousand rows.

The page has the TOP queues with the most traffic one by one and all others as one, and never more than STEPS_MAX steps
of time; so it stays small however many queues and days there are.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from pyspark_forq.pipelines.report import tables

TOP = 20
STEPS_MAX = 120
OTHERS = "*"
"""Stands for all queues that are not shown one by one; no queue has this name."""
_MINUTE_MS = 60_000
_STEP_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
STUCK_SHOWN = 30
REASONS_SHOWN = 20
_LISTED_ATTEMPTS = 10

Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Series:
    """Values at even steps of time, as charts take them."""

    start_ms: int
    step_ms: int
    values: Values


@dataclass(frozen=True)
class Latency:
    """Percentiles in ms over the whole time."""

    p50: float
    p95: float
    p99: float
    messages: int
    negative: int
    longest: int


@dataclass
class QueueFacts:
    """A queue, or all of them, or the OTHERS. Series are by name: entered, left and backlog; `wait p50` and so on."""

    name: str
    queues: int = 1
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    series: dict[str, Series] = field(default_factory=dict)
    latency: dict[str, Latency] = field(default_factory=dict)
    backlog_start: int = 0
    backlog_end: int = 0
    stuck: int = 0
    stuck_longest_ms: int = 0
    # messages that have been without an event for as long as the stuck ones, and were not delivered since they came
    waiting: int = 0
    waiting_longest_ms: int = 0
    # (attempts, acked, dead-lettered); the last one is of all that took more
    attempts: list[tuple[str, int, int]] = field(default_factory=list)
    # these 3: what only the page of the queue has (queue_facts.py)
    reasons: list[Row] = field(default_factory=list)
    waits: list[Row] = field(default_factory=list)
    idle: list[Row] = field(default_factory=list)


@dataclass
class Facts:
    """The facts of a whole report."""

    events: int
    first_ms: int = 0
    last_ms: int = 0
    step_ms: int = _MINUTE_MS
    queue_count: int = 0
    whole: QueueFacts = field(default_factory=lambda: QueueFacts(""))  # all queues together
    queues: list[QueueFacts] = field(default_factory=list)  # the TOP and the OTHERS, by traffic
    stuck: list[Row] = field(default_factory=list)
    reasons: list[Row] = field(default_factory=list)
    stuck_after: str = "1 hour"


def gather(
    events: DataFrame,
    *,
    start: Mapping[str, int] | None = None,
    stuck_after: str = "1 hour",
    now: datetime | None = None,
    top: int = TOP,
) -> Facts:
    """Count what the page shows. events: read several times, so better persisted; see `tables` for the arguments."""
    span = events.agg(
        f.count(f.lit(1)).alias("events"),
        f.unix_millis(f.min("at")).alias("first"),
        f.unix_millis(f.max("at")).alias("last"),
    ).head()
    if span is None or not span["events"]:
        return Facts(0, stuck_after=stuck_after)
    step_minutes = _step_minutes(span["first"], span["last"])
    facts = Facts(span["events"], span["first"], span["last"], step_minutes * _MINUTE_MS)
    facts.stuck_after = stuck_after

    totals = tables.throughput(events, None).withColumn("traffic", f.col("entered") + f.col("left"))
    facts.queue_count = totals.count()
    shown = [row["queue"] for row in totals.orderBy(f.desc("traffic"), "queue").limit(top).collect()]
    facts.queues = [QueueFacts(name) for name in shown]
    if facts.queue_count > len(shown):
        facts.queues.append(QueueFacts(OTHERS, facts.queue_count - len(shown)))

    def grouped(column: str) -> Any:
        return f.when(f.col(column).isin(shown), f.col(column)).when(f.col(column).isNotNull(), OTHERS)

    known = {name: count for name, count in (start or {}).items() if name in shown}
    by_queue = events.withColumns({"queue": grouped("queue"), "target": grouped("target")})
    together = events.withColumn("queue", f.lit(""))
    window = f"{step_minutes} minutes"
    of = {queue.name: queue for queue in facts.queues} | {"": facts.whole}
    _counts(of, by_queue, facts)
    _moves(of, by_queue, window, known, facts)
    for frame in (by_queue, together):
        _latencies(of, frame, window, facts)
        _attempts(of, frame)
    _stuck(of, tables.stuck(events, stuck_after, now=now, top=None), grouped("queue"), facts)
    facts.reasons = tables.reasons(events, REASONS_SHOWN).collect()
    return facts


def _step_minutes(first_ms: int, last_ms: int) -> int:
    """The shortest step of which STEPS_MAX - 1 cover the time, wherever it starts."""
    needed = (last_ms - first_ms) / _MINUTE_MS / (STEPS_MAX - 1)
    return next((step for step in _STEP_MINUTES if step >= needed), -(-int(needed + 1) // 1440) * 1440)


def _steps(facts: Facts) -> tuple[int, int]:
    """The start of the first step, and how many steps there are."""
    start = facts.first_ms // facts.step_ms * facts.step_ms
    return start, (facts.last_ms - start) // facts.step_ms + 1


def series_of(facts: Facts, known: Mapping[int, float], *, missing: float | None) -> Series:
    """The values, which are known by their time in ms, at all steps. missing: the value of a step that has none."""
    start, count = _steps(facts)
    times = range(start, start + count * facts.step_ms, facts.step_ms)
    return Series(start, facts.step_ms, tuple(known.get(time, missing) for time in times))


def ms_of(moment: datetime) -> int:
    """A collected timestamp in ms since 1970. Spark makes it naive, in the zone of this process."""
    return round(moment.astimezone(UTC).timestamp() * 1000)


def _counts(of: Mapping[str, QueueFacts], events: DataFrame, facts: Facts) -> None:
    for row in [*tables.throughput(events, None).collect(), *tables.rates(events, None).collect()]:
        counts = row.asDict()
        queue = of[counts.pop("queue")]
        queue.counts |= counts
    for queue in facts.queues:
        for name, number in queue.counts.items():
            if not name.endswith("_rate"):
                facts.whole.counts[name] += number


def _moves(
    of: Mapping[str, QueueFacts], events: DataFrame, window: str, known: Mapping[str, int], facts: Facts
) -> None:
    minutes = facts.step_ms / _MINUTE_MS
    flows: dict[str, dict[str, dict[int, float]]] = {}
    for row in tables.throughput(events, window).collect():
        flow = flows.setdefault(row["queue"], {})
        for name in ("entered", "left", "produced", "acked"):
            flow.setdefault(name, {})[ms_of(row["at"])] = row[name] / minutes
    levels: dict[str, dict[int, int]] = {}
    for row in tables.backlog(events, window, start=known).orderBy("at").collect():
        level = levels.setdefault(row["queue"], {})
        if not level:
            of[row["queue"]].backlog_start = row["backlog"] - row["change"]
        level[ms_of(row["at"])] = row["backlog"]
    for queue in facts.queues:
        for name, values in flows.get(queue.name, {}).items():
            queue.series[name] = series_of(facts, values, missing=0)
        queue.series["backlog"] = _carried(
            series_of(facts, levels.get(queue.name, {}), missing=None), queue.backlog_start
        )
        queue.backlog_end = int(queue.series["backlog"].values[-1] or 0)
    whole = facts.whole
    for name in ("produced", "acked", "backlog"):
        parts = [queue.series[name].values for queue in facts.queues if name in queue.series]
        start, count = _steps(facts)
        sums = tuple(sum(part[place] or 0 for part in parts) for place in range(count))
        whole.series[name] = Series(start, facts.step_ms, sums)
    whole.backlog_start = sum(queue.backlog_start for queue in facts.queues)
    whole.backlog_end = sum(queue.backlog_end for queue in facts.queues)


def _carried(series: Series, before: float) -> Series:
    """Fill gaps in a level with its last known value. before: the value before the first."""
    values = []
    for value in series.values:
        before = before if value is None else value
        values.append(before)
    return Series(series.start_ms, series.step_ms, tuple(values))


def _latencies(of: Mapping[str, QueueFacts], events: DataFrame, window: str, facts: Facts) -> None:
    for row in tables.latencies(events, None).collect():
        of[row["queue"]].latency[row["measure"]] = Latency(
            row["p50"], row["p95"], row["p99"], row["messages"], row["negative"], row["longest"]
        )
    known: dict[tuple[str, str], dict[int, float]] = {}
    for row in tables.latencies(events, window).collect():
        for name in ("p50", "p95", "p99"):
            key = row["queue"], f"{row['measure']} {name}"
            known.setdefault(key, {})[ms_of(row["at"])] = row[name] / 1000
    for (queue, name), values in known.items():
        of[queue].series[name] = series_of(facts, values, missing=None)


def _stuck(of: Mapping[str, QueueFacts], found: DataFrame, queue: Any, facts: Facts) -> None:
    waits = f.col("kind").isin(*tables.WAITING)
    rows = (
        found.groupBy(queue.alias("queue"), waits.alias("waits"))
        .agg(f.count(f.lit(1)).alias("messages"), f.max("idle_ms").alias("longest"))
        .collect()
    )
    for row in rows:
        each = of[row["queue"]]
        if row["waits"]:
            each.waiting, each.waiting_longest_ms = row["messages"], row["longest"]
        else:
            each.stuck, each.stuck_longest_ms = row["messages"], row["longest"]
    facts.whole.stuck = sum(row["messages"] for row in rows if not row["waits"])
    facts.whole.waiting = sum(row["messages"] for row in rows if row["waits"])
    facts.stuck = found.where(~waits).limit(STUCK_SHOWN).collect()


def _attempts(of: Mapping[str, QueueFacts], events: DataFrame) -> None:
    capped = f.least("attempts", f.lit(_LISTED_ATTEMPTS + 1)).alias("attempts")
    rows = (
        tables.attempts(events)
        .groupBy("queue", capped)
        .agg(f.sum("acked").alias("acked"), f.sum("dead_lettered").alias("dead_lettered"))
        .collect()
    )
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row["queue"], {})[row["attempts"]] = row["acked"], row["dead_lettered"]
    for queue, ended in found.items():
        of[queue].attempts = [
            (
                str(number) if number <= _LISTED_ATTEMPTS else f"more than {_LISTED_ATTEMPTS}",
                *ended.get(number, (0, 0)),
            )
            for number in range(min(ended), max(ended) + 1)
        ]
