"""Lifecycle events (relational/parts/events.py): what each change is told as, reading, and retention."""

import json
from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Cancel,
    Configure,
    Delete,
    Extend,
    Nack,
    Produce,
    ProduceMany,
    Purge,
    Redrive,
    Release,
    Removed,
    Sweep,
    SweepKind,
    TrimEvents,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from support.batches import read_events

from .engines import on_sql
from .script import DAY_MS, T0, do, receipts, receive, run, send

ON = EngineSettings(events=True, attempts_max=2)
MEMBERS = ["id", "at", "kind", "queue", "messageId", "sequence", "attempt", "reason", "target"]
MEMBERS += ["receivedAt", "durationMs", "bytes"]


@pytest.fixture
def engine(make_engine):
    return make_engine(ON)


def told(reader, *members: str) -> list[tuple]:
    return [tuple(event[name] for name in ("kind", *members)) for event in read_events(reader)]


def test_an_event_has_these_members_and_no_content(engine, reader) -> None:
    first = send(engine, "größe", attributes={"k": "v"}, now=T0)
    (event,) = read_events(reader)
    assert list(event) == MEMBERS
    assert event == {
        "id": 1,
        "at": T0,
        "kind": "produced",
        "queue": "q",
        "messageId": first.id,
        "sequence": first.sequence,
        "attempt": 0,
        "reason": None,
        "target": None,
        "receivedAt": T0,
        "durationMs": None,
        "bytes": 9,
    }


def test_a_life_is_told_with_its_durations(engine, reader) -> None:
    send(engine, "x", delay_ms=100)
    deliveries = receive(engine, now=T0 + 150)
    do(engine, Extend("q", receipts(deliveries), 5_000), T0 + 160)
    do(engine, Nack("q", receipts(deliveries), 10, "no luck"), T0 + 170)
    deliveries = receive(engine, now=T0 + 190)
    do(engine, Release("q", receipts(deliveries)), T0 + 195)
    deliveries = receive(engine, now=T0 + 200)
    do(engine, Ack("q", receipts(deliveries)), T0 + 230)
    assert told(reader, "attempt", "reason", "durationMs") == [
        ("produced", 0, None, None),
        ("delivered", 1, None, 50),
        ("extended", 1, None, None),
        ("nacked", 1, "no luck", 20),
        ("delivered", 2, None, 10),
        ("released", 2, None, 5),
        ("delivered", 2, None, 5),
        ("acked", 2, None, 30),
    ]


def test_a_lease_that_ends_is_told_from_one_that_its_consumer_ends(engine, reader) -> None:
    send(engine, "x")
    deliveries = receive(engine, lease_ms=100)
    do(engine, Extend("q", receipts(deliveries), 0), T0 + 40)
    receive(engine, lease_ms=100, now=T0 + 50)
    run(engine, now=T0 + 150)
    assert told(reader, "reason", "durationMs")[2::2] == [
        ("lease_expired", "ended_by_consumer", 40),
        ("lease_expired", None, 100),
    ]


def test_a_lease_that_is_taken_up_and_ended_in_one_batch_lasted_no_time(engine, reader) -> None:
    send(engine, "x")
    current = receipts(receive(engine, lease_ms=100))
    run(engine, now=T0 + 100)
    run(engine, Extend("q", current, 50), Extend("q", current, 0), Extend("q", current, 0), now=T0 + 110)
    assert told(reader, "durationMs")[2:] == [
        ("lease_expired", 100),
        ("extended", None),
        ("lease_expired", 0),
        ("lease_expired", None),
    ]


def test_moves_say_where_to(engine, reader) -> None:
    sent = send(engine, "x")
    for n in range(2):
        do(engine, Nack("q", receipts(receive(engine, now=T0 + n)), 0), T0 + n)
    do(engine, Sweep(SweepKind.FAILED), T0 + 5)
    do(engine, Redrive("q-dlq", (sent.id,)), T0 + 6)
    assert told(reader, "queue", "reason", "target")[-2:] == [
        ("dead_lettered", "q", "failed", "q-dlq"),
        ("requeued", "q-dlq", None, "q"),
    ]


def test_what_goes_says_why(engine, reader) -> None:
    do(
        engine,
        Configure("q", SettingsChange(dead_letter_queue="", max_messages=2, overflow=Overflow.DROP_OLDEST)),
    )
    for _ in range(3):
        send(engine, "x")
    sent = send(engine, "x", queue="other")
    do(engine, Delete("other", (sent.id,)))
    do(engine, Purge("q"))
    do(engine, Cancel("other", send(engine, "x", queue="other").id))
    send(engine, "x", ttl_ms=1)
    run(engine, now=T0 + 1)
    gone = [event for event in told(reader, "queue", "reason") if event[0] not in ("produced", "delivered")]
    assert gone == [
        ("deleted", "q", "overflow"),
        ("deleted", "other", "deleted_by_user"),
        ("deleted", "q", "deleted_by_user"),
        ("deleted", "q", "deleted_by_user"),
        ("cancelled", "other", None),
        ("expired", "q", None),
    ]


def test_durations_are_told_as_they_are_when_the_clock_is_set_back(engine, reader) -> None:
    send(engine, "x", now=T0)
    deliveries = receive(engine, now=T0 - 1_000)
    do(engine, Ack("q", receipts(deliveries)), T0 - 3_000)
    assert told(reader, "durationMs") == [("produced", None), ("delivered", -1_000), ("acked", -2_000)]


def test_a_command_that_fails_has_no_event_and_uses_no_id(engine, reader) -> None:
    do(engine, Configure("q", SettingsChange(max_bytes=1)))
    result = run(engine, Produce("q", NewMessage("too long")), Produce("q", NewMessage("x")))
    assert isinstance(result.outcomes[0], Exception)
    assert told(reader, "id") == [("produced", 1)]


def test_without_the_setting_there_are_none(make_engine) -> None:
    engine = make_engine(EngineSettings())
    with closing(engine.open_reader()) as reader:
        send(engine, "x")
        assert reader.log_lines("events", 0, None, 10, None) == (b"", 0, 1, 0)
        assert engine.snapshot().logs["events"] == (False, 1, 0, 0, 0)


def test_pages_go_on_where_the_last_one_ended(engine, reader) -> None:
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(2_500))))
    seen: list[int] = []
    after = 0
    for _ in range(3):
        page = reader.log_lines("events", after, None, 1_000, None)
        seen += [json.loads(line)["id"] for line in page.lines.splitlines()]
        assert (page.next, page.first, page.last) == (seen[-1], 1, 2_500)
        after = page.next
    assert seen == list(range(1, 2_501))
    assert reader.log_lines("events", 2_500, None, 10, None) == (b"", 2_500, 1, 2_500)
    assert reader.log_lines("events", 9_000, None, 10, None) == (b"", 9_000, 1, 2_500)
    assert len(reader.log_lines("events", 0, 7, 10, None).lines.splitlines()) == 7
    assert reader.log_lines("events", 7, 3, 10, None) == (b"", 7, 1, 2_500)


def test_a_page_of_one_queue_passes_the_others_by(engine, reader, monkeypatch) -> None:
    monkeypatch.setattr(limits, "EVENTS_SCAN_MAX", 100)
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(150))))
    send(engine, "x", queue="rare")
    page = reader.log_lines("events", 0, None, 10, "rare")
    assert (page.lines, page.next) == (b"", 100)
    page = reader.log_lines("events", page.next, None, 10, "rare")
    assert (json.loads(page.lines)["id"], page.next) == (151, 151)
    assert reader.log_lines("events", 0, None, 10, "q").next == 10


def test_a_page_is_bounded_in_bytes_but_has_one_event(engine, reader, monkeypatch) -> None:
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(10))))
    line = len(reader.log_lines("events", 0, 1, 10, None).lines)
    for size, lines in ((1, 1), (2 * line, 2), (3 * line - 1, 2), (3 * line + 5, 3)):
        monkeypatch.setattr(limits, "EVENT_LINES_BYTES_MAX", size)
        page = reader.log_lines("events", 4, None, 10, None)
        assert (page.lines.count(b"\n"), page.next) == (lines, 4 + lines)


def test_a_timeline_is_that_of_one_message_also_when_it_has_gone(engine, reader, monkeypatch) -> None:
    sent, _ = send(engine, "x"), send(engine, "y")
    do(engine, Ack("q", receipts(receive(engine, 2))))
    kinds = [json.loads(line)["kind"] for line in reader.message_events("q", sent.id).splitlines()]
    assert kinds == ["produced", "delivered", "acked"]
    assert reader.message_events("other", sent.id) == b""
    monkeypatch.setattr(limits, "MESSAGE_EVENTS_MAX", 2)
    assert b"produced" not in reader.message_events("q", sent.id)
    assert reader.message_events("q", sent.id).count(b"\n") == 2


def kept(engine, reader) -> list[int]:
    """The ids that are kept, and told to be."""
    ids = [event["id"] for event in read_events(reader)]
    log = engine.snapshot().logs["events"]
    assert ids == list(range(log.first, log.last + 1))
    return ids


def test_dates_of_a_clock_that_was_far_ahead_do_not_keep_others(engine, reader) -> None:
    for at in (T0 + 365 * DAY_MS, T0, T0 + 2 * DAY_MS):
        send(engine, "x", now=at)
    now = T0 + 2 * DAY_MS
    assert do(engine, TrimEvents(now - DAY_MS, 10**9), now) == Removed(2, more=False)
    send(engine, "x", now=now + DAY_MS // 2)
    assert do(engine, TrimEvents(now - DAY_MS, 10**9), now) == Removed(0, more=False)
    assert kept(engine, reader) == [3, 4, 5]


def test_old_events_are_removed_but_not_the_newest(engine, reader) -> None:
    for n in range(5):
        send(engine, "x", now=T0 + n)
    assert do(engine, TrimEvents(T0 + 2, 10**9), T0 + 5) == Removed(2, more=False)
    assert kept(engine, reader) == [3, 4, 5]
    assert do(engine, TrimEvents(T0 + 99, 10**9), T0 + 5) == Removed(2, more=False)
    assert do(engine, TrimEvents(T0 + 99, 0), T0 + 5) == Removed(0, more=False)
    assert kept(engine, reader) == [5]
    send(engine, "x")
    assert kept(engine, reader) == [5, 6]


def test_the_oldest_are_removed_until_the_rest_is_small_enough(engine, reader) -> None:
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(10))))
    each = engine.snapshot().logs["events"].bytes // 10
    assert do(engine, TrimEvents(0, 4 * each)) == Removed(6, more=False)
    assert kept(engine, reader) == [7, 8, 9, 10]
    assert engine.snapshot().logs["events"].bytes == 4 * each


@on_sql
def test_one_step_of_retention_removes_a_bounded_number(engine, reader, monkeypatch) -> None:
    monkeypatch.setattr(limits, "EVENTS_TRIMMED_MAX", 4)
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(10))))
    assert do(engine, TrimEvents(T0 + 1, 10**9)) == Removed(4, more=True)
    assert do(engine, TrimEvents(T0 + 1, 10**9)) == Removed(4, more=True)
    assert do(engine, TrimEvents(T0 + 1, 10**9)) == Removed(1, more=False)
    assert kept(engine, reader) == [10]


@on_sql
def test_a_step_is_the_longer_the_more_there_is_beyond_the_bound(engine, reader, monkeypatch) -> None:
    monkeypatch.setattr(limits, "EVENTS_TRIMMED_MAX", 2)
    do(engine, ProduceMany("q", (NewMessage("x"),) * 200))
    bound = engine.snapshot().logs["events"].bytes // 2
    assert do(engine, TrimEvents(0, bound)) == Removed(2 * 17, more=True)
    assert do(engine, TrimEvents(0, bound)).count < 2 * 17
    assert do(engine, TrimEvents(0, 0)) == Removed(2 * limits.RETENTION_STEPS_MAX, more=True)
