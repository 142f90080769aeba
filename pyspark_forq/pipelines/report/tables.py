"""Tables over lifecycle events: plain functions from a frame to a frame, which need no server.

Each takes a frame with the columns of EVENTS (`pyspark_forq.schemas`). Tables over time have a row per queue and
window in which something happened, named by the window's start (`at`); `window=None` makes it one row per queue. The
clock of a server may be set back, so what came last is decided by the event's id, never by its time; durations below
zero count as zero, and how many there were is said (`negative`). Percentiles are Spark's percentile_approx with
ACCURACY: a p99 lies between the true 98.9 and 99.1 per cent.
"""

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

ACCURACY = 1_000
PERCENTILES = (0.5, 0.95, 0.99)
ENDED = ("acked", "dead_lettered", "expired", "deleted", "cancelled")
"""The kinds of events after which a message is no longer in its queue, for another reason than a redrive."""
WAITING = ("produced", "updated", "released", "requeued")
"""The kinds of events after which a message waits for a consumer, and nothing has failed."""


def throughput(events: DataFrame, window: str | None = "1 minute") -> DataFrame:
    """What came in and what went out: at, queue, entered, left, then how many events of each kind.

    entered: produced here, or moved here from another queue; left: acked, expired, deleted, or moved elsewhere.
    """
    moves = _moves(events)
    return (
        moves.groupBy(*_keys(window))
        .agg(
            f.sum(f.when(f.col("change") > 0, 1).otherwise(0)).alias("entered"),
            f.sum(f.when(f.col("change") < 0, 1).otherwise(0)).alias("left"),
            *(
                _count(f.col("own") & (f.col("kind") == kind)).alias(kind)
                for kind in (
                    "produced",
                    "delivered",
                    *ENDED,
                    "requeued",
                    "nacked",
                    "released",
                    "lease_expired",
                )
            ),
        )
        .transform(_named, window)
    )


def backlog(
    events: DataFrame, window: str | None = "1 minute", *, start: Mapping[str, int] | None = None
) -> DataFrame:
    """How many messages a queue holds at the end of each window: at, queue, change, backlog.

    start: how many each queue held before the first event. A queue that is not named there had as few as keep it from
    ever holding less than none, which is the truth for every queue that was once empty.
    """
    changes = (
        _moves(events).groupBy(*_keys(window)).agg(f.sum("change").alias("change")).transform(_named, window)
    )
    whole = Window.partitionBy("queue")
    running = changes.withColumn("sum", f.sum("change").over(whole.orderBy("at") if window else whole))
    least = f.greatest(f.lit(0), -f.min("sum").over(whole))
    known = f.create_map(*(f.lit(part) for pair in start.items() for part in pair)) if start else None
    before = least if known is None else f.coalesce(f.try_element_at(known, f.col("queue")), least)
    return running.withColumn("before", before).select(
        *_names(window), "change", (f.col("before") + f.col("sum")).cast("long").alias("backlog")
    )


def latencies(events: DataFrame, window: str | None = "1 minute") -> DataFrame:
    """How long things took, in ms: at, queue, measure, messages, negative, p50, p95, p99, longest.

    measure: wait (claimable until delivered), handling (delivered until acked), end_to_end (received until acked).
    """
    acked, delivered = f.col("kind") == "acked", f.col("kind") == "delivered"
    end_to_end = f.unix_millis("at") - f.unix_millis("received_at")
    measures = f.array(
        f.struct(f.lit("wait").alias("measure"), f.when(delivered, f.col("duration_ms")).alias("ms")),
        f.struct(f.lit("handling").alias("measure"), f.when(acked, f.col("duration_ms")).alias("ms")),
        f.struct(f.lit("end_to_end").alias("measure"), f.when(acked, end_to_end).alias("ms")),
    )
    ms = f.greatest(f.col("each.ms"), f.lit(0))
    percentiles = f.percentile_approx("ms", list(PERCENTILES), ACCURACY)
    return (
        events.where(acked | delivered)
        .select("at", "queue", f.explode(measures).alias("each"))
        .where(f.col("each.ms").isNotNull())
        .select("at", "queue", "each.measure", ms.alias("ms"), (f.col("each.ms") < 0).alias("was_negative"))
        .groupBy(*_keys(window), "measure")
        .agg(
            f.count(f.lit(1)).alias("messages"),
            _count(f.col("was_negative")).alias("negative"),
            percentiles.alias("p"),
            f.max("ms").alias("longest"),
        )
        .transform(_named, window)
        .select(
            *_names(window),
            "measure",
            "messages",
            "negative",
            *(f.col("p")[place].alias(f"p{share * 100:.0f}") for place, share in enumerate(PERCENTILES)),
            "longest",
        )
    )


def rates(events: DataFrame, window: str | None = "1 minute") -> DataFrame:
    """How much had to be done again, and how much was given up: at, queue, deliveries, retries, failures, ended,
    dead_lettered, retry_rate, dead_letter_rate.

    retries: deliveries that were not the first of their message; failures: nacks and leases that ended; retry_rate:
    retries among deliveries; dead_letter_rate: dead letters among the messages that ended. None where there is nothing
    to be a share of.
    """
    kind = f.col("kind")
    delivered = kind == "delivered"
    counted = (
        events.groupBy(*_keys(window))
        .agg(
            _count(delivered).alias("deliveries"),
            _count(delivered & (f.col("attempt") > 1)).alias("retries"),
            _count(kind.isin("nacked", "lease_expired")).alias("failures"),
            _count(kind.isin(*ENDED)).alias("ended"),
            _count(kind == "dead_lettered").alias("dead_lettered"),
        )
        .where("deliveries + failures + ended > 0")
        .transform(_named, window)
    )
    return counted.withColumns(
        {
            "retry_rate": f.try_divide("retries", "deliveries"),
            "dead_letter_rate": f.try_divide("dead_lettered", "ended"),
        }
    )


def attempts(events: DataFrame) -> DataFrame:
    """After how many deliveries messages ended: queue, attempts, acked, dead_lettered."""
    kind = f.col("kind")
    return (
        events.where(kind.isin("acked", "dead_lettered"))
        .groupBy("queue", f.col("attempt").alias("attempts"))
        .agg(_count(kind == "acked").alias("acked"), _count(kind == "dead_lettered").alias("dead_lettered"))
        .orderBy("queue", "attempts")
    )


def reasons(events: DataFrame, top: int | None = 100) -> DataFrame:
    """Why work failed: queue, kind, reason, messages; the `top` most frequent (None: all) of nacks, dead letters and
    deletions."""
    found = (
        events.where(f.col("kind").isin("nacked", "dead_lettered", "deleted") & f.col("reason").isNotNull())
        .groupBy("queue", "kind", "reason")
        .agg(f.count(f.lit(1)).alias("messages"))
        .orderBy(f.desc("messages"), "queue", "kind", "reason")
    )
    return found if top is None else found.limit(top)


def stuck(
    events: DataFrame, older_than: str = "1 hour", *, now: datetime | None = None, top: int | None = 100
) -> DataFrame:
    """Messages that nothing happened to for longer than `older_than`: queue, message_id, sequence, kind, attempt,
    reason, since, idle_ms; the longest first, at most `top` (None: all).

    That is, whose last event is not their end, nor their move to a dead-letter queue. now: the time to compare with;
    None: of the last event. kind: of their last event.
    """
    last = (
        events.groupBy("message_id")
        .agg(
            f.max_by(f.struct("kind", "queue", "target", "sequence", "attempt", "reason", "at"), "id").alias(
                "last"
            )
        )
        .select("message_id", "last.*")
    )
    end = events.agg(f.max("at").alias("now")) if now is None else None
    waiting = last.where(~f.col("kind").isin(*ENDED))
    timed = waiting.withColumn("now", f.lit(now)) if end is None else waiting.crossJoin(f.broadcast(end))
    found = (
        timed.where(f.col("at") < f.col("now") - f.expr(f"interval {interval(older_than)}"))
        .select(
            # A message that was requeued is in the queue that it went to.
            f.when(f.col("kind") == "requeued", f.coalesce("target", "queue"))
            .otherwise(f.col("queue"))
            .alias("queue"),
            "message_id",
            "sequence",
            "kind",
            "attempt",
            "reason",
            f.col("at").alias("since"),
            (f.unix_millis("now") - f.unix_millis("at")).alias("idle_ms"),
        )
        .orderBy("since", "message_id")
    )
    return found if top is None else found.limit(top)


def interval(text: str) -> str:
    """`text` if it is a number and a unit, such as "1 hour", as a part of an expression. Raises ValueError."""
    number, _, unit = text.strip().partition(" ")
    if not number.isdigit() or unit.rstrip("s") not in ("second", "minute", "hour", "day"):
        raise ValueError(f"{text!r} is no length of time such as '90 seconds', '1 hour' or '2 days'")
    return f"{number} {unit}"


def _moves(events: DataFrame) -> DataFrame:
    """The events with the queues that they change: a row for the queue of each event (own), and one more with the
    target of a move to another queue. change: of how many messages the queue holds."""
    kind = f.col("kind")
    moves = kind.isin("dead_lettered", "requeued")
    # A requeued message without a target stays in its queue.
    goes = moves & f.coalesce(f.col("target") != f.col("queue"), kind == "dead_lettered")
    change = (
        f.when(kind == "produced", 1)
        .when(goes | kind.isin("acked", "expired", "deleted", "cancelled"), -1)
        .otherwise(0)
        .alias("change")
    )
    own = f.struct(f.col("queue"), change, f.lit(True).alias("own"))
    other = f.struct(f.col("target").alias("queue"), f.lit(1).alias("change"), f.lit(False).alias("own"))
    both = f.when(goes & f.col("target").isNotNull(), f.array(own, other)).otherwise(f.array(own))
    return events.select("at", "kind", f.explode(both).alias("each")).select("at", "kind", "each.*")


def _count(condition: Column) -> Column:
    return f.count_if(condition)


def _keys(window: str | None) -> list[Column]:
    """What to group by; `_named` undoes the form that Spark gives a window."""
    if window is None:
        return [f.col("queue")]
    return [f.window("at", interval(window)).alias("window"), f.col("queue")]


def _names(window: str | None) -> list[str]:
    return ["queue"] if window is None else ["at", "queue"]


def _named(grouped: DataFrame, window: str | None) -> DataFrame:
    if window is None:
        return grouped
    rest = [name for name in grouped.columns if name != "window"]
    return grouped.select(f.col("window.start").alias("at"), *rest)
