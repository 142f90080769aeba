"""When a message can be had first, and how long it lives: its own word, else its queue's (S2)."""

from forq_trio.model.commands import SweepKind
from forq_trio.model.messages.types import REASON_EXPIRED
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, Event

from .engines import on_sql
from .script import (
    DAY_MS,
    T0,
    configure,
    counted,
    drain,
    has_no_message,
    look,
    nack,
    receive_one,
    run,
    send,
    sweep,
    woken_by,
)


def test_s2_a_delay_counts_from_the_send_and_ends_on_time(engine):
    produced = send(engine, "later", delay_ms=50)
    message = look(engine, produced.id)
    assert (message.status, message.process_after) == ("delayed", T0 + 50)
    assert message.expires_after == T0 + 50 + DAY_MS
    assert woken_by(engine, now=T0 + 49) == []
    assert woken_by(engine, now=T0 + 50) == ["later"]


def test_a_queue_may_delay_what_does_not_say(engine):
    configure(engine, delay_ms=50)
    send(engine, "the queue's")
    send(engine, "its own", delay_ms=20)
    send(engine, "none", delay_ms=0)
    send(engine, "at a time", process_after=T0)
    assert drain(engine) == ["none", "at a time"]
    assert drain(engine, now=T0 + 20) == ["its own"]
    assert drain(engine, now=T0 + 49) == []
    assert drain(engine, now=T0 + 50) == ["the queue's"]


def test_a_changed_delay_holds_for_what_is_sent_from_then_on(engine):
    configure(engine, delay_ms=50)
    send(engine, "before")
    configure(engine, delay_ms=None)
    send(engine, "after")
    assert drain(engine) == ["after"]


def test_s2_a_message_may_have_its_own_time_to_live(engine):
    own = send(engine, "own", ttl_ms=10)
    queues = send(engine, "queue's")
    assert look(engine, own.id).ttl_ms == 10
    assert look(engine, queues.id).ttl_ms is None
    assert look(engine, own.id).expires_after == T0 + 10
    run(engine, now=T0 + 9)
    assert counted(engine)["q"].ready == 2
    assert run(engine, now=T0 + 10).events == [Event(MOVED_TO_DLQ, "q", 1, "expired")]
    moved = look(engine, own.id, "q-dlq")
    assert (moved.failure_reason, moved.expires_after) == (REASON_EXPIRED, T0 + 10 + 7 * DAY_MS)


def test_a_time_to_live_starts_when_the_delay_ends(engine):
    produced = send(engine, delay_ms=30, ttl_ms=10)
    assert look(engine, produced.id).expires_after == T0 + 40


def test_a_queue_may_have_its_own_time_to_live(engine):
    configure(engine, ttl_ms=100)
    configure(engine, "q-dlq", ttl_ms=7)
    produced = send(engine)
    assert look(engine, produced.id).expires_after == T0 + 100
    run(engine, now=T0 + 100)
    assert look(engine, produced.id, "q-dlq").expires_after == T0 + 107
    assert run(engine, now=T0 + 107).events == [Event(CLEANED_UP, "q-dlq", 1, "expired")]


def test_the_times_of_both_ends_are_due_on_their_own(engine):
    send(engine, delay_ms=30, ttl_ms=10)
    assert run(engine).next_due_ms == T0 + 30
    assert run(engine, now=T0 + 30).next_due_ms == T0 + 40


def test_f7_a_delay_after_a_nack_does_not_prolong_a_life(engine):
    send(engine, ttl_ms=10)
    _, receipt = receive_one(engine, lease_ms=5)
    assert nack(engine, receipt, 1_000)
    assert run(engine, now=T0 + 10).events == [Event(MOVED_TO_DLQ, "q", 1, "expired")]


def test_f7_a_message_in_process_outlives_its_time_until_it_is_given_back(engine):
    send(engine, ttl_ms=10)
    _, receipt = receive_one(engine)
    run(engine, now=T0 + 10)
    assert counted(engine)["q"].processing == 1
    assert nack(engine, receipt, 0, now=T0 + 11)
    assert has_no_message(engine, now=T0 + 11)
    assert counted(engine)["q-dlq"].ready == 1


@on_sql
def test_f13_the_sweep_of_expired_ones_goes_by_their_own_times(engine, monkeypatch):
    monkeypatch.setattr("forq_trio.model.limits.DUE_BATCH_MAX", 0)
    send(engine, ttl_ms=10)
    send(engine, ttl_ms=20)
    assert sweep(engine, SweepKind.EXPIRED, now=T0 + 10).count == 1
    assert sweep(engine, SweepKind.EXPIRED, now=T0 + 20).count == 1
