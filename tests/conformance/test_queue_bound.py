"""How many queues there may be, also those that dead letters would make."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Configure,
    ForgetQueue,
    Produce,
    ProduceMany,
    Purge,
    Redrive,
    RedrivePolicy,
)
from forq_trio.model.errors import Overloaded
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import SettingsChange

from .script import DAY_MS, T0, claim, counted, do, fail, look, run, send
from .test_publishing import advance, publish, stage


@pytest.fixture(autouse=True)
def three_queues(monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 3)


def refused(engine, command):
    try:
        return isinstance(do(engine, command), Overloaded)
    except Overloaded:
        return True


def test_a_dead_letter_queue_that_a_message_names_is_admitted_when_it_is_sent(engine):
    send(engine, dead_letter_queue="a")
    assert set(counted(engine)) == {"q", "a"}
    send(engine, dead_letter_queue="b")
    assert refused(engine, Produce("q", NewMessage("x", dead_letter_queue="c")))
    send(engine, dead_letter_queue="a")
    assert set(counted(engine)) == {"q", "a", "b"}


def test_all_that_a_send_names_is_admitted_together(engine):
    two = (NewMessage("x", dead_letter_queue="a"), NewMessage("y", dead_letter_queue="b"))
    send(engine)
    send(engine, queue="other")
    assert refused(engine, ProduceMany("q", two))
    assert set(counted(engine)) == {"q", "other"}


def test_many_sends_of_one_batch_make_no_more_queues_than_there_may_be(engine):
    sends = [Produce("q", NewMessage("x", dead_letter_queue=f"d{number}")) for number in range(5)]
    outcomes = run(engine, *sends).outcomes
    assert [isinstance(outcome, Overloaded) for outcome in outcomes] == [False, False, True, True, True]
    assert len(counted(engine)) == 3


def test_deleting_without_a_dead_letter_queue_needs_no_queue(engine):
    for queue in ("a", "b", "q"):
        send(engine, queue=queue, dead_letter_queue="")
    assert len(counted(engine)) == 3


def test_a_dead_letter_queue_that_was_deleted_is_not_made_again_where_there_are_too_many(engine):
    message = send(engine, dead_letter_queue="a", ttl_ms=10)
    assert do(engine, ForgetQueue("a"))
    send(engine, queue="b")
    send(engine, queue="c")
    run(engine, now=T0 + 10)
    assert look(engine, message.id, "q-dlq") is not None


def test_a_receiver_names_no_dead_letter_queue_where_there_are_too_many(engine):
    message = send(engine, max_attempts=100)
    fail(engine, attempts=1)
    send(engine, queue="b")
    send(engine, queue="c")
    run(engine, claim(redrive_policy=RedrivePolicy(1, "bad")))
    assert look(engine, message.id, "q-dlq") is not None


def test_a_redrive_makes_no_queue_where_there_are_too_many(engine):
    message = send(engine, ttl_ms=1)
    run(engine, now=T0 + 1)
    send(engine, queue="b")
    assert refused(engine, Redrive("q-dlq", (message.id,), "elsewhere"))
    assert look(engine, message.id, "q-dlq") is not None


def test_settings_name_no_dead_letter_queue_where_there_are_too_many(engine):
    for queue in ("a", "b", "q"):
        send(engine, queue=queue)
    assert refused(engine, Configure("q", SettingsChange(dead_letter_queue="c")))
    do(engine, Configure("q", SettingsChange(dead_letter_queue="a")))


def test_no_more_queues_have_settings_than_there_may_be(engine):
    for queue in ("a", "b", "c"):
        do(engine, Configure(queue, SettingsChange(max_messages=1)))
    assert refused(engine, Configure("d", SettingsChange(max_messages=1)))
    do(engine, Configure("a", SettingsChange(max_messages=None)))
    do(engine, Configure("d", SettingsChange(max_messages=1)))


def test_a_published_message_whose_dead_letter_queue_would_be_one_too_many_has_that_of_its_queue(engine):
    named = [NewMessage(name, dead_letter_queue=name, ttl_ms=1) for name in ("a", "b", "c")]
    stage(engine, named)
    publish(engine, "s")
    advance(engine)
    assert set(counted(engine)) == {"q", "a", "b"}
    run(engine, now=T0 + 1)
    assert {name: counts.ready for name, counts in counted(engine).items()} == {
        "q": 0,
        "a": 1,
        "b": 1,
        "q-dlq": 1,
    }


def test_the_names_of_queues_are_in_order(engine):
    for queue in ("b", "c", "a"):
        send(engine, queue=queue)
    assert list(engine.snapshot().queue_names) == ["a", "b", "c"]
    run(engine, now=T0 + 2 * DAY_MS)
    assert do(engine, Purge("b-dlq", None)).count == 1
    assert do(engine, ForgetQueue("b-dlq"))
    assert list(engine.snapshot().queue_names) == ["a", "a-dlq", "b", "c", "c-dlq"]
