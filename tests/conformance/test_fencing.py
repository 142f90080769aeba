"""Only the holder of the current receipt can change a claimed message (contract F4, F5)."""

import pytest

from forq_trio.model.commands import Ack, AckWithResult, DiscardMessages, Extend, Nack, Release, SweepKind
from forq_trio.model.messages.types import Receipt

from .script import DAY_MS, T0, ack, do, fail, look, nack, receive_one, run, send, sweep

COMMANDS = [
    pytest.param(lambda queue, receipt: Ack(queue, (receipt,)), id="ack"),
    pytest.param(lambda queue, receipt: AckWithResult(queue, (receipt,), "r", 1), id="ack-with-result"),
    pytest.param(lambda queue, receipt: Nack(queue, (receipt,)), id="nack"),
    pytest.param(lambda queue, receipt: Extend(queue, (receipt,), 60_000), id="extend"),
    pytest.param(lambda queue, receipt: Extend(queue, (receipt,), 0), id="extend-zero"),
    pytest.param(lambda queue, receipt: DiscardMessages(queue, (receipt,), "no use"), id="discard"),
    pytest.param(lambda queue, receipt: Release(queue, (receipt,)), id="release"),
]
everyone = pytest.mark.parametrize("command", COMMANDS)


def refused(engine, command, receipt, *, queue="q", message_queue="q", now=T0):
    """The command is refused and the message stays as it was."""
    before = look(engine, only_id(engine, message_queue), message_queue)
    outcome = do(engine, command(queue, receipt), now)
    return outcome[0] in (False, None) and look(engine, before.id, message_queue) == before


def only_id(engine, queue):
    """The id of the one message of a queue."""
    reader = engine.open_reader()
    try:
        (message,) = reader.browse(queue, None, 2)
    finally:
        reader.close()
    return message.id


@everyone
def test_a_receipt_of_an_earlier_delivery(engine, command):
    send(engine)
    _, stale = receive_one(engine, lease_ms=10)
    receive_one(engine, now=T0 + 10)
    assert refused(engine, command, stale, now=T0 + 11)


@everyone
def test_a_receipt_after_a_nack(engine, command):
    send(engine)
    _, receipt = receive_one(engine)
    assert nack(engine, receipt)
    assert refused(engine, command, receipt)


@everyone
@pytest.mark.usefixtures("failed_stay")
def test_a_receipt_of_a_failed_message(engine, command):
    send(engine)
    fail(engine, attempts=4)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert refused(engine, command, receipt, now=T0 + 11)


@everyone
def test_a_receipt_of_a_message_that_moved(engine, command):
    send(engine)
    fail(engine, attempts=4)
    _, receipt = receive_one(engine)
    assert nack(engine, receipt)
    sweep(engine, SweepKind.FAILED)
    assert refused(engine, command, receipt, message_queue="q-dlq")
    assert refused(engine, command, receipt, queue="q-dlq", message_queue="q-dlq")


@everyone
def test_a_receipt_of_a_message_that_expired_after_its_lease(engine, command):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    run(engine, now=T0 + DAY_MS)
    now = T0 + DAY_MS
    assert refused(engine, command, receipt, message_queue="q-dlq", now=now)
    assert refused(engine, command, receipt, queue="q-dlq", message_queue="q-dlq", now=now)


@everyone
def test_a_good_receipt_for_another_queue(engine, command):
    send(engine)
    _, receipt = receive_one(engine)
    assert refused(engine, command, receipt, queue="other")


@everyone
def test_a_guessed_receipt(engine, command):
    produced = send(engine)
    for token in (0, 1, 2**62 - 1):
        assert refused(engine, command, Receipt(produced.sequence, token))
    _, receipt = receive_one(engine)
    assert refused(engine, command, Receipt(produced.sequence, receipt.token ^ 1))
    assert refused(engine, command, Receipt(produced.sequence + 1, receipt.token))
    assert refused(engine, command, Receipt(0, 0))
    assert ack(engine, receipt)


def test_f3_only_one_of_two_holders_can_acknowledge(engine):
    send(engine)
    _, first = receive_one(engine, lease_ms=10)
    _, second = receive_one(engine, now=T0 + 10)
    outcomes = run(engine, Ack("q", (first,)), Ack("q", (second,)), now=T0 + 11).outcomes
    assert outcomes == [(False,), (True,)]
