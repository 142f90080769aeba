"""Newest first: queues whose name ends in _lifo (S6), and queues that are set so."""

from forq_trio.model.commands import Produce, ProduceMany, SweepKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Order

from .script import (
    T0,
    configure,
    contents,
    do,
    drain,
    fail,
    nack,
    receive,
    receive_one,
    redrive,
    send,
    sweep,
    woken_by,
)


def test_s6_newest_first_within_a_priority(engine):
    for content, priority in (("a", 1), ("b", 2), ("c", 1), ("d", 2)):
        send(engine, content, queue="q_lifo", priority=priority)
    assert drain(engine, queue="q_lifo") == ["d", "b", "c", "a"]


def test_several_at_once_come_newest_first(engine):
    do(engine, ProduceMany("q_lifo", tuple(map(NewMessage, "abc"))))
    assert contents(receive(engine, 3, queue="q_lifo")) == ["c", "b", "a"]


def test_a_message_given_back_stands_where_it_stood(engine):
    for content in "abc":
        send(engine, content, queue="q_lifo")
    delivery, receipt = receive_one(engine, queue="q_lifo")
    assert delivery.content == "c"
    send(engine, "d", queue="q_lifo")
    assert nack(engine, receipt, 0, queue="q_lifo")
    assert drain(engine, queue="q_lifo") == ["d", "c", "b", "a"]


def test_a_delayed_message_is_as_new_as_its_sequence(engine):
    send(engine, "delayed", queue="q_lifo", delay_ms=5)
    send(engine, "newer", queue="q_lifo")
    assert drain(engine, queue="q_lifo", now=T0 + 5) == ["newer", "delayed"]


def test_any_queue_can_be_set_to_it_for_what_is_sent_from_then_on(engine):
    for content in "ab":
        send(engine, content)
    configure(engine, order=Order.LIFO)
    for content in "cd":
        send(engine, content)
    assert drain(engine) == ["d", "c", "a", "b"]


def test_a_setting_goes_before_the_name(engine):
    configure(engine, "q_lifo", order=Order.FIFO)
    for content in "ab":
        send(engine, content, queue="q_lifo")
    assert drain(engine, queue="q_lifo") == ["a", "b"]
    configure(engine, "q_lifo", order=None)
    for content in "cd":
        send(engine, content, queue="q_lifo")
    assert drain(engine, queue="q_lifo") == ["d", "c"]


def test_groups_have_no_turns(engine):
    for content, group in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")):
        send(engine, content, queue="q_lifo", group=group)
    assert drain(engine, queue="q_lifo") == ["a3", "b1", "a2", "a1"]


def test_dead_letters_of_a_lifo_queue_are_in_order_of_arrival_again(engine):
    for content in "ab":
        send(engine, content, queue="q_lifo")
    for _ in range(2):
        fail(engine, queue="q_lifo")
    sweep(engine, SweepKind.FAILED)
    assert drain(engine, queue="q_lifo-dlq") == ["a", "b"]


def test_what_is_moved_into_a_lifo_queue_is_newest_first(engine):
    produced = [send(engine, content, queue="q_lifo") for content in "abc"]
    for _ in range(3):
        fail(engine, queue="q_lifo")
    sweep(engine, SweepKind.FAILED)
    ids = [each.id for each in produced]
    assert redrive(engine, *ids, queue="q_lifo-dlq") == (True, True, True)
    assert drain(engine, queue="q_lifo") == ["c", "b", "a"]


def test_a_receiver_that_waits_gets_the_newest(engine):
    sends = [Produce("q_lifo", NewMessage(content)) for content in "ab"]
    assert woken_by(engine, *sends, queue="q_lifo") == ["b", "a"]
