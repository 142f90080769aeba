"""Acknowledging: contract F4."""

import pytest

from forq_trio.model.commands import Ack, AckById, NackById
from forq_trio.model.messages.types import QueueCounts, Receipt

from .script import (
    LEASE_MS,
    T0,
    ack,
    counted,
    do,
    has_no_message,
    look,
    receipts,
    receive,
    receive_one,
    run,
    send,
)


def test_f4_an_acknowledged_message_is_gone(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert look(engine, produced.id) is None
    assert counted(engine) == {"q": QueueCounts()}
    assert has_no_message(engine, now=T0 + LEASE_MS)


def test_f4_a_second_ack_finds_nothing(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert not ack(engine, receipt)


def test_f4_each_receipt_is_answered_for_itself(engine):
    for _ in range(3):
        send(engine)
    first, second, third = receipts(receive(engine, 3))
    assert ack(engine, second)
    assert do(engine, Ack("q", (first, second, Receipt(99, 1), third))) == (True, False, False, True)


def test_f4_twice_in_one_request_or_one_batch_counts_once(engine):
    send(engine)
    send(engine)
    first, second = receipts(receive(engine, 2))
    assert do(engine, Ack("q", (first, first))) == (True, False)
    assert run(engine, Ack("q", (second,)), Ack("q", (second,))).outcomes == [(True,), (False,)]


def test_f4_the_message_id_must_be_that_of_the_receipt(engine):
    send(engine)
    send(engine)
    first, second = receive(engine, 2)
    receipt = Receipt.parse(first.receipt)
    assert do(engine, Ack("q", (receipt,), second.id)) == (False,)
    assert do(engine, Ack("q", (receipt,), first.id)) == (True,)


def test_f4_an_ack_after_the_lease_ended_holds_until_somebody_else_claims(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert ack(engine, receipt, now=T0 + 11)
    assert counted(engine) == {"q": QueueCounts()}


def test_f4_an_ack_wins_over_the_end_of_its_lease_in_the_same_batch(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    assert ack(engine, receipt, now=T0 + 10)
    assert has_no_message(engine, now=T0 + 10)


def test_f4_without_a_receipt_the_message_in_process_is_removed(engine):
    delivered = send(engine)
    receive_one(engine)
    assert do(engine, AckById("q", delivered.id)) is True
    assert do(engine, AckById("q", delivered.id)) is False
    assert counted(engine) == {"q": QueueCounts()}


def test_f4_without_a_receipt_only_a_message_in_process_of_this_queue(engine):
    ready = send(engine)
    delayed = send(engine, process_after=T0 + 5)
    assert do(engine, AckById("q", ready.id)) is False
    assert do(engine, AckById("q", delayed.id)) is False
    receive_one(engine)
    assert do(engine, AckById("other", ready.id)) is False
    assert counted(engine) == {"q": QueueCounts(processing=1, delayed=1)}


@pytest.mark.parametrize("message_id", ["00000000-0000-7000-8000-000000000000", ""])
def test_f4_an_unknown_id_finds_nothing(engine, message_id):
    assert do(engine, AckById("q", message_id)) is False


@pytest.mark.parametrize(("by_id", "left"), [(AckById, 0), (NackById, 1)])
def test_by_id_with_a_token_it_is_fenced(engine, by_id, left):
    """Receipts of Forq itself say no sequence (F4)."""
    sent = send(engine)
    _, receipt = receive_one(engine)
    assert do(engine, by_id("q", sent.id, receipt.token + 1)) is False
    assert do(engine, by_id("other", sent.id, receipt.token)) is False
    assert do(engine, by_id("q", sent.id, receipt.token)) is True
    assert do(engine, by_id("q", sent.id, receipt.token)) is False
    assert counted(engine).get("q", QueueCounts()).total == left


def test_by_id_with_a_token_it_is_good_until_the_next_claim(engine):
    sent = send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    _, newer = receive_one(engine, now=T0 + 10, lease_ms=10)
    assert do(engine, AckById("q", sent.id, receipt.token), T0 + 11) is False
    assert do(engine, AckById("q", sent.id), T0 + 20) is False
    assert do(engine, AckById("q", sent.id, newer.token), T0 + 20) is True
