"""Removing messages: all of a queue up to now, some by their ids, and the queue itself once it is empty."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Ack, Delete, Extend, ForgetQueue, Produce, Purge, PurgeStep
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.storage.engine import CLEANED_UP, Batch, Event

from .engines import on_sql
from .script import (
    T0,
    ack,
    claim,
    configure,
    counted,
    do,
    drain,
    fail,
    receipts,
    receive,
    receive_one,
    run,
    send,
)


def purge(engine, up_to=None):
    return do(engine, Purge("q", up_to))


@pytest.mark.usefixtures("failed_stay")
def test_whatever_their_status(engine):
    configure(engine, group_in_flight_max=1, max_attempts=2)
    send(engine)
    fail(engine, attempts=2)
    for fields in ({"group": "g"}, {"group": "g"}, {"delay_ms": 5}):
        send(engine, **fields)
    receive(engine, 2)
    send(engine)
    send(engine, queue="other")
    assert counted(engine)["q"] == QueueCounts(ready=1, processing=1, failed=1, delayed=1, held=1)
    result = run(engine, Purge("q"))
    assert result.outcomes == [PurgeStep(5, None)]
    assert result.events == [Event(CLEANED_UP, "q", 5, "deleted_by_user")]
    assert engine.snapshot().counts == {"q": QueueCounts(), "other": QueueCounts(ready=1, bytes=1)}


def test_what_is_sent_later_stays(engine):
    up_to = send(engine, "old").sequence
    send(engine, "new")
    assert purge(engine, up_to) == PurgeStep(1, None)
    assert drain(engine) == ["new"]


def test_what_is_sent_in_the_same_batch_stays(engine):
    send(engine, "old")
    outcomes = run(engine, Produce("q", NewMessage("new")), Purge("q")).outcomes
    assert outcomes[1] == PurgeStep(1, None)
    assert drain(engine) == ["new"]


@on_sql
def test_it_is_done_in_parts_the_oldest_first(engine, monkeypatch):
    monkeypatch.setattr(limits, "PURGE_BATCH_MAX", 2)
    for content in "abcd":
        send(engine, content)
    first = purge(engine)
    assert first.count == 2
    send(engine, "new")
    assert counted(engine)["q"].ready == 3
    assert purge(engine, first.up_to) == PurgeStep(2, None)
    assert drain(engine) == ["new"]


@on_sql
def test_beside_others_a_step_is_a_part_as_long(engine, monkeypatch):
    monkeypatch.setattr(limits, "PURGE_BATCH_MAX", 2 * limits.STEP_SHARE)
    for _ in range(10):
        send(engine)
    outcomes = engine.execute_batch(Batch([Purge("q")], T0, shared=True)).outcomes
    engine.commit()
    assert outcomes[0].count == 2
    assert purge(engine, outcomes[0].up_to).count == 2 * limits.STEP_SHARE


def test_nothing_there_is_nothing_done(engine):
    assert purge(engine) == PurgeStep(0, None)
    assert engine.snapshot().counts == {}


def test_a_receipt_of_a_purged_message_is_good_for_nothing(engine):
    send(engine)
    _, receipt = receive_one(engine)
    purge(engine)
    assert do(engine, Extend("q", (receipt,), 5)) == (None,)
    assert not ack(engine, receipt)


def test_settlements_of_the_same_batch_come_first(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert run(engine, Purge("q", 9), Ack("q", (receipt,))).outcomes == [PurgeStep(0, None), (True,)]


def test_a_claim_of_the_same_batch_finds_nothing(engine):
    send(engine)
    assert run(engine, claim(), Purge("q", 9)).outcomes[0] == ()
    result = run(engine, Produce("q", NewMessage("x")), Purge("q", 1), parked={"q": [claim()]})
    assert len(result.served["q"]) == 1


def test_nothing_of_it_is_due_any_more(engine):
    send(engine, delay_ms=5)
    purge(engine)
    assert run(engine, now=T0 + 5).next_due_ms is None


def test_an_empty_queue_can_be_forgotten(engine):
    send(engine)
    assert ack(engine, receive_one(engine)[1])
    configure(engine, lease_ms=5)
    assert do(engine, ForgetQueue("q")) is True
    assert engine.snapshot().counts == {}
    assert engine.snapshot().settings == {}
    assert engine.snapshot().rules("q").lease_ms != 5
    assert engine.open_reader().queues() == {}
    send(engine)
    assert engine.snapshot().counts == {"q": QueueCounts(ready=1, bytes=1)}


def test_one_that_holds_messages_cannot(engine):
    send(engine, delay_ms=5)
    configure(engine, lease_ms=5)
    assert do(engine, ForgetQueue("q")) is False
    assert engine.snapshot().settings == {"q": QueueSettings(lease_ms=5)}
    assert counted(engine) == {"q": QueueCounts(delayed=1)}


def test_one_that_nobody_used_is_forgotten_too(engine):
    configure(engine, lease_ms=5)
    assert do(engine, ForgetQueue("q")) is True
    assert do(engine, ForgetQueue("q")) is True
    assert engine.snapshot().settings == {}


def test_purged_and_forgotten_in_one_batch(engine):
    send(engine)
    outcomes = run(engine, ForgetQueue("q"), Purge("q", 1)).outcomes
    assert outcomes == [True, PurgeStep(1, None)]
    assert engine.snapshot().counts == {}


def test_sent_to_and_forgotten_in_one_batch_stays(engine):
    outcomes = run(engine, ForgetQueue("q"), Produce("q", NewMessage("x"))).outcomes
    assert outcomes[0] is False
    assert counted(engine) == {"q": QueueCounts(ready=1)}


@pytest.mark.usefixtures("failed_stay")
def test_a_queue_is_forgotten_with_a_few_messages(engine):
    configure(engine, group_in_flight_max=1, max_attempts=2)
    send(engine)
    fail(engine, attempts=2)
    for fields in ({"group": "g"}, {"group": "g"}, {"delay_ms": 5}):
        send(engine, **fields)
    (delivery,) = receive(engine, 2)
    send(engine, queue="other")
    assert counted(engine)["q"] == QueueCounts(processing=1, failed=1, delayed=1, held=1)
    assert do(engine, ForgetQueue("q", 3)) is False
    assert counted(engine)["q"].total == 4
    result = run(engine, ForgetQueue("q", 4))
    assert result.outcomes == [True]
    assert result.events == [Event(CLEANED_UP, "q", 4, "deleted_by_user")]
    assert engine.snapshot().counts == {"other": QueueCounts(ready=1, bytes=1)}
    assert engine.snapshot().settings == {}
    assert do(engine, Ack("q", receipts([delivery]))) == (False,)


def test_a_queue_is_forgotten_with_what_is_sent_in_the_same_batch(engine):
    send(engine)
    outcomes = run(engine, ForgetQueue("q", 2), Produce("q", NewMessage("x"))).outcomes
    assert outcomes[0] is True
    assert engine.snapshot().counts == {}
    assert drain(engine) == []


def test_a_queue_that_may_not_be_forgotten_keeps_its_messages(engine):
    configure(engine, dead_letter_queue="")
    configure(engine, "q-dlq", dead_letter_queue="q")
    send(engine)
    assert isinstance(do(engine, ForgetQueue("q", 1)), InvalidSetting)
    assert drain(engine) == ["x"]


def test_a_forgotten_queue_makes_room_for_another(engine, monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 1)
    send(engine)
    assert ack(engine, receive_one(engine)[1])
    assert do(engine, ForgetQueue("q"))
    assert send(engine, queue="other").sequence == 2


def test_delete_takes_what_is_at_rest(engine):
    ready, claimed, delayed = send(engine), send(engine), send(engine, delay_ms=5)
    first, _ = receive_one(engine)
    assert first.id == ready.id
    elsewhere = send(engine, queue="other")
    ids = (ready.id, claimed.id, claimed.id, delayed.id, elsewhere.id, "no such id")
    result = run(engine, Delete("q", ids))
    assert result.outcomes == [(False, True, False, True, False, False)]
    assert result.events == [Event(CLEANED_UP, "q", 2, "deleted_by_user")]
    assert counted(engine) == {"q": QueueCounts(processing=1), "other": QueueCounts(ready=1)}


@pytest.mark.usefixtures("failed_stay")
def test_delete_takes_failed_and_held_ones(engine):
    configure(engine, group_in_flight_max=1, max_attempts=1)
    failed = send(engine)
    fail(engine, attempts=1)
    send(engine, group="g")
    held = send(engine, group="g")
    receive(engine, 2)
    assert counted(engine)["q"] == QueueCounts(processing=1, failed=1, held=1)
    assert do(engine, Delete("q", (failed.id, held.id))) == (True, True)


def test_the_receipt_of_a_deleted_message_is_good_for_nothing(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, lease_ms=0)
    assert do(engine, Delete("q", (produced.id,))) == (True,)
    assert not ack(engine, receipt)
