"""Giving back after a failed attempt: contract F5."""

import pytest

from forq_trio.model.commands import Nack, NackById, Nacked, SweepKind
from forq_trio.model.messages.types import QueueCounts, Receipt
from forq_trio.storage.engine import EngineSettings

from .script import (
    T0,
    counted,
    do,
    fail,
    has_no_message,
    look,
    nack,
    receipts,
    receive,
    receive_one,
    run,
    send,
    sweep,
)


def test_f5_the_back_off_grows_with_the_attempts(engine):
    produced = send(engine)
    now = T0
    for attempts, delay_ms in ((1, 1_000), (2, 5_000), (3, 15_000), (4, 30_000)):
        delivery, receipt = receive_one(engine, now=now)
        assert delivery.attempts == attempts
        assert nack(engine, receipt, now=now)
        message = look(engine, produced.id)
        assert (message.status, message.process_after) == ("delayed", now + delay_ms)
        assert (message.processing_started_at, message.lease_until) == (None, None)
        assert has_no_message(engine, now=now + delay_ms - 1)
        now += delay_ms
    receive_one(engine, now=now)


@pytest.mark.usefixtures("failed_stay")
def test_f5_the_fifth_attempt_fails(engine):
    produced = send(engine)
    fail(engine, attempts=4)
    _, receipt = receive_one(engine, now=T0 + 1)
    result = run(engine, Nack("q", (receipt,)), now=T0 + 2)
    assert result.outcomes == [(Nacked.FAILED,)]
    assert result.failed_queued
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.queue) == ("failed", 5, "q")
    assert (message.updated_at, message.process_after) == (T0 + 2, T0)
    assert counted(engine) == {"q": QueueCounts(failed=1)}
    assert has_no_message(engine, now=T0 + 3)


@pytest.mark.usefixtures("failed_stay")
def test_f5_settings_may_bound_attempts_and_set_the_back_off(make_engine):
    engine = make_engine(EngineSettings(attempts_max=2, backoff_ms=(7,)))
    send(engine)
    assert nack(engine, receive_one(engine)[1])
    assert not run(engine, now=T0 + 6).failed_queued
    _, receipt = receive_one(engine, now=T0 + 7)
    assert run(engine, Nack("q", (receipt,), 0), now=T0 + 7).failed_queued


@pytest.mark.parametrize(("delay_ms", "status"), [(0, "ready"), (1, "delayed")])
def test_a_delay_of_its_own(engine, delay_ms, status):
    produced = send(engine)
    assert nack(engine, receive_one(engine)[1], delay_ms, now=T0 + 3)
    message = look(engine, produced.id)
    assert (message.status, message.process_after) == (status, T0 + 3 + delay_ms)


def test_a_message_given_back_keeps_its_place(engine):
    first = send(engine)
    send(engine)
    assert nack(engine, receive_one(engine)[1], 0)
    assert receive_one(engine)[0].id == first.id


def test_the_reason_is_kept_until_another_one_comes(engine):
    produced = send(engine)
    for reason, kept in ((None, None), ("first", "first"), (None, "first"), ("", "")):
        assert nack(engine, receive_one(engine)[1], 0, reason)
        assert look(engine, produced.id).last_error == kept


def test_f5_the_last_error_follows_the_message_into_the_dead_letter_queue(engine):
    produced = send(engine)
    fail(engine, attempts=4)
    assert nack(engine, receive_one(engine)[1], None, "disk full")
    sweep(engine, SweepKind.FAILED)
    assert look(engine, produced.id, "q-dlq").last_error == "disk full"


def test_f5_the_receipt_is_spent(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert do(engine, Nack("q", (receipt, receipt), 0)) == (True, False)
    assert not nack(engine, receipt)


def test_each_receipt_is_answered_with_what_became_of_its_message(engine):
    for bound in (2, 1):
        send(engine, max_attempts=bound)
    again, last = receipts(receive(engine, 2))
    outcome = do(engine, Nack("q", (last, Receipt(99, 1), again)))
    assert outcome == (Nacked.FAILED, Nacked.REFUSED, Nacked.RETURNED)


def test_f5_each_receipt_is_answered_for_itself(engine):
    for _ in range(2):
        send(engine)
    first, second = receipts(receive(engine, 2))
    assert do(engine, Nack("q", (first, Receipt(99, 1), second))) == (True, False, True)


def test_f5_the_message_id_must_be_that_of_the_receipt(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    other = "00000000-0000-7000-8000-000000000000"
    assert do(engine, Nack("q", (receipt,), message_id=other)) == (False,)
    assert do(engine, Nack("q", (receipt,), message_id=produced.id)) == (True,)


def test_f5_after_the_lease_ended_it_still_counts(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert nack(engine, receipt, reason="slow", now=T0 + 11)
    message = look(engine, produced.id)
    assert (message.status, message.process_after) == ("delayed", T0 + 1_011)
    assert message.last_error == "slow"


def test_f5_works_on_dead_letter_queues(engine):
    produced = send(engine)
    fail(engine)
    sweep(engine, SweepKind.FAILED)
    delivery, receipt = receive_one(engine, queue="q-dlq")
    assert (delivery.id, delivery.attempts) == (produced.id, 1)
    assert nack(engine, receipt, queue="q-dlq")
    assert look(engine, produced.id, "q-dlq").process_after == T0 + 1_000


def test_f5_by_id_only_in_process_and_with_the_back_off(engine):
    produced = send(engine)
    assert do(engine, NackById("q", produced.id)) is False
    receive_one(engine)
    assert do(engine, NackById("other", produced.id)) is False
    assert do(engine, NackById("q", produced.id)) is True
    assert do(engine, NackById("q", produced.id)) is False
    assert look(engine, produced.id).process_after == T0 + 1_000


@pytest.mark.usefixtures("failed_stay")
def test_a_final_nack_fails_the_first_attempt(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    result = run(engine, Nack("q", (receipt,), 1_000, "unreadable", final=True), now=T0 + 2)
    assert result.outcomes == [(Nacked.FAILED,)]
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.last_error) == ("failed", 1, "unreadable")
    assert counted(engine) == {"q": QueueCounts(failed=1)}


def test_a_final_nack_of_an_old_receipt_fails_nothing(engine):
    produced = send(engine)
    _, old = receive_one(engine)
    nack(engine, old, 0)
    receive_one(engine)
    assert do(engine, Nack("q", (old,), final=True)) == (False,)
    assert look(engine, produced.id).status == "processing"
