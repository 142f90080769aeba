"""What time does at the start of a batch: delays end, leases end (contract F6), bounded work in order of due time."""

import pytest

from forq_trio.model.commands import Nack, ProduceMany
from forq_trio.model.limits import DUE_BATCH_MAX
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import STALE_RECOVERED, EngineSettings, Event

from .engines import on_sql
from .script import (
    LEASE_MS,
    T0,
    ack,
    contents,
    counted,
    do,
    has_no_message,
    look,
    receive,
    receive_one,
    run,
    send,
)


def test_f3_a_delayed_message_is_ready_exactly_when_it_is_due(engine):
    produced = send(engine, process_after=T0 + 100)
    assert has_no_message(engine, now=T0 + 99)
    run(engine, now=T0 + 100)
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.process_after) == ("ready", 0, T0 + 100)
    assert counted(engine) == {"q": QueueCounts(ready=1)}


def test_f6_a_lease_that_ends_makes_ready_at_once(engine):
    produced = send(engine)
    receive_one(engine)
    run(engine, now=T0 + LEASE_MS - 1)
    assert look(engine, produced.id).status == "processing"
    result = run(engine, now=T0 + LEASE_MS)
    assert result.events == [Event(STALE_RECOVERED, "q", 1)]
    assert not result.failed_queued
    message = look(engine, produced.id)
    assert (message.status, message.attempts) == ("ready", 1)
    assert message.process_after == message.updated_at == T0 + LEASE_MS
    assert (message.processing_started_at, message.lease_until) == (None, None)


@pytest.mark.usefixtures("failed_stay")
def test_f6_a_lease_that_ends_at_the_last_attempt_fails(engine):
    produced = send(engine)
    for turn in range(5):
        _, receipt = receive_one(engine, lease_ms=10, now=T0 + 10 * turn)
    result = run(engine, now=T0 + 50)
    assert result.failed_queued
    assert result.events == [Event(STALE_RECOVERED, "q", 1)]
    message = look(engine, produced.id)
    assert (message.status, message.attempts) == ("failed", 5)
    assert (message.processing_started_at, message.lease_until) == (None, None)
    assert counted(engine) == {"q": QueueCounts(failed=1)}
    assert not ack(engine, receipt, now=T0 + 50)


def test_f6_a_message_keeps_its_place_after_its_lease_ended(engine):
    for content in ("first", "second"):
        send(engine, content)
    receive(engine, lease_ms=10)
    assert contents(receive(engine, 2, now=T0 + 10)) == ["first", "second"]


def test_due_messages_are_settled_before_commands_and_claims(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    send(engine, process_after=T0 + 10)
    result = run(engine, Nack("q", (receipt,), 0), now=T0 + 10)
    assert result.outcomes == [(True,)]
    assert counted(engine) == {"q": QueueCounts(ready=2)}


@on_sql
def test_one_batch_settles_a_bounded_number_the_longest_due_first(engine):
    many = tuple(NewMessage(str(n), T0 + 1 + n % 2) for n in range(DUE_BATCH_MAX))
    do(engine, ProduceMany("q", many))
    send(engine, "earliest", process_after=T0 + 1)
    result = run(engine, now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(ready=DUE_BATCH_MAX, delayed=1)}
    assert result.next_due_ms == T0 + 2
    run(engine, now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(ready=DUE_BATCH_MAX + 1)}


def test_f7_a_lease_that_ends_after_the_time_to_live_expires_in_the_same_batch(make_engine):
    engine = make_engine(EngineSettings(queue_ttl_ms=100))
    produced = send(engine)
    receive_one(engine, lease_ms=200)
    run(engine, now=T0 + 199)
    assert look(engine, produced.id).status == "processing"
    run(engine, now=T0 + 200)
    assert look(engine, produced.id) is None
    assert look(engine, produced.id, "q-dlq").status == "ready"


def test_time_that_steps_backwards_undoes_nothing(engine):
    send(engine, process_after=T0 + 100)
    run(engine, now=T0 + 100)
    delivery, receipt = receive_one(engine, now=T0 + 50)
    assert delivery.lease_until == T0 + 50 + LEASE_MS
    assert ack(engine, receipt, now=T0)
