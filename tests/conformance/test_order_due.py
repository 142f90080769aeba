"""By due time: queues that are set to the order `due`."""

import pytest

from forq_trio.model.commands import ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Order

from .keyed import offer, reschedule
from .script import (
    T0,
    configure,
    contents,
    do,
    drain,
    nack,
    receive,
    receive_one,
    redrive,
    run,
    send,
    send_dead_letter,
)

LATER = T0 + 10_000


@pytest.fixture(autouse=True)
def by_due_time(engine):
    configure(engine, order=Order.DUE)


@pytest.mark.parametrize("key", [True, False])
def test_d21_three_messages_come_when_they_were_due(engine, key):
    for content, delay_ms in (("3", 3_000), ("1", 1_000), ("2", 2_000)):
        if key:
            offer(engine, content, content, delay_ms=delay_ms)
        else:
            send(engine, content, delay_ms=delay_ms)
    assert drain(engine, now=LATER) == ["1", "2", "3"]


@pytest.mark.parametrize("most", [50, 100, 250])
def test_d30_many_come_in_the_order_of_their_schedule(engine, most):
    for n in range(most):
        offer(engine, f"k{n}", str(n), process_after=T0 + 1 + n * 7919 % most)
    deliveries = receive(engine, most, now=LATER)
    assert [int(each.content) * 7919 % most for each in deliveries] == list(range(most))


def test_one_that_was_due_earlier_comes_first_whenever_it_was_sent(engine):
    send(engine, "now")
    send(engine, "before", process_after=T0 - 5)
    assert drain(engine) == ["before", "now"]


def test_of_one_time_the_first_that_was_sent(engine):
    do(engine, ProduceMany("q", tuple(map(NewMessage, "abc"))))
    assert drain(engine) == ["a", "b", "c"]


def test_a_higher_priority_comes_first(engine):
    send(engine, "early", process_after=T0 - 5)
    send(engine, "high", priority=900)
    assert drain(engine) == ["high", "early"]


def test_a_message_given_back_stands_where_it_stood(engine):
    send(engine, "a")
    _, receipt = receive_one(engine)
    send(engine, "b", now=T0 + 5)
    assert nack(engine, receipt, 100, now=T0 + 5)
    assert drain(engine, now=LATER) == ["a", "b"]


def test_an_update_and_a_new_due_time_move(engine):
    for key in "abc":
        offer(engine, key, key, process_after=T0)
    offer(engine, "a", "a2", process_after=T0 + 5)
    reschedule(engine, T0 + 4, "b")
    assert drain(engine, now=LATER) == ["c", "b", "a2"]


def test_what_was_sent_before_the_setting_stays_where_it_was(engine):
    configure(engine, order=Order.FIFO)
    send(engine, "a", delay_ms=5)
    send(engine, "b")
    configure(engine, order=Order.DUE)
    send(engine, "c")
    assert drain(engine, now=LATER) == ["a", "b", "c"]


def test_a_redrive_is_due_now(engine):
    configure(engine, order=Order.FIFO)
    dead = send_dead_letter(engine, "dead")
    configure(engine, order=Order.DUE)
    send(engine, "a")
    assert redrive(engine, dead.id, now=T0 + 5) == (True,)
    assert drain(engine, now=LATER) == ["a", "dead"]


def test_dead_letters_of_such_a_queue_are_in_order_of_arrival_again(engine):
    for content, delay_ms in (("a", 10), ("b", 5)):
        send(engine, content, delay_ms=delay_ms, ttl_ms=100)
    run(engine, now=LATER)
    assert drain(engine, queue="q-dlq", now=LATER) == ["a", "b"]


def test_groups_have_no_turns(engine):
    for content, group in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")):
        send(engine, content, group=group)
    assert contents(receive(engine, 4)) == ["a1", "a2", "b1", "a3"]
