"""Receivers are values: the engine serves those it was offered, names them by id, and asks for the next batch."""

from forq_trio.model import limits
from forq_trio.model.commands import ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import Batch, Receiver

from .script import T0, claim, contents, run

TWO = {"q": [claim(), claim()]}


def many(count):
    return ProduceMany("q", tuple(NewMessage(str(number)) for number in range(count)))


def test_who_is_served_is_named_by_id(engine):
    receivers = {
        "q": (Receiver(70, claim()), Receiver(7, claim())),
        "other": (Receiver(3, claim(queue="other")),),
    }
    result = engine.execute_batch(Batch([many(2)], T0, receivers))
    engine.commit()
    assert {receiver: contents(got) for receiver, got in result.served} == {70: ["0"], 7: ["1"]}


def test_where_all_that_may_be_offered_were_served_the_next_batch_comes_at_once(engine, monkeypatch):
    monkeypatch.setattr(limits, "RECEIVERS_OFFERED_MAX", 2)
    first = run(engine, many(3), parked=TWO)
    assert [contents(got) for _, got in first.served["q"]] == [["0"], ["1"]]
    assert first.next_due_ms == T0
    second = run(engine, parked=TWO)
    assert [contents(got) for _, got in second.served["q"]] == [["2"]]
    assert second.next_due_ms > T0


def test_with_nothing_left_no_batch_is_asked_for(engine, monkeypatch):
    monkeypatch.setattr(limits, "RECEIVERS_OFFERED_MAX", 2)
    assert run(engine, many(2), parked=TWO).next_due_ms > T0


def test_with_fewer_receivers_than_may_be_offered_no_batch_is_asked_for(engine, monkeypatch):
    monkeypatch.setattr(limits, "RECEIVERS_OFFERED_MAX", 3)
    assert run(engine, many(3), parked=TWO).next_due_ms > T0
