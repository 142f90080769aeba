"""Missed runs of schedules that are too many to be sent: where the note of them stands, and what it says."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import RunSchedule

from .engines import on_sql
from .script import HOUR_MS, T0, do
from .test_schedules import MINUTE_MS, results, save, tick, until


def test_what_was_dropped_of_very_many_missed_runs_is_the_last_note_when_the_others_are_sent(engine, reader):
    save(engine, every="1h", missed="all")
    now = T0 + 1_200 * HOUR_MS + 30 * MINUTE_MS
    sent, noted = tick(engine, now), []
    assert sent
    while (schedule := reader.schedule("s", 0)[0]).next_run <= now:
        noted.append(schedule.last_run)
        sent += tick(engine, now)
    noted.append(schedule.last_run)
    last = noted[-1]
    assert (last.result, last.nominal, last.runs) == ("missed", T0 + 200 * HOUR_MS, 200)
    assert last.reason == "more than 1 min late; 200 of 1,200 missed runs were dropped"
    assert set(noted) == {last}
    assert results(reader) == [
        *(("sent", T0 + n * HOUR_MS, 1) for n in range(1_102, 1_201)),
        ("missed", T0 + 200 * HOUR_MS, 200),
    ]
    assert sent == 1_000
    later = now + HOUR_MS
    assert until(engine, later, later) == 1
    assert results(reader, count=2) == [
        ("missed", T0 + 200 * HOUR_MS, 200),
        ("sent", T0 + 1_201 * HOUR_MS, 1),
    ]


@pytest.mark.parametrize(
    ("counted_hours", "count", "of_all"), [(201, 201, " of 208"), (200, 201, " of 208"), (199, 199, "")]
)
def test_of_dropped_runs_of_a_cron_expression_the_number_is_said(
    engine, reader, monkeypatch, counted_hours, count, of_all
):
    monkeypatch.setattr(limits, "RUNS_CAUGHT_UP_MAX", 7)
    monkeypatch.setattr(limits, "RUNS_COUNTED_MS_MAX", counted_hours * HOUR_MS)
    saved = save(engine, cron="0 * * * *", missed="all")
    now = saved.next_run + 207 * HOUR_MS + 30 * MINUTE_MS
    assert until(engine, now, now) == 7
    last = reader.schedule("s", 0)[0].last_run
    assert (last.result, last.runs) == ("missed", count)
    part = "" if of_all else "; more than so many, the rest was not counted"
    assert last.reason == f"more than 1 min late; {count}{of_all} missed runs were dropped{part}"


@on_sql
def test_a_run_by_hand_does_not_push_out_the_note_of_dropped_runs(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_CAUGHT_UP_MAX", 3)
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 1)
    save(engine, every="1h", missed="all")
    now = T0 + 5 * HOUR_MS + 30 * MINUTE_MS
    tick(engine, now)
    do(engine, RunSchedule("s"), now=now)
    until(engine, now, now)
    assert [result for result, _, _ in results(reader)] == ["sent", "sent", "by_hand", "sent", "missed"]
    do(engine, RunSchedule("s"), now=now)
    assert [result for result, _, _ in results(reader)][-2:] == ["missed", "by_hand"]


def test_what_was_dropped_twice_is_noted_twice(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_CAUGHT_UP_MAX", 2)
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 1)
    save(engine, every="1h", missed="all")
    tick(engine, T0 + 5 * HOUR_MS + 30 * MINUTE_MS)
    now = T0 + 9 * HOUR_MS + 30 * MINUTE_MS
    until(engine, now, now)
    assert results(reader) == [
        ("sent", T0 + 4 * HOUR_MS, 1),
        ("sent", T0 + 5 * HOUR_MS, 1),
        ("missed", T0 + 3 * HOUR_MS, 3),
        ("sent", T0 + 8 * HOUR_MS, 1),
        ("sent", T0 + 9 * HOUR_MS, 1),
        ("missed", T0 + 7 * HOUR_MS, 2),
    ]
