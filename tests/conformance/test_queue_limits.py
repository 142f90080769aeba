"""Bounds on messages and bytes, and the three ways to deal with one message too many (S2, S10)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Produce, ProduceEach, ProduceMany
from forq_trio.model.errors import Overloaded, QueueFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import REASON_OVERFLOW, QueueCounts
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, PRODUCED, Event

from .script import (
    T0,
    ack,
    configure,
    contents,
    counted,
    do,
    drain,
    look,
    receive,
    receive_one,
    run,
    send,
    woken_by,
)

DROPPING = [Overflow.DROP_OLDEST, Overflow.DEAD_LETTER]


def many(*texts, queue="q", **fields):
    return ProduceMany(queue, tuple(NewMessage(text, **fields) for text in texts))


def is_full(engine, content="x", **fields):
    return isinstance(do(engine, Produce("q", NewMessage(content, **fields))), QueueFull)


def test_s2_one_too_many_is_refused_and_changes_nothing(engine):
    configure(engine, max_messages=2)
    send(engine, "a")
    sequence = send(engine, "b").sequence
    result = run(engine, Produce("q", NewMessage("c")))
    assert isinstance(result.outcomes[0], QueueFull)
    assert (result.events, result.woken) == ([], frozenset())
    assert counted(engine) == {"q": QueueCounts(ready=2)}
    assert ack(engine, receive_one(engine)[1])
    assert send(engine, "c").sequence == sequence + 1
    assert drain(engine) == ["b", "c"]


@pytest.mark.usefixtures("failed_stay")
def test_s2_messages_in_every_state_count(engine):
    configure(engine, max_messages=4, max_attempts=1, group_in_flight_max=1)
    for fields in ({}, {"group": "g"}, {"group": "g"}, {"delay_ms": 5}):
        send(engine, **fields)
    receive(engine, 3, lease_ms=1)
    assert counted(engine) == {"q": QueueCounts(processing=2, held=1, delayed=1)}
    assert is_full(engine)
    run(engine, now=T0 + 1)
    assert counted(engine)["q"].failed == 2
    assert is_full(engine)


def test_bytes_are_bounded_too(engine):
    configure(engine, max_bytes=10)
    send(engine, "größe")
    assert is_full(engine, "1234")
    assert is_full(engine, "123", attributes={"k": ""})
    send(engine, "1", attributes={"k": "v"})
    assert engine.snapshot().counts["q"].bytes == 10
    assert is_full(engine)
    assert not is_full(engine, "")


@pytest.mark.parametrize("overflow", list(Overflow))
def test_a_message_bigger_than_the_bound_never_fits(engine, overflow):
    configure(engine, max_bytes=10, overflow=overflow)
    send(engine, "stays")
    assert is_full(engine, "01234567890")
    assert contents(receive(engine)) == ["stays"]


def test_a_request_is_stored_whole_or_not_at_all(engine):
    configure(engine, max_messages=3)
    send(engine, "a")
    assert isinstance(do(engine, many("b", "c", "d")), QueueFull)
    assert len(do(engine, many("b", "c"))) == 2
    assert drain(engine) == ["a", "b", "c"]


def test_commands_of_a_batch_see_what_those_before_them_stored(engine):
    configure(engine, max_messages=2)
    first, second, third, other = run(
        engine,
        Produce("q", NewMessage("a")),
        Produce("q", NewMessage("b")),
        Produce("q", NewMessage("c")),
        Produce("other", NewMessage("d")),
    ).outcomes
    assert (first.sequence, second.sequence, other.sequence) == (1, 2, 3)
    assert isinstance(third, QueueFull)


def test_each_is_stored_alone_in_their_order(engine):
    configure(engine, max_messages=1)
    texts = (("q", "a"), ("q", "b"), ("other", "c"), ("q-dlq", "d"), ("q", "e"))
    outcomes = do(engine, ProduceEach(tuple((queue, NewMessage(text)) for queue, text in texts)))
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Produced",
        "QueueFull",
        "Produced",
        "Produced",
        "QueueFull",
    ]
    assert [drain(engine, queue=queue) for queue in ("q", "other", "q-dlq")] == [["a"], ["c"], ["d"]]


@pytest.mark.parametrize("overflow", list(Overflow))
def test_s10_a_bound_of_the_senders_own_only_refuses(engine, overflow):
    configure(engine, overflow=overflow)
    messages = tuple(("q", NewMessage(text)) for text in "abc")
    stored = do(engine, ProduceEach(messages, 2))
    assert isinstance(stored[2], QueueFull)
    assert [each.sequence for each in stored[:2]] == [1, 2]
    assert isinstance(do(engine, ProduceEach(messages[:1], 2))[0], QueueFull)
    assert drain(engine) == ["a", "b"]


def test_too_many_queues_are_an_answer_too(engine, monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 1)
    messages = tuple((queue, NewMessage("x")) for queue in ("a", "b", "a"))
    first, second, third = do(engine, ProduceEach(messages))
    assert isinstance(second, Overloaded)
    assert (first.sequence, third.sequence) == (1, 2)


@pytest.mark.parametrize(
    ("overflow", "event"), [(Overflow.DROP_OLDEST, CLEANED_UP), (Overflow.DEAD_LETTER, MOVED_TO_DLQ)]
)
def test_the_oldest_makes_room(engine, overflow, event):
    configure(engine, max_messages=2, overflow=overflow)
    first, *_ = do(engine, many("a", "b"))
    result = run(engine, Produce("q", NewMessage("c")), now=T0 + 5)
    assert result.events == [Event(event, "q", 1, "overflow"), Event(PRODUCED, "q", 1)]
    moved = look(engine, first.id, "q-dlq")
    assert (moved is None) is (overflow is Overflow.DROP_OLDEST)
    if moved is not None:
        assert (moved.failure_reason, moved.source_queue) == (REASON_OVERFLOW, "q")
        assert moved.dead_lettered_at == T0 + 5
    assert drain(engine) == ["b", "c"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_the_lowest_priority_makes_room_first(engine, overflow):
    configure(engine, max_messages=3, overflow=overflow)
    for content, priority in (("high", 9), ("low 1", 1), ("low 2", 1)):
        send(engine, content, priority=priority)
    do(engine, many("new", "newer", priority=0))
    assert drain(engine) == ["high", "new", "newer"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_in_a_lifo_queue_the_oldest_is_the_last_in_line(engine, overflow):
    configure(engine, max_messages=3, overflow=overflow, order=Order.LIFO)
    do(engine, many(*"abcd"[:3]))
    do(engine, many("d"))
    assert drain(engine) == ["d", "c", "b"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_as_many_make_room_as_the_bytes_need(engine, overflow):
    configure(engine, max_bytes=6, overflow=overflow)
    do(engine, many("ab", "cd", "ef"))
    send(engine, "ghi")
    assert drain(engine) == ["ef", "ghi"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_only_ready_messages_make_room(engine, overflow):
    configure(engine, max_messages=3, overflow=overflow)
    send(engine, "in process")
    receive(engine)
    send(engine, "delayed", delay_ms=5)
    send(engine, "ready")
    send(engine, "takes its place")
    assert contents(receive(engine, 9)) == ["takes its place"]
    assert is_full(engine)
    assert counted(engine)["q"] == QueueCounts(processing=2, delayed=1)


@pytest.mark.parametrize("overflow", DROPPING)
def test_what_a_command_sends_makes_no_room_for_itself(engine, overflow):
    configure(engine, max_messages=3, overflow=overflow)
    send(engine, "old")
    assert isinstance(do(engine, many(*"abcd")), QueueFull)
    assert len(do(engine, many(*"abc"))) == 3
    assert drain(engine) == ["a", "b", "c"]
    messages = tuple(("q", NewMessage(text)) for text in "abcd")
    assert isinstance(do(engine, ProduceEach(messages))[3], QueueFull)
    assert drain(engine) == ["a", "b", "c"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_commands_of_one_batch_push_each_other_out(engine, overflow):
    configure(engine, max_messages=1, overflow=overflow)
    outcomes = run(engine, *(Produce("q", NewMessage(text)) for text in "abc")).outcomes
    assert [each.sequence for each in outcomes] == [1, 2, 3]
    assert drain(engine) == ["c"]


@pytest.mark.parametrize("overflow", DROPPING)
def test_where_too_few_can_make_room_none_does(engine, overflow):
    configure(engine, max_messages=3, overflow=overflow)
    for content in "abc":
        send(engine, content)
    receive(engine, 2)
    assert isinstance(do(engine, many("d", "e")), QueueFull)
    assert contents(receive(engine)) == ["c"]


def test_without_a_dead_letter_queue_overflow_is_deleted(engine):
    configure(engine, max_messages=1, overflow=Overflow.DEAD_LETTER, dead_letter_queue="")
    send(engine)
    result = run(engine, Produce("q", NewMessage("new")))
    assert result.events == [Event(CLEANED_UP, "q", 1, "overflow"), Event(PRODUCED, "q", 1)]


def test_a_message_goes_its_own_way(engine):
    configure(engine, max_messages=1, overflow=Overflow.DEAD_LETTER)
    send(engine, "old", dead_letter_queue="own")
    assert woken_by(engine, Produce("q", NewMessage("new")), queue="own") == ["old"]


def test_a_bound_that_is_lowered_takes_nothing_away(engine):
    do(engine, many(*"abc"))
    configure(engine, max_messages=1)
    assert is_full(engine)
    assert drain(engine) == ["a", "b", "c"]


def test_a_bound_lowered_far_is_reached_by_the_next_send(engine):
    do(engine, many(*"abcd"))
    configure(engine, max_messages=2, overflow=Overflow.DROP_OLDEST)
    send(engine, "e")
    assert drain(engine) == ["d", "e"]
