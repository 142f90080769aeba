"""Runs of schedules: one message for each nominal time, whatever the clock does (operations/schedules.py)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Configure,
    DeleteSchedule,
    LeaseMessages,
    OpenConsumer,
    PauseSchedule,
    RunSchedule,
    SaveSchedule,
    SettleLease,
)
from forq_trio.model.consumers.types import Settling
from forq_trio.model.errors import QueueFull, ScheduleExists, ScheduleNotFound, TooManySchedules
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.schedules.types import NewSchedule, ScheduleTotals
from forq_trio.schedules.times import jitter_of
from forq_trio.storage.engine import Batch

from .engines import on_sql
from .scheduled import MINUTE_MS, at, results, save, tick, until
from .script import DAY_MS, HOUR_MS, T0, ack, claim, contents, do, receipts, receive, run, send


def test_a_run_sends_the_message_with_its_options(engine, reader):
    saved = save(
        engine, content="c", priority=7, attributes={"a": "b"}, group="g", ttl_ms=HOUR_MS, by="token"
    )
    assert (saved.name, saved.made_at, saved.made_by, saved.next_run, saved.last_run) == (
        "s",
        T0,
        "token",
        T0 + 10_000,
        None,
    )
    assert tick(engine, T0 + 9_999) == 0
    assert tick(engine, T0 + 10_000) == 1
    assert tick(engine, T0 + 10_000) == 0
    (message,) = reader.browse("q", None, 10)
    assert (message.content, message.priority, message.attributes, message.group, message.ttl_ms) == (
        "c",
        7,
        {"a": "b"},
        "g",
        HOUR_MS,
    )
    schedule, (last,) = reader.schedule("s", 5)
    assert schedule.next_run == T0 + 20_000
    assert schedule.last_run == last
    assert (last.nominal, last.result, last.at, last.late_ms, last.message_id, last.sequence) == (
        T0 + 10_000,
        "sent",
        T0 + 10_000,
        0,
        message.id,
        message.sequence,
    )


def test_the_next_batch_is_asked_for_when_a_run_is_due(engine):
    save(engine)
    result = run(engine, now=T0)
    assert result.next_due_ms == T0 + 10_000
    assert engine.snapshot().schedules == ScheduleTotals(1, {}, T0 + 10_000)
    assert until(engine, T0 + HOUR_MS) == 360


def test_a_waiting_receiver_gets_the_message_in_the_batch_of_the_run(engine):
    save(engine)
    result = run(engine, now=T0 + 10_000, parked={"q": [claim()]})
    assert contents(result.served["q"][0][1]) == ["s"]


def test_a_run_says_how_late_it_was(engine, reader):
    save(engine)
    tick(engine, T0 + 10_123)
    assert reader.schedule("s", 1)[1][0].late_ms == 123


def test_a_clock_that_is_set_back_runs_no_time_twice(engine):
    save(engine, cron="* * * * *", now=at(2026, 1, 1))
    begin, end = at(2026, 1, 1), at(2026, 1, 1, 0, 10)
    assert until(engine, end, begin) == 10
    assert until(engine, end, begin) == 0
    assert until(engine, end + 5 * MINUTE_MS, begin) == 5


def test_neither_a_pause_nor_another_timing_makes_a_time_run_twice_after_the_clock_was_set_back(engine):
    begin, end = at(2026, 1, 1), at(2026, 1, 1, 0, 10)
    save(engine, cron="* * * * *", now=begin)
    until(engine, end, begin)
    do(engine, PauseSchedule("s", True), now=begin)
    assert do(engine, PauseSchedule("s", False), now=begin).next_run == end + MINUTE_MS
    assert save(engine, cron="*/2 * * * *", now=begin).next_run == end + 2 * MINUTE_MS
    assert until(engine, end, begin) == 0


@pytest.mark.parametrize(
    ("month", "day", "zone", "runs"),
    [
        (3, 29, "Europe/Paris", [at(2026, 3, 28, 1, 30), at(2026, 3, 29, 1, 0), at(2026, 3, 30, 0, 30)]),
        (10, 25, "Europe/Paris", [at(2026, 10, 24, 0, 30), at(2026, 10, 25, 0, 30), at(2026, 10, 26, 1, 30)]),
    ],
)
@pytest.mark.parametrize("how", [{"cron": "30 2 * * *"}, {"daily": ("02:30",)}])
def test_a_change_of_the_clocks_makes_no_run_more_or_less(engine, reader, month, day, zone, runs, how):
    begin, end = at(2026, month, day - 1), at(2026, month, day + 2)
    save(engine, time_zone=zone, now=begin, **how)
    assert until(engine, end, begin) == 3
    assert results(reader) == [("sent", nominal, 1) for nominal in runs]


def test_jitter_shifts_the_send_and_not_the_nominal_time(engine, reader):
    saved = save(engine, every="1h", jitter="30m")
    jitter_ms = jitter_of("s", T0 + HOUR_MS, 30 * MINUTE_MS, HOUR_MS)
    assert 0 < jitter_ms <= 30 * MINUTE_MS
    assert saved.next_run == T0 + HOUR_MS
    assert tick(engine, T0 + HOUR_MS + jitter_ms - 1) == 0
    assert tick(engine, T0 + HOUR_MS + jitter_ms) == 1
    assert results(reader) == [("sent", T0 + HOUR_MS, 1)]
    assert reader.schedule("s", 1)[1][0].late_ms == 0


def test_a_run_is_skipped_while_the_message_of_the_last_one_is_in_the_queue(engine, reader):
    save(engine, while_pending="skip")
    assert tick(engine, T0 + 10_000) == 1
    assert tick(engine, T0 + 20_000) == 0
    (delivery,) = receive(engine, now=T0 + 20_000)
    assert tick(engine, T0 + 30_000) == 0
    assert ack(engine, *receipts([delivery]), now=T0 + 30_000)
    assert tick(engine, T0 + 40_000) == 1
    assert [result for result, _, _ in results(reader)] == ["sent", "skipped", "skipped", "sent"]
    skipped = reader.schedule("s", 2)[1][1]
    assert (skipped.message_id, skipped.sequence) == (delivery.id, delivery.sequence)


def test_a_run_is_skipped_while_a_pipeline_has_leased_the_message_of_the_last_one(engine, reader):
    save(engine, while_pending="skip")
    for now in (T0 + 1, T0 + 2):
        send(engine, now=now)
    assert tick(engine, T0 + 10_000) == 1
    do(engine, OpenConsumer("q", "k"), T0 + 11_000)
    do(engine, LeaseMessages("q", "k", 1, 1, 3, 10**6), T0 + 11_000)
    assert tick(engine, T0 + 20_000) == 0
    assert [result for result, _, _ in results(reader)] == ["sent", "skipped"]
    skipped = reader.schedule("s", 2)[1][1]
    assert skipped.sequence == 3
    do(engine, SettleLease("q", "k", 1, 1, Settling.ACKNOWLEDGE), T0 + 21_000)
    assert tick(engine, T0 + 30_000) == 1


def test_a_run_into_a_full_queue_is_refused_and_the_next_one_goes_on(engine, reader):
    do(engine, Configure("q", SettingsChange(max_messages=1)))
    save(engine)
    assert tick(engine, T0 + 10_000) == 1
    assert tick(engine, T0 + 20_000) == 0
    (delivery,) = receive(engine, now=T0 + 20_000)
    assert ack(engine, *receipts([delivery]), now=T0 + 20_000)
    assert tick(engine, T0 + 30_000) == 1
    assert [result for result, _, _ in results(reader)] == ["sent", "refused", "sent"]
    assert reader.schedule("s", 2)[1][1].reason == QueueFull().message


def test_a_run_into_a_full_queue_that_drops_its_oldest_message_is_sent(engine, reader):
    do(engine, Configure("q", SettingsChange(max_messages=1, overflow=Overflow.DROP_OLDEST)))
    save(engine)
    assert until(engine, T0 + 30_000) == 3
    assert [result for result, _, _ in results(reader)] == ["sent"] * 3
    assert len(reader.browse("q", None, 10)) == 1


def test_a_paused_schedule_misses_nothing(engine, reader):
    save(engine)
    paused = do(engine, PauseSchedule("s", True, "token"), now=T0 + 1)
    assert (paused.paused, paused.paused_at, paused.paused_by, paused.next_run) == (
        True,
        T0 + 1,
        "token",
        None,
    )
    assert do(engine, PauseSchedule("s", True, "other"), now=T0 + 2) == paused
    assert run(engine, now=T0 + HOUR_MS).next_due_ms is None
    resumed = do(engine, PauseSchedule("s", False), now=T0 + HOUR_MS)
    assert (resumed.paused, resumed.paused_at, resumed.next_run) == (False, None, T0 + HOUR_MS + 10_000)
    assert do(engine, PauseSchedule("s", False), now=T0 + HOUR_MS) == resumed
    assert results(reader) == []


def test_a_schedule_is_saved_paused_or_as_it_is(engine):
    assert save(engine, paused=True).paused
    assert save(engine).paused
    resumed = save(engine, paused=False)
    assert (resumed.paused, resumed.next_run) == (False, T0 + 10_000)
    assert not save(engine).paused


def test_a_run_by_hand_sends_at_once_and_leaves_the_next_run(engine, reader):
    save(engine, while_pending="skip")
    first = do(engine, RunSchedule("s"), now=T0 + 5_000)
    assert do(engine, RunSchedule("s"), now=T0 + 5_001).sequence > first.sequence
    assert results(reader) == [("by_hand", None, 1)] * 2
    assert tick(engine, T0 + 10_000) == 0
    assert results(reader)[-1] == ("skipped", T0 + 10_000, 1)
    do(engine, PauseSchedule("s", True))
    do(engine, RunSchedule("s"))
    assert len(reader.browse("q", None, 10)) == 3


def test_a_run_by_hand_is_refused_by_a_full_queue(engine, reader):
    do(engine, Configure("q", SettingsChange(max_messages=1)))
    save(engine)
    do(engine, RunSchedule("s"))
    assert isinstance(do(engine, RunSchedule("s")), QueueFull)
    assert results(reader) == [("by_hand", None, 1)]


def test_the_next_run_stays_where_the_timing_does(engine, reader):
    save(engine, every="1h")
    assert tick(engine, T0 + HOUR_MS) == 1
    again = save(engine, every="1h", content="new", queue="r", now=T0 + 90 * MINUTE_MS)
    assert (again.next_run, again.made_at, again.updated_at) == (T0 + 2 * HOUR_MS, T0, T0 + 90 * MINUTE_MS)
    assert again.last_run is not None
    assert tick(engine, T0 + 2 * HOUR_MS) == 1
    assert [message.content for message in reader.browse("r", None, 10)] == ["new"]


def test_a_due_run_is_not_lost_when_the_schedule_is_saved_again(engine):
    save(engine, every="1h")
    again = SaveSchedule("s", NewSchedule(queue="q", content="s", every="1h"))
    result = engine.execute_batch(Batch([again], T0 + HOUR_MS, moves_staged=False))
    engine.commit()
    assert tick(engine, result.next_due_ms) == 1


def test_another_timing_counts_from_now(engine, reader):
    save(engine, every="1h", now=at(2026, 5, 5, 6))
    changed = save(engine, daily=("08:00",), now=at(2026, 5, 5, 7, 30))
    assert changed.next_run == at(2026, 5, 5, 8)
    assert results(reader) == [("sent", at(2026, 5, 5, 7), 1)]


def test_runs_end_with_the_schedules_end_and_begin_with_its_start(engine, reader):
    save(engine, every="10s", start=T0 + 60_000, end=T0 + 80_000)
    assert until(engine, T0 + HOUR_MS) == 3
    assert [nominal for _, nominal, _ in results(reader)] == [T0 + 60_000, T0 + 70_000, T0 + 80_000]
    assert reader.schedule("s", 0)[0].next_run is None
    assert run(engine, now=T0 + 90_000).next_due_ms == min(
        message.expires_after for message in reader.browse("q", None, 10)
    )


def test_a_deleted_schedule_runs_no_more_and_its_messages_stay(engine, reader):
    save(engine)
    tick(engine, T0 + 10_000)
    assert do(engine, DeleteSchedule("s")) is True
    assert do(engine, DeleteSchedule("s")) is False
    assert tick(engine, T0 + HOUR_MS) == 0
    assert len(reader.browse("q", None, 10)) == 1
    assert reader.schedule("s", 5) is None
    assert engine.snapshot().schedules == ScheduleTotals()
    save(engine)
    assert results(reader) == []


def test_what_is_not_there_is_not_found(engine, reader):
    for command in (PauseSchedule("s", True), RunSchedule("s")):
        assert isinstance(do(engine, command), ScheduleNotFound)
    assert reader.schedule("s", 5) is None


def test_a_name_that_is_taken_is_refused_where_only_a_new_one_is_wanted(engine):
    save(engine, only_new=True)
    assert isinstance(save(engine, only_new=True), ScheduleExists)


def test_there_are_so_many_schedules_and_a_token_makes_a_share(engine, monkeypatch):
    monkeypatch.setattr(limits, "SCHEDULES_MAX", 4)
    monkeypatch.setattr(limits, "SCHEDULES_A_TOKEN_MAX", 2)
    save(engine, "a", by="t")
    save(engine, "b", by="t")
    assert engine.snapshot().schedules.made == {"t": 2}
    assert isinstance(save(engine, "c", by="t"), TooManySchedules)
    assert save(engine, "b", by="t").name == "b"
    save(engine, "c", by="u")
    save(engine, "d")
    assert isinstance(save(engine, "e"), TooManySchedules)
    assert do(engine, DeleteSchedule("a"))
    assert engine.snapshot().schedules.made == {"t": 1, "u": 1}
    assert save(engine, "e", by="t").made_by == "t"


def test_the_latest_runs_are_kept(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_KEPT_MAX", 3)
    save(engine)
    until(engine, T0 + 100_000)
    assert [nominal for _, nominal, _ in results(reader)] == [T0 + 80_000, T0 + 90_000, T0 + 100_000]
    assert len(reader.schedule("s", 2)[1]) == 2


@on_sql
def test_a_batch_carries_out_some_runs_and_the_next_one_the_others(engine, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 3)
    for name in "abcdefgh":
        save(engine, name)
    now = T0 + 10_000
    sent, due = [], now
    while due == now:
        result = run(engine, now=now)
        sent.append(sum(event.count for event in result.events))
        due = result.next_due_ms
    assert sent == [3, 3, 2]
    assert due == now + 10_000


@on_sql
def test_bytes_bound_the_runs_of_a_batch(engine, monkeypatch):
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 5)
    for name in "abc":
        save(engine, name, content="xxxx")
    assert [tick(engine, T0 + 10_000) for _ in range(3)] == [2, 1, 0]


def test_no_run_is_carried_out_while_nothing_can_be_stored(engine):
    save(engine)
    result = engine.execute_batch(Batch([], T0 + 10_000, moves_staged=False))
    engine.commit()
    assert result.events == []
    assert result.next_due_ms == T0 + 10_000 + limits.DUE_RETRY_MS
    assert tick(engine, T0 + 11_000) == 1


def test_a_batch_says_what_became_of_its_runs(engine):
    save(engine, every="1h")
    result = run(engine, now=T0 + 3 * HOUR_MS)
    assert [(each.result, each.runs, each.late_ms) for each in result.own_work] == [
        ("missed", 2, HOUR_MS),
        ("sent", 1, 0),
    ]
    assert not run(engine, now=T0 + 3 * HOUR_MS).own_work


def test_schedules_are_listed_by_name_in_pages(engine, reader, monkeypatch):
    for name in ("b", "a", "c", "B"):
        save(engine, name, content="xx")
    tick(engine, T0 + 10_000)
    first = reader.schedules("", 3)
    assert ([each.name for each in first.schedules], first.next) == (["B", "a", "b"], "b")
    assert all(each.last_run is not None and each.last_run.result == "sent" for each in first.schedules)
    rest = reader.schedules("b", 3)
    assert ([each.name for each in rest.schedules], rest.next) == (["c"], None)
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 4)
    assert ([each.name for each in reader.schedules("", 9).schedules]) == ["B", "a"]


def test_a_month_of_a_daily_report_is_a_message_a_day(engine, reader):
    begin = at(2026, 3, 15)
    save(engine, daily=("08:00",), time_zone="Europe/Paris", now=begin)
    assert until(engine, begin + 30 * DAY_MS, begin) == 30


@on_sql
def test_one_token_with_many_schedules_due_lets_those_of_others_run(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 4)
    for n in range(30):
        save(engine, f"a{n}", by="many", every="1s")
    for name, by in (("x", "few"), ("y", "other"), ("z", None)):
        save(engine, name, by=by, every="1s")
    for second in range(1, 21):
        for _ in range(3):  # 12 runs of 33 that are due
            tick(engine, T0 + second * 1_000)
    for name in "xyz":
        runs = reader.schedule(name, 100)[1]
        assert len(runs) >= 18
        assert max(run.late_ms for run in runs) <= 1_000
    assert len(reader.schedule("a0", 100)[1]) < 18


@on_sql
@pytest.mark.parametrize(
    ("options", "queue"),
    [
        ({"while_pending": "skip"}, SettingsChange()),
        ({}, SettingsChange(max_messages=1)),
        ({"missed": "skip"}, SettingsChange()),
    ],
    ids=["skipped", "refused", "missed"],
)
def test_bytes_bound_the_runs_that_send_nothing_too(engine, monkeypatch, options, queue):
    names = [f"s{n}" for n in range(5)]
    for name in names:
        save(engine, name, queue=name, content="xxxx", every="1h", **options)
        do(engine, Configure(name, queue))
        do(engine, RunSchedule(name))
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 5)
    late_ms = MINUTE_MS if "missed" in options else 0
    assert [len(run(engine, now=T0 + HOUR_MS + late_ms).own_work) for _ in range(3)] == [2, 2, 1]
