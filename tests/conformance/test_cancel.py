"""Cancelling a message by its id, before anybody receives it."""

import pytest

from forq_trio.model.commands import Ack, Cancel, Claim, Configure, Nack, Nacked, Pause
from forq_trio.model.errors import MessageInFlight, MessageNotFound
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import CLEANED_UP, Event

from .script import T0, counted, do, has_no_message, look, receive, receive_one, run, send, send_dead_letter


def cancel(engine, sent, queue="q", now=T0):
    return do(engine, Cancel(queue, sent.id), now)


def test_a_ready_message_is_gone(engine):
    kept, sent = send(engine, "kept"), send(engine, "cancelled")
    result = run(engine, Cancel("q", sent.id))
    assert result.outcomes == [None]
    assert result.events == [Event(CLEANED_UP, "q", 1, "cancelled")]
    assert look(engine, sent.id) is None
    assert [delivery.id for delivery in receive(engine, 5)] == [kept.id]
    assert isinstance(cancel(engine, sent), MessageNotFound)


def test_a_delayed_message_never_falls_due(engine):
    sent = send(engine, process_after=T0 + 50)
    assert cancel(engine, sent) is None
    assert counted(engine)["q"] == QueueCounts()
    assert run(engine, now=T0 + 50).woken == set()
    assert has_no_message(engine, now=T0 + 50)


def test_a_held_message_is_gone_and_holds_up_nobody(engine):
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    first, held, last = (send(engine, content, group="g") for content in ("first", "held", "last"))
    _, receipt = receive_one(engine)
    assert has_no_message(engine)
    assert look(engine, held.id).status == "held"
    assert cancel(engine, held) is None
    assert isinstance(cancel(engine, first), MessageInFlight)
    assert do(engine, Ack("q", (receipt,))) == (True,)
    assert receive_one(engine)[0].id == last.id


def test_a_cancelled_ready_message_frees_its_group(engine):
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    first, second = send(engine, "first", group="g"), send(engine, "second", group="g")
    _, receipt = receive_one(engine, lease_ms=10)
    assert has_no_message(engine, now=T0 + 1)
    assert look(engine, second.id).status == "held"
    run(engine, now=T0 + 10)  # the lease ends: `first` is ready again
    assert cancel(engine, first, now=T0 + 11) is None
    assert receive_one(engine, now=T0 + 12)[0].id == second.id
    assert do(engine, Ack("q", (receipt,)), T0 + 13) == (False,)


def test_what_a_consumer_has_stays(engine):
    sent = send(engine)
    _, receipt = receive_one(engine)
    result = run(engine, Cancel("q", sent.id))
    assert [type(each) for each in result.outcomes] == [MessageInFlight]
    assert result.events == []
    assert counted(engine)["q"] == QueueCounts(processing=1)
    assert do(engine, Ack("q", (receipt,))) == (True,)


def test_after_the_lease_it_can_be_and_the_receipt_is_worth_nothing(engine):
    sent = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    assert cancel(engine, sent, now=T0 + 10) is None
    assert do(engine, Ack("q", (receipt,)), T0 + 11) == (False,)


def test_of_another_queue_or_never_sent_it_is_not_there(engine):
    sent = send(engine)
    assert isinstance(cancel(engine, sent, queue="other"), MessageNotFound)
    assert isinstance(do(engine, Cancel("q", "00000000-0000-7000-8000-000000000000")), MessageNotFound)
    assert counted(engine)["q"] == QueueCounts(ready=1)


@pytest.mark.usefixtures("failed_stay")
def test_a_failed_message_does_not_become_a_dead_letter(engine):
    sent = send(engine, max_attempts=1)
    _, receipt = receive_one(engine)
    assert do(engine, Nack("q", (receipt,))) == (Nacked.FAILED,)
    assert look(engine, sent.id).status == "failed"
    assert cancel(engine, sent) is None
    assert counted(engine)["q"] == QueueCounts()


def test_a_dead_letter_can_be(engine):
    sent = send_dead_letter(engine)
    assert cancel(engine, sent, queue="q-dlq") is None
    assert counted(engine)["q-dlq"] == QueueCounts()


def test_its_deduplication_id_is_still_known(engine):
    """A sender that repeats itself does not bring back what somebody cancelled."""
    sent = send(engine, deduplication_id="once")
    assert cancel(engine, sent) is None
    again = send(engine, deduplication_id="once")
    assert (again.duplicate, again.id) == (True, sent.id)
    assert has_no_message(engine)


def test_of_two_in_a_batch_the_first_does_it_before_any_claim(engine):
    sent = send(engine)
    claimed, first, second = run(
        engine, Claim("q", 1, None), Cancel("q", sent.id), Cancel("q", sent.id)
    ).outcomes
    assert (claimed, first, type(second)) == ((), None, MessageNotFound)


def test_in_a_paused_queue_and_a_full_one(engine):
    do(engine, Configure("q", SettingsChange(max_messages=1)))
    sent = send(engine)
    do(engine, Pause("q", paused=True))
    assert cancel(engine, sent) is None
    assert send(engine, "next").sequence > sent.sequence


@pytest.mark.parametrize("content", ["x", "grüße" * 100])
def test_the_bytes_are_given_back(engine, content):
    sent = send(engine, content, attributes={"key": "value"})
    assert cancel(engine, sent) is None
    assert engine.snapshot().counts["q"].bytes == 0
