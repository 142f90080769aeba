"""Priority: the higher one first, arrival within; whatever happened to the message meanwhile (S6)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import SweepKind

from .script import T0, contents, drain, fail, nack, receive, receive_one, run, send, sweep


def test_s6_higher_first_and_arrival_within(engine):
    for content, priority in (("a", 1), ("b", 2), ("c", 1), ("d", 0), ("e", 2)):
        send(engine, content, priority=priority)
    assert drain(engine) == ["b", "e", "a", "c", "d"]


def test_s6_the_ends_of_the_range(engine):
    send(engine, "low", priority=limits.PRIORITY_MIN)
    send(engine, "default")
    send(engine, "high", priority=limits.PRIORITY_MAX)
    assert contents(receive(engine, 3)) == ["high", "default", "low"]


def test_a_later_higher_one_overtakes_what_waits(engine):
    send(engine, "waits")
    send(engine, "urgent", priority=limits.PRIORITY_DEFAULT + 1)
    assert drain(engine) == ["urgent", "waits"]


def test_a_delivery_says_its_priority(engine):
    send(engine, priority=7)
    assert receive_one(engine)[0].priority == 7


@pytest.mark.parametrize("delay_ms", [0, 5])
def test_a_message_given_back_keeps_its_priority_and_place(engine, delay_ms):
    send(engine, "first", priority=5)
    send(engine, "second", priority=5)
    send(engine, "low", priority=4)
    assert nack(engine, receive_one(engine)[1], delay_ms)
    assert drain(engine, now=T0 + delay_ms) == ["first", "second", "low"]


def test_a_delayed_message_takes_its_place_by_priority_when_it_is_due(engine):
    send(engine, "delayed", priority=900, delay_ms=10)
    send(engine, "ready", priority=100)
    assert run(engine, now=T0 + 10).woken == {"q"}
    assert drain(engine, now=T0 + 10) == ["delayed", "ready"]


def test_dead_letters_keep_their_priority(engine):
    for content, priority in (("low", 1), ("high", 2)):
        send(engine, content, priority=priority)
        fail(engine)
    sweep(engine, SweepKind.FAILED)
    assert drain(engine, queue="q-dlq") == ["high", "low"]
