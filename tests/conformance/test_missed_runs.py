"""Runs of schedules that were missed: how many of them are sent, and how the others are counted."""

import pytest

from forq_trio.model import limits

from .engines import on_sql
from .scheduled import MINUTE_MS, results, save, tick, until
from .script import HOUR_MS, T0


@pytest.mark.parametrize("late_ms", [0, limits.RUN_GRACE_MS - 1])
@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_every_run_that_is_late_by_less_than_a_minute_is_sent(engine, reader, missed, late_ms):
    save(engine, missed=missed)
    assert tick(engine, T0 + 10_000 + late_ms) == 1 + late_ms // 10_000
    assert {result for result, _, _ in results(reader)} == {"sent"}


def test_of_missed_runs_none_is_sent(engine, reader):
    save(engine, every="1h", missed="skip")
    assert tick(engine, T0 + 5 * HOUR_MS + limits.RUN_GRACE_MS) == 0
    assert results(reader) == [("missed", T0 + 5 * HOUR_MS, 5)]
    assert reader.schedule("s", 0)[0].next_run == T0 + 6 * HOUR_MS
    assert until(engine, T0 + 7 * HOUR_MS, T0 + 5 * HOUR_MS + limits.RUN_GRACE_MS) == 2


def test_of_missed_runs_the_last_is_sent(engine, reader):
    save(engine, every="1h")
    assert tick(engine, T0 + 5 * HOUR_MS + 30 * MINUTE_MS) == 1
    assert results(reader) == [("missed", T0 + 4 * HOUR_MS, 4), ("sent", T0 + 5 * HOUR_MS, 1)]
    missed, sent = reader.schedule("s", 5)[1][::-1]
    assert (missed.reason, missed.message_id) == ("more than 1 min late", None)
    assert sent.late_ms == 30 * MINUTE_MS
    assert reader.schedule("s", 0)[0].next_run == T0 + 6 * HOUR_MS


def test_one_missed_run_alone_is_sent_by_last(engine, reader):
    save(engine, every="1h")
    assert tick(engine, T0 + HOUR_MS + limits.RUN_GRACE_MS) == 1
    assert results(reader) == [("sent", T0 + HOUR_MS, 1)]


def test_missed_runs_are_not_sent_where_a_later_one_is_due(engine, reader):
    save(engine, every="10s")
    now = T0 + HOUR_MS
    assert until(engine, now, now) == 6
    first = now - limits.RUN_GRACE_MS + 10_000
    assert results(reader)[:2] == [("missed", first - 10_000, 354), ("sent", first, 1)]
    assert results(reader)[-1] == ("sent", now, 1)


@pytest.mark.parametrize(
    ("timing", "count", "part"),
    [({"every": "1h"}, n, "") for n in (500, 20_000)]
    + [({"cron": "0 * * * *"}, n, "") for n in (99, 100, 101, 500, 4_001)]
    + [({"cron": "0 * * * *"}, 5_000, "; more than so many, the rest was not counted")],
)
def test_missed_runs_are_counted_or_said_to_be_more(engine, reader, monkeypatch, timing, count, part):
    monkeypatch.setattr(limits, "RUNS_COUNTED_MS_MAX", 4_000 * HOUR_MS)
    saved = save(engine, missed="skip", **timing)
    last = saved.next_run + (count - 1) * HOUR_MS
    assert tick(engine, last + MINUTE_MS) == 0
    (run,) = reader.schedule("s", 50)[1]
    assert (run.result, run.nominal, run.runs) == ("missed", last, 4_000 if part else count)
    assert run.reason == f"more than 1 min late{part}"


def test_each_missed_run_is_sent(engine, reader):
    save(engine, every="1h", missed="all")
    now = T0 + 5 * HOUR_MS + 30 * MINUTE_MS
    assert until(engine, now, now) == 5
    assert results(reader) == [("sent", T0 + n * HOUR_MS, 1) for n in range(1, 6)]


def test_of_very_many_missed_runs_the_last_ones_are_sent(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_CAUGHT_UP_MAX", 7)
    save(engine, every="1h", missed="all")
    now = T0 + 20 * HOUR_MS + 30 * MINUTE_MS
    assert until(engine, now, now) == 7
    assert results(reader) == [
        *(("sent", T0 + n * HOUR_MS, 1) for n in range(14, 21)),
        ("missed", T0 + 13 * HOUR_MS, 13),
    ]


@on_sql
def test_runs_that_are_missed_while_others_are_caught_up_are_caught_up_too(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 1)
    save(engine, every="1h", missed="all")
    assert tick(engine, T0 + 3 * HOUR_MS + 30 * MINUTE_MS) == 1
    now = T0 + 6 * HOUR_MS + 30 * MINUTE_MS
    assert until(engine, now, now) == 5
    assert results(reader) == [("sent", T0 + n * HOUR_MS, 1) for n in range(1, 7)]
