"""Messages that are claimed in the batch that sends them: contracts F1 and F3."""

from typing import Any

import pytest

from forq_trio.model.commands import Ack, Produce
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts

from .script import (
    LEASE_MS,
    T0,
    ack,
    claim,
    contents,
    counted,
    has_no_message,
    look,
    receipts,
    receive,
    run,
    send,
    woken_by,
)


def produce(content: str, **fields: Any) -> Produce:
    return Produce("q", NewMessage(content, **fields))


def test_it_is_stored_as_one_that_is_claimed_later(engine):
    later = send(engine, "x", priority=7)
    receive(engine)
    at_once, (delivery,) = run(engine, produce("x", priority=7), claim()).outcomes
    stored, other = look(engine, at_once.id), look(engine, later.id)
    assert stored.id == delivery.id
    assert (stored.status, stored.attempts, stored.lease_until) == ("processing", 1, T0 + LEASE_MS)
    for member in type(stored).__struct_fields__:
        if member not in ("id", "sequence"):
            assert getattr(stored, member) == getattr(other, member), member
    assert counted(engine) == {"q": QueueCounts(processing=2)}


def test_its_receipt_acks_it(engine):
    _, deliveries = run(engine, produce("x"), claim()).outcomes
    assert ack(engine, *receipts(deliveries))
    assert counted(engine) == {"q": QueueCounts()}


def test_it_is_ready_again_when_its_lease_ends(engine):
    run(engine, produce("x"), claim())
    assert has_no_message(engine, now=T0 + LEASE_MS - 1)
    (again,) = receive(engine, now=T0 + LEASE_MS)
    assert (again.content, again.attempts) == ("x", 2)


def test_the_first_of_them_are_claimed_and_the_others_stay(engine):
    sent = [produce(str(number), priority=100 + number % 2) for number in range(5)]
    outcomes = run(engine, *sent, claim(2), claim(1), claim(1, lease_ms=LEASE_MS + 1)).outcomes
    assert [contents(each) for each in outcomes[5:]] == [["1", "3"], ["0"], ["2"]]
    assert counted(engine) == {"q": QueueCounts(ready=1, processing=4)}
    assert contents(receive(engine, 9)) == ["4"]


def test_a_receiver_that_waits_gets_it(engine):
    assert woken_by(engine, produce("a"), produce("b", delay_ms=1), produce("c")) == ["a", "c"]
    assert contents(receive(engine, 9, now=T0 + 1)) == ["b"]


@pytest.mark.parametrize("fields", [{"attributes": {"k": "v"}}, {"ttl_ms": 5_000}, {"max_attempts": 1}, {}])
def test_messages_that_are_there_go_first(engine, fields):
    send(engine, "earlier")
    outcomes = run(engine, produce("a"), produce("b", **fields), claim(2)).outcomes
    assert contents(outcomes[-1]) == ["earlier", "a"]
    assert contents(receive(engine, 9)) == ["b"]


def test_a_message_with_more_columns_beside_it(engine):
    outcomes = run(engine, produce("a"), produce("b", attributes={"k": "v"}), produce("c"), claim(2)).outcomes
    assert contents(outcomes[-1]) == ["a", "b"]
    assert contents(receive(engine, 9)) == ["c"]


def test_a_message_that_is_due_later_beside_it(engine):
    outcomes = run(engine, produce("a"), produce("b", delay_ms=5), produce("c"), claim(9)).outcomes
    assert contents(outcomes[-1]) == ["a", "c"]
    assert contents(receive(engine, 9, now=T0 + 5)) == ["b"]


def test_other_messages_are_settled_in_the_same_batch(engine):
    send(engine, "first")
    first = receipts(receive(engine))
    send(engine, "second")
    (second,) = receipts(receive(engine))
    wrong = (second._replace(token=second.token ^ 1),)
    outcomes = run(engine, produce("a"), Ack("q", first), Ack("q", wrong), claim(9)).outcomes
    assert outcomes[1:3] == [(True,), (False,)]
    assert contents(outcomes[-1]) == ["a"]
    assert counted(engine) == {"q": QueueCounts(processing=2)}
