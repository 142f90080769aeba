"""How often a message is tried: its own bound, else its queue's, else the server's (F5, S4)."""

import pytest

from forq_trio.model.commands import Extend, Nack, NackById, Nacked, Release
from forq_trio.model.messages.types import LEASE_ENDED, Failure
from forq_trio.storage.engine import EngineSettings

from .keyed import offer
from .script import T0, configure, do, fail, look, nack, receive_one, redrive, run, send, send_dead_letter


@pytest.mark.parametrize("own", [1, 2, 7])
@pytest.mark.usefixtures("failed_stay")
def test_f5_a_message_may_have_a_bound_of_its_own(engine, own):
    produced = send(engine, max_attempts=own)
    fail(engine, attempts=own)
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.max_attempts) == ("failed", own, own)


@pytest.mark.usefixtures("failed_stay")
def test_a_queue_may_have_a_bound_of_its_own(make_engine):
    engine = make_engine(EngineSettings(attempts_max=4))
    configure(engine, max_attempts=2)
    produced = send(engine)
    other = send(engine, queue="other")
    fail(engine, attempts=2)
    fail(engine, queue="other", attempts=4)
    assert look(engine, produced.id).status == "failed"
    assert look(engine, other.id, "other").status == "failed"


@pytest.mark.usefixtures("failed_stay")
def test_a_changed_bound_holds_for_what_is_there(engine):
    produced = send(engine)
    fail(engine, attempts=2)
    configure(engine, max_attempts=3)
    fail(engine, attempts=1)
    assert look(engine, produced.id).status == "failed"


def test_a_message_goes_before_its_queue(engine):
    configure(engine, max_attempts=1)
    produced = send(engine, max_attempts=2)
    fail(engine, attempts=1)
    assert look(engine, produced.id).status == "ready"


@pytest.mark.usefixtures("failed_stay")
def test_the_end_of_a_lease_counts_against_it(engine):
    configure(engine, max_attempts=1)
    produced = send(engine)
    receive_one(engine, lease_ms=5)
    assert run(engine, now=T0 + 5).failed_queued
    assert look(engine, produced.id).status == "failed"


def raise_bound(engine, bound, *, now=T0):
    """Nack the one message with a bound of its own; the outcome."""
    _, receipt = receive_one(engine, now=now)
    return do(engine, Nack("q", (receipt,), 0, max_attempts=bound), now)[0]


@pytest.mark.usefixtures("failed_stay")
@pytest.mark.parametrize("own", [None, 3])
def test_a_nack_may_give_it_a_bound_of_its_own(engine, own):
    """It holds for its nack, and for what comes later, whatever ends the attempts."""
    configure(engine, max_attempts=2)
    produced = send(engine, max_attempts=own)
    fail(engine, attempts=1)
    assert raise_bound(engine, 5) is Nacked.RETURNED
    assert look(engine, produced.id).max_attempts == 5
    assert nack(engine, receive_one(engine)[1], 0) is Nacked.RETURNED
    delivery, _ = receive_one(engine, lease_ms=5)
    assert (delivery.attempts, delivery.max_attempts) == (4, 5)
    assert not run(engine, now=T0 + 5).failed_queued
    assert nack(engine, receive_one(engine, now=T0 + 5)[1], 0, now=T0 + 5) is Nacked.FAILED
    assert (look(engine, produced.id).status, look(engine, produced.id).attempts) == ("failed", 5)


@pytest.mark.usefixtures("failed_stay")
def test_a_nack_may_lower_it(engine):
    produced = send(engine, max_attempts=9)
    fail(engine, attempts=1)
    assert raise_bound(engine, 2) is Nacked.FAILED
    assert look(engine, produced.id).status == "failed"


def test_a_bound_that_a_nack_gave_is_no_other_offer(engine):
    """The message of a key stays as it is when it is offered again while it waits for its next attempt."""
    first = offer(engine, process_after=T0)
    _, receipt = receive_one(engine)
    assert do(engine, Nack("q", (receipt,), 9_000, max_attempts=7)) == (Nacked.RETURNED,)
    again = offer(engine, process_after=T0)
    assert (again.outcome, again.id) == ("ignored", first.id)
    message = look(engine, first.id)
    assert (message.status, message.attempts, message.max_attempts) == ("delayed", 1, 7)
    assert offer(engine, process_after=T0, max_attempts=3).outcome == "updated"
    assert look(engine, first.id).max_attempts == 3


def test_every_failure_is_kept_with_its_time_and_reason(engine):
    produced = send(engine)
    assert nack(engine, receive_one(engine)[1], 0, "broke", now=T0 + 1)
    receive_one(engine, lease_ms=5, now=T0 + 2)
    run(engine, now=T0 + 7)
    assert nack(engine, receive_one(engine, now=T0 + 8)[1], 0, None, now=T0 + 9)
    receive_one(engine, now=T0 + 10)
    assert do(engine, NackById("q", produced.id), T0 + 11)
    assert look(engine, produced.id).failures == (
        Failure(1, T0 + 1, "broke"),
        Failure(2, T0 + 7, LEASE_ENDED),
        Failure(3, T0 + 9, None),
        Failure(4, T0 + 11, None),
    )
    assert look(engine, produced.id).last_error == "broke"


def test_an_extend_by_0_and_a_release_are_no_failures(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    do(engine, Extend("q", (receipt,), 0))
    _, receipt = receive_one(engine)
    do(engine, Release("q", (receipt,)))
    assert look(engine, produced.id).failures == ()


def test_the_latest_failures_are_kept(engine, monkeypatch):
    monkeypatch.setattr("forq_trio.model.limits.FAILURES_PER_MESSAGE_MAX", 2)
    produced = send(engine)
    for reason in "abc":
        assert nack(engine, receive_one(engine)[1], 0, reason)
    assert [failure.reason for failure in look(engine, produced.id).failures] == ["b", "c"]


def test_failures_go_with_the_message_and_on_from_there(engine):
    produced = send_dead_letter(engine, max_attempts=2)
    assert nack(engine, receive_one(engine, queue="q-dlq")[1], 0, "again", queue="q-dlq")
    failures = look(engine, produced.id, "q-dlq").failures
    assert [(failure.attempt, failure.reason) for failure in failures] == [(1, None), (2, None), (1, "again")]
    assert redrive(engine, produced.id) == (True,)
    assert len(look(engine, produced.id).failures) == 3
