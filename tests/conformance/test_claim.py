"""Claiming: contract F3."""

from forq_trio.model.commands import Produce
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts, Receipt

from .script import (
    LEASE_MS,
    T0,
    claim,
    contents,
    counted,
    has_no_message,
    look,
    receive,
    receive_one,
    run,
    send,
)


def test_f3_nothing_there(engine):
    assert receive(engine) == ()
    assert counted(engine) == {}


def test_f3_a_delivery_carries_the_message(engine):
    produced = send(engine, "body")
    (delivery,) = receive(engine, lease_ms=1_500, now=T0 + 10)
    assert (delivery.id, delivery.content, delivery.attempts) == (produced.id, "body", 1)
    assert (delivery.sequence, delivery.received_at) == (produced.sequence, T0)
    assert delivery.lease_until == T0 + 1_510
    assert Receipt.parse(delivery.receipt).seq == produced.sequence


def test_a_delivery_carries_the_bound_on_attempts_of_the_message_itself(engine):
    send(engine, max_attempts=3)
    send(engine)
    assert [each.max_attempts for each in receive(engine, 2)] == [3, None]


def test_f3_the_claimed_message_is_in_process(engine):
    produced = send(engine)
    receive(engine, now=T0 + 10)
    message = look(engine, produced.id)
    assert (message.status, message.attempts) == ("processing", 1)
    assert message.processing_started_at == message.updated_at == T0 + 10
    assert message.lease_until == T0 + 10 + LEASE_MS
    assert message.received_at == message.process_after == T0


def test_f3_a_claimed_message_is_nobody_elses(engine):
    send(engine)
    receive_one(engine)
    assert has_no_message(engine, now=T0 + LEASE_MS - 1)


def test_f3_first_in_first_out(engine):
    for number in range(5):
        send(engine, str(number))
    assert contents(receive(engine, 2)) == ["0", "1"]
    assert contents(receive(engine, 2)) == ["2", "3"]
    assert contents(receive(engine, 2)) == ["4"]


def test_f3_order_is_by_arrival_not_by_due_time(engine):
    send(engine, "sent first, due last", process_after=T0 + 20)
    send(engine, "sent second, due first", process_after=T0 + 10)
    assert contents(receive(engine, 2, now=T0 + 30)) == ["sent first, due last", "sent second, due first"]


def test_higher_priority_goes_first_and_arrival_decides_within(engine):
    for content, priority in (("a", 100), ("b", 500), ("c", 0), ("d", 500), ("e", 100)):
        send(engine, content, priority=priority)
    assert contents(receive(engine, 5)) == ["b", "d", "a", "e", "c"]


def test_queues_do_not_mix(engine):
    send(engine, "a", queue="a")
    send(engine, "b", queue="b")
    assert contents(receive(engine, 9, queue="b")) == ["b"]
    assert contents(receive(engine, 9, queue="a")) == ["a"]


def test_queue_names_differ_by_case(engine):
    send(engine, queue="Q")
    assert has_no_message(engine, queue="q")


def test_every_claim_has_a_receipt_of_its_own(engine):
    for _ in range(50):
        send(engine)
    first = receive(engine, 50)
    second = receive(engine, 50, now=T0 + LEASE_MS)
    assert len({delivery.receipt for delivery in first + second}) == 100


def test_f3_each_claim_counts_an_attempt(engine):
    send(engine)
    attempts = [receive_one(engine, lease_ms=10, now=T0 + 10 * turn)[0].attempts for turn in range(5)]
    assert attempts == [1, 2, 3, 4, 5]


def test_a_lease_of_nothing_ends_with_the_next_batch(engine):
    produced = send(engine)
    result = run(engine, claim(lease_ms=0))
    ((delivery,),) = result.outcomes
    assert (delivery.attempts, delivery.lease_until) == (1, T0)
    assert result.next_due_ms == T0
    again, _ = receive_one(engine)
    assert (again.id, again.attempts) == (produced.id, 2)


def test_a_message_can_be_claimed_in_the_batch_that_sends_it(engine):
    produced, deliveries = run(engine, Produce("q", NewMessage("x")), claim()).outcomes
    assert [delivery.id for delivery in deliveries] == [produced.id]
    deliveries, produced = run(engine, claim(), Produce("q", NewMessage("x"))).outcomes
    assert [delivery.id for delivery in deliveries] == [produced.id]


def test_claiming_changes_the_counts(engine):
    for _ in range(3):
        send(engine)
    receive(engine, 2)
    assert counted(engine) == {"q": QueueCounts(ready=1, processing=2)}
