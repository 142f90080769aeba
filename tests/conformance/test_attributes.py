"""Attributes travel with their message, unread (S2, S4)."""

import pytest

from forq_trio.model.commands import SweepKind
from forq_trio.model.messages.types import QueueCounts

from .script import ack, fail, look, nack, receive_one, redrive, send, send_dead_letter, sweep


@pytest.fixture
def attributes(zero) -> dict[str, str]:
    return {"kind": "größe", "": "empty key", "quote": f'"\\\n{zero}', "b": "2", "a": "1"}


def test_s4_a_delivery_has_them_as_they_were_sent(engine, attributes):
    send(engine, attributes=attributes)
    delivery, _ = receive_one(engine)
    assert delivery.attributes == attributes
    assert list(delivery.attributes) == list(attributes)


def test_s4_a_reader_shows_them(engine, reader, attributes):
    produced = send(engine, attributes=attributes)
    assert reader.message("q", produced.id).attributes == attributes
    assert reader.peek("q", 1)[0].attributes == attributes
    assert reader.browse("q", None, 1)[0].attributes == attributes


@pytest.mark.parametrize("attributes", [None, {}])
def test_none_are_none(engine, attributes):
    produced = send(engine, attributes=attributes)
    assert look(engine, produced.id).attributes == {}
    assert receive_one(engine)[0].attributes == {}


def test_each_delivery_has_them_again(engine, attributes):
    send(engine, attributes=attributes)
    assert nack(engine, receive_one(engine)[1], 0)
    assert receive_one(engine)[0].attributes == attributes


def test_they_go_where_the_message_goes(engine, attributes):
    produced = send_dead_letter(engine, attributes=attributes)
    assert look(engine, produced.id, "q-dlq").attributes == attributes
    assert redrive(engine, produced.id) == (True,)
    assert receive_one(engine)[0].attributes == attributes


@pytest.mark.usefixtures("failed_stay")
def test_their_bytes_count_and_go_with_the_message(engine):
    produced = send(engine, "ab", attributes={"k": "ü"})
    assert look(engine, produced.id).bytes == 5
    assert engine.snapshot().counts == {"q": QueueCounts(ready=1, bytes=5)}
    fail(engine)
    assert engine.snapshot().counts["q"].bytes == 5
    sweep(engine, SweepKind.FAILED)
    assert engine.snapshot().counts == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1, bytes=5)}
    _, receipt = receive_one(engine, queue="q-dlq")
    assert ack(engine, receipt, queue="q-dlq")
    assert engine.snapshot().counts["q-dlq"] == QueueCounts()
