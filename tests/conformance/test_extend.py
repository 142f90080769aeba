"""Moving the end of a lease."""

import pytest

from forq_trio.model.commands import Extend
from forq_trio.model.messages.types import QueueCounts, Receipt
from forq_trio.storage.engine import EngineSettings

from .script import T0, ack, counted, do, has_no_message, look, receipts, receive, receive_one, run, send


def extend(engine, receipt, lease_ms, now=T0, queue="q"):
    return do(engine, Extend(queue, (receipt,), lease_ms), now)[0]


def test_the_lease_ends_later(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    assert extend(engine, receipt, 100, now=T0 + 5) == T0 + 105
    message = look(engine, produced.id)
    assert (message.status, message.lease_until, message.attempts) == ("processing", T0 + 105, 1)
    assert message.processing_started_at == T0
    assert has_no_message(engine, now=T0 + 104)
    assert receive_one(engine, now=T0 + 105)[0].attempts == 2


def test_the_lease_may_be_shortened(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=1_000)
    result = run(engine, Extend("q", (receipt,), 10))
    assert result.outcomes == [(T0 + 10,)]
    assert result.next_due_ms <= T0 + 10
    assert receive_one(engine, now=T0 + 10)[0].attempts == 2


def test_the_last_of_several_extensions_holds(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    outcomes = run(engine, Extend("q", (receipt, receipt), 10), Extend("q", (receipt,), 20)).outcomes
    assert outcomes == [(T0 + 10, T0 + 10), (T0 + 20,)]
    assert look(engine, produced.id).lease_until == T0 + 20


def test_each_receipt_is_answered_for_itself(engine):
    for _ in range(2):
        send(engine)
    first, second = receipts(receive(engine, 2))
    assert ack(engine, first)
    assert do(engine, Extend("q", (first, Receipt(99, 1), second), 10)) == (None, None, T0 + 10)


def test_a_lease_that_ended_is_taken_up_again_without_another_attempt(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(ready=1)}
    assert extend(engine, receipt, 100, now=T0 + 20) == T0 + 120
    assert has_no_message(engine, now=T0 + 119)
    assert look(engine, produced.id).attempts == 1
    assert counted(engine) == {"q": QueueCounts(processing=1)}
    assert ack(engine, receipt, now=T0 + 119)


def test_zero_gives_the_message_back_at_once_with_the_attempt_counted(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    assert extend(engine, receipt, 0, now=T0 + 5) == T0 + 5
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.process_after) == ("ready", 1, T0 + 5)
    assert (message.processing_started_at, message.lease_until) == (None, None)
    assert receive_one(engine, now=T0 + 5)[0].attempts == 2


def test_zero_leaves_the_receipt_current_until_the_next_claim(engine):
    send(engine)
    _, receipt = receive_one(engine)
    extend(engine, receipt, 0)
    assert ack(engine, receipt)
    send(engine)
    _, receipt = receive_one(engine)
    extend(engine, receipt, 0)
    receive_one(engine)
    assert not ack(engine, receipt)


def test_zero_twice_and_then_a_lease_again(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    outcomes = run(engine, Extend("q", (receipt, receipt), 0), Extend("q", (receipt,), 10)).outcomes
    assert outcomes == [(T0, T0), (T0 + 10,)]
    message = look(engine, produced.id)
    assert (message.status, message.lease_until, message.attempts) == ("processing", T0 + 10, 1)
    assert counted(engine) == {"q": QueueCounts(processing=1)}


@pytest.mark.usefixtures("failed_stay")
def test_zero_at_the_last_attempt_fails(make_engine):
    engine = make_engine(EngineSettings(attempts_max=1))
    produced = send(engine)
    _, receipt = receive_one(engine)
    result = run(engine, Extend("q", (receipt, receipt), 0))
    assert result.outcomes == [(T0, None)]
    assert result.failed_queued
    assert look(engine, produced.id).status == "failed"
    assert not ack(engine, receipt)
