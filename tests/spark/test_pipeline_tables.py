"""The tables over lifecycle events, on events whose every number can be counted by hand."""

import re

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from pyspark_forq.pipelines.report import facts, queue_facts, tables
from pyspark_forq.pipelines.report.look import Verdict, verdict
from pyspark_forq.pipelines.report.page import render
from spark.event_frames import SCHEMA, at, event

# A message that is acked at once, one that fails twice and becomes a dead letter, which is redriven, and an ack of a
# message that was sent before the first event, by a clock that was set back.
EVENTS = [
    event(1, 0, "produced"),
    event(2, 1, "delivered", attempt=1, ms=1000),
    event(3, 2, "acked", attempt=1, ms=-5),
    event(4, 60, "produced", message="m2", received=60),
    event(5, 61, "delivered", message="m2", attempt=1, ms=4),
    event(6, 62, "nacked", message="m2", attempt=1, reason="busy", ms=900),
    event(7, 63, "delivered", message="m2", attempt=2, ms=8),
    event(8, 125, "dead_lettered", message="m2", attempt=2, reason="failed", target="q-dlq"),
    event(9, 130, "requeued", "q-dlq", "m2", target="q"),
    event(10, 90, "acked", "old", "m9", attempt=3, received=200, ms=70),
]


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame(EVENTS, SCHEMA).persist()


def counted(frame, *columns: str) -> list[tuple]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def minute(number: int):
    return at(60 * number).replace(tzinfo=None)


def test_throughput_counts_moves_in_both_queues(events) -> None:
    found = counted(
        tables.throughput(events), "queue", "at", "entered", "left", "acked", "dead_lettered", "requeued"
    )
    assert found == [
        ("old", minute(1), 0, 1, 1, 0, 0),
        ("q", minute(0), 1, 1, 1, 0, 0),
        ("q", minute(1), 1, 0, 0, 0, 0),
        ("q", minute(2), 1, 1, 0, 1, 0),
        ("q-dlq", minute(2), 1, 1, 0, 0, 1),
    ]
    assert counted(tables.throughput(events, None), "queue", "entered", "left") == [
        ("old", 0, 1),
        ("q", 3, 2),
        ("q-dlq", 1, 1),
    ]


def test_a_backlog_starts_with_what_is_told_or_with_the_least_that_can_be(events) -> None:
    found = counted(tables.backlog(events), "queue", "at", "backlog")
    assert found == [
        ("old", minute(1), 0),
        ("q", minute(0), 0),
        ("q", minute(1), 1),
        ("q", minute(2), 1),
        ("q-dlq", minute(2), 0),
    ]
    told = tables.backlog(events, start={"q": 10, "old": 3})
    assert counted(told.where("queue in ('q', 'old')"), "queue", "at", "backlog") == [
        ("old", minute(1), 2),
        ("q", minute(0), 10),
        ("q", minute(1), 11),
        ("q", minute(2), 11),
    ]


def test_latencies_below_zero_count_as_zero_and_are_counted(events) -> None:
    found = counted(
        tables.latencies(events, None), "queue", "measure", "messages", "negative", "p50", "p99", "longest"
    )
    assert found == [
        ("old", "end_to_end", 1, 1, 0, 0, 0),
        ("old", "handling", 1, 0, 70, 70, 70),
        ("q", "end_to_end", 1, 0, 2000, 2000, 2000),
        ("q", "handling", 1, 1, 0, 0, 0),
        ("q", "wait", 3, 0, 8, 1000, 1000),
    ]


def test_percentiles_are_as_near_as_they_say(spark) -> None:
    rows = [event(n, 0, "acked", ms=n) for n in range(1, 20_001)]
    frame = spark.createDataFrame(rows, SCHEMA, verifySchema=False)  # to check 20,000 rows takes a second
    row = tables.latencies(frame, None).where("measure = 'handling'").head()
    for share, name in zip(tables.PERCENTILES, ("p50", "p95", "p99"), strict=True):
        assert abs(row[name] / 20_000 - share) <= 1 / tables.ACCURACY


def test_rates_and_attempts(events) -> None:
    columns = (
        "queue",
        "deliveries",
        "retries",
        "failures",
        "ended",
        "dead_lettered",
        "retry_rate",
        "dead_letter_rate",
    )
    assert counted(tables.rates(events, None), *columns) == [
        ("old", 0, 0, 0, 1, 0, None, 0.0),
        ("q", 3, 1, 1, 2, 1, 1 / 3, 0.5),
    ]
    assert counted(tables.attempts(events), "queue", "attempts", "acked", "dead_lettered") == [
        ("old", 3, 1, 0),
        ("q", 1, 1, 0),
        ("q", 2, 0, 1),
    ]
    assert counted(tables.reasons(events), "queue", "kind", "reason", "messages") == [
        ("q", "dead_lettered", "failed", 1),
        ("q", "nacked", "busy", 1),
    ]


def test_stuck_is_whose_last_event_by_its_id_is_old(spark, events) -> None:
    late = spark.createDataFrame([*EVENTS, event(11, 4000, "acked", message="m3")], SCHEMA)
    (row,) = tables.stuck(late).collect()
    assert (row["message_id"], row["queue"], row["kind"], row["idle_ms"]) == (
        "m2",
        "q",
        "requeued",
        3_870_000,
    )
    assert tables.stuck(late, "2 hours").collect() == []
    assert tables.stuck(events, "1 minute", now=at(86_400)).count() == 1
    # A clock that was set back does not bring a message back: its last event has the highest id.
    ended = spark.createDataFrame([*EVENTS, event(11, -500, "acked", message="m2")], SCHEMA)
    assert tables.stuck(ended, "1 minute", now=at(86_400)).collect() == []
    with pytest.raises(ValueError, match="no length of time"):
        tables.stuck(late, "1 hour' day")


@pytest.mark.tier2
def test_the_page_is_bounded_and_shows_all_others_as_one(spark) -> None:
    rows = [
        event(n + 1, n * 700, "produced", f"queue-{n % 30:02}", f"m{n}", received=n * 700) for n in range(300)
    ]
    rows += [
        event(1000 + n, 211_000, "delivered", f"queue-{n:02}", f"m{n}", attempt=1, ms=5) for n in range(3)
    ]
    found = facts.gather(spark.createDataFrame(rows, SCHEMA), top=5)
    assert (found.queue_count, len(found.queues), found.queues[-1].queues) == (30, 6, 25)
    assert sum(queue.counts["produced"] for queue in found.queues) == 300
    assert found.whole.backlog_end == 300
    for queue in found.queues:
        assert all(len(series.values) <= facts.STEPS_MAX for series in queue.series.values())
    html = render(found, made_at_ms=0, source="a test")
    assert "25 other queues" in html
    assert "The 5 busiest queues need no attention" in html


@pytest.mark.tier2
def test_nothing_makes_a_page(spark) -> None:
    empty = render(facts.gather(spark.createDataFrame([], SCHEMA)), made_at_ms=0, source="<nothing>")
    assert "Nothing happened" in empty
    assert "&lt;nothing&gt;" in empty


def test_what_is_hostile_makes_a_page(spark) -> None:
    evil = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"
    rows = [
        event(1, 0, "produced", evil, evil),
        event(2, 1, "delivered", evil, evil, attempt=1, ms=1),
        event(3, 2, "nacked", evil, evil, attempt=1, reason=evil * 1000, ms=1),
        event(4, 8000, "produced", "q"),
    ]
    html = render(facts.gather(spark.createDataFrame(rows, SCHEMA)), made_at_ms=0, source=evil)
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "{{ 7 * 7 }}" in html
    assert len(html) < 200_000


@pytest.mark.tier2
def test_the_page_of_a_queue_has_its_own_numbers(spark) -> None:
    rows = [event(100 + n, n, "delivered", "p", f"p{n}", attempt=1, ms=n) for n in range(15)]
    rows += [event(200 + n, 20, "nacked", "p", "p0", attempt=1, reason=f"why {n % 25}") for n in range(30)]
    frame = spark.createDataFrame([*EVENTS, *rows, event(300, 8000, "produced", "p")], SCHEMA)
    found = facts.gather(frame)
    queue_facts.add(found, frame)
    of = {queue.name: queue for queue in found.queues}
    q, p = of["q"], of["p"]
    assert [(row["kind"], row["reason"], row["messages"]) for row in q.reasons] == [
        ("dead_lettered", "failed", 1),
        ("nacked", "busy", 1),
    ]
    assert [(row["message_id"], row["duration_ms"]) for row in q.waits] == [
        ("m1", 1000),
        ("m2", 8),
        ("m2", 4),
    ]
    assert q.attempts == [("1", 1, 0), ("2", 0, 1)]
    assert [(row["message_id"], row["kind"]) for row in q.idle] == [("m2", "requeued")]
    step_minutes = found.step_ms / 60_000
    assert sum(value or 0 for value in q.series["failures"].values) * step_minutes == 1
    assert sum(value or 0 for value in q.series["dead_lettered"].values) * step_minutes == 1
    assert [row["duration_ms"] for row in p.waits] == list(range(14, 4, -1))
    assert len(p.reasons) == facts.REASONS_SHOWN
    assert p.reasons[0]["messages"] == 2
    assert len(p.idle) == 15
    assert p.latency["wait"].longest == 14


@pytest.mark.tier2
def test_messages_that_nobody_has_received_make_a_page(spark) -> None:
    found = facts.gather(spark.createDataFrame([event(1, 0, "produced")], SCHEMA))
    assert "The queue needs no attention" in render(found, made_at_ms=0, source="a test")


@pytest.mark.tier2
def test_a_queue_that_merely_waits_needs_no_attention(spark) -> None:
    rows = [event(n + 1, n, "produced", "waits", f"w{n}", received=n) for n in range(40)]
    rows += [
        event(100, 1, "delivered", "works", "s1", attempt=1, ms=5),
        event(101, 2, "nacked", "works", "s1", attempt=1, reason="busy", ms=5),
        event(102, 8000, "produced", "works", "s2", received=8000),
    ]
    found = facts.gather(spark.createDataFrame(rows, SCHEMA))
    verdicts = {queue.name: verdict(queue) for queue in found.queues}
    assert verdicts["waits"] == Verdict("wait", "40 waiting, up to 2 h 13 min")
    assert verdicts["works"] == Verdict("warn", "1 stuck, up to 2 h 13 min")
    assert [row["message_id"] for row in found.stuck] == ["s1"]
    html = render(found, made_at_ms=0, source="a test")
    assert "1 of 2 queues needs attention" in html
    assert "40 messages have waited for a consumer for more than 1 hour." in html


@pytest.mark.tier2
@pytest.mark.parametrize(("seconds", "barred"), [(0.2, True), (600, True), (3600, False)])
def test_a_short_run_is_drawn_as_bars(spark, seconds, barred) -> None:
    rows = [event(1, 0, "produced"), event(2, seconds, "acked", attempt=1, ms=5)]
    html = render(facts.gather(spark.createDataFrame(rows, SCHEMA)), made_at_ms=0, source="a test")
    assert ('class="ba ln-a" d="M' in html) == barred
    assert (
        re.search(r'class="ln [^"]*" d="M[^"L]*h0"', html) is None
    ) == barred  # a line of one value is a dot
