"""Undoing a claim: what happens for a consumer that left before it got its messages."""

from forq_trio.model.commands import Release
from forq_trio.model.messages.types import QueueCounts, Receipt

from .script import T0, counted, do, has_no_message, look, receipts, receive, receive_one, run, send


def release(engine, receipt, delay_ms=0, now=T0, queue="q"):
    return do(engine, Release(queue, (receipt,), delay_ms), now)[0]


def test_the_attempt_is_uncounted_and_the_place_kept(engine):
    first = send(engine)
    send(engine)
    delivery, receipt = receive_one(engine)
    assert delivery.attempts == 1
    assert release(engine, receipt, now=T0 + 5)
    message = look(engine, first.id)
    assert (message.status, message.attempts) == ("ready", 0)
    assert (message.processing_started_at, message.lease_until) == (None, None)
    again, _ = receive_one(engine)
    assert (again.id, again.attempts) == (first.id, 1)


def test_after_a_delay(engine):
    produced = send(engine)
    assert release(engine, receive_one(engine)[1], 50)
    message = look(engine, produced.id)
    assert (message.status, message.process_after) == ("delayed", T0 + 50)
    assert has_no_message(engine, now=T0 + 49)
    assert receive_one(engine, now=T0 + 50)[0].attempts == 1


def test_a_release_at_the_last_attempt_never_fails_the_message(engine):
    produced = send(engine)
    for turn in range(5):
        _, receipt = receive_one(engine, lease_ms=10, now=T0 + 10 * turn)
    result = run(engine, Release("q", (receipt,)), now=T0 + 41)
    assert result.outcomes == [(True,)]
    assert not result.failed_queued
    assert look(engine, produced.id).attempts == 4


def test_the_receipt_is_spent(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert do(engine, Release("q", (receipt, receipt))) == (True, False)
    assert not release(engine, receipt)


def test_after_the_lease_ended_the_attempt_is_still_uncounted(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert release(engine, receipt, now=T0 + 11)
    assert look(engine, produced.id).attempts == 0
    assert not release(engine, receipt, now=T0 + 11)


def test_each_receipt_is_answered_for_itself(engine):
    for _ in range(2):
        send(engine)
    first, second = receipts(receive(engine, 2))
    assert do(engine, Release("q", (first, Receipt(99, 1), second))) == (True, False, True)
    assert counted(engine) == {"q": QueueCounts(ready=2)}
