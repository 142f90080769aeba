"""Outboxes: messages and position are one commit, and a relay that starts elsewhere stores nothing."""

from operator import attrgetter

from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.commands import Configure, RelayMessages
from forq_trio.model.errors import Forbidden, QueueFull, TooManyOutboxes
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.outboxes.types import OutboxPosition, RelayedMessage
from forq_trio.model.queues.settings import SettingsChange

from .script import do

by_sequence = attrgetter("sequence")


def relay(engine, after, *ids, outbox="o", queue="q", key=None):
    messages = tuple(RelayedMessage(id, queue, NewMessage(f"m{id}")) for id in ids)
    command = (
        RelayMessages(outbox, after, messages) if key is None else RelayMessages(outbox, after, messages, key)
    )
    return do(engine, command)


def stored(reader, queue="q"):
    return [message.content for message in sorted(reader.browse(queue, None, 100), key=by_sequence)]


def test_messages_are_stored_in_their_order_and_the_position_with_them(engine, reader):
    assert relay(engine, 0, 1, 2, 5) == OutboxPosition(5)
    assert relay(engine, 5, 9) == OutboxPosition(9)
    assert stored(reader) == ["m1", "m2", "m5", "m9"]


def test_a_relay_that_is_repeated_stores_nothing(engine, reader):
    relay(engine, 0, 1, 2)
    assert relay(engine, 0, 1, 2) == OutboxPosition(2)
    assert relay(engine, 1, 2, 3) == OutboxPosition(2)
    assert relay(engine, 7, 8) == OutboxPosition(2)
    assert stored(reader) == ["m1", "m2"]


def test_the_position_is_read_by_a_relay_of_nothing(engine):
    assert relay(engine, 0) == OutboxPosition(0)
    relay(engine, 0, 3)
    assert relay(engine, 0) == relay(engine, 3) == OutboxPosition(3)


def test_each_outbox_has_a_position_of_its_own(engine, reader):
    relay(engine, 0, 1)
    assert relay(engine, 0, 1, outbox="p") == OutboxPosition(1)
    assert stored(reader) == ["m1", "m1"]


def test_the_first_refused_message_ends_a_relay(engine, reader):
    do(engine, Configure("q", SettingsChange(max_messages=2)))
    outcome = relay(engine, 0, 1, 2, 3, 4)
    assert (outcome.position, outcome.refused.id, outcome.refused.code) == (2, 3, QueueFull.code)
    assert relay(engine, 2, 3).position == 2
    assert stored(reader) == ["m1", "m2"]


def test_an_outbox_of_which_nothing_was_stored_is_not_remembered(engine):
    do(engine, Configure("q", SettingsChange(max_messages=1)))
    relay(engine, 0, 1)
    assert relay(engine, 0, 1, outbox="p").position == 0
    assert relay(engine, 0, 1, outbox="p", queue="r") == OutboxPosition(1)


def test_there_are_so_many_outboxes(engine, monkeypatch):
    monkeypatch.setattr(limits, "OUTBOXES_MAX", 3)
    monkeypatch.setattr(limits, "OUTBOXES_A_KEY_MAX", 1)
    token = Key("t", "*")
    assert relay(engine, 0, 1, outbox="a", key=token) == OutboxPosition(1)
    assert isinstance(relay(engine, 0, 1, outbox="b", key=token), TooManyOutboxes)
    assert relay(engine, 0, 1, outbox="b") == relay(engine, 0, 1, outbox="c") == OutboxPosition(1)
    assert isinstance(relay(engine, 0, 1, outbox="d"), TooManyOutboxes)
    assert relay(engine, 1, 2, outbox="a", key=token) == OutboxPosition(2)


def test_an_outbox_belongs_to_the_key_that_relayed_it_first(engine, reader):
    """Another one could move its position, and the relay would take messages for sent that never were."""
    owner, other = Key("t", "*"), Key("u", "*")
    assert relay(engine, 0, 1, key=owner) == OutboxPosition(1)
    assert isinstance(relay(engine, 1, 5, key=other), Forbidden)
    assert isinstance(do(engine, RelayMessages("o", 0, (), other)), Forbidden)
    assert relay(engine, 1, 2) == OutboxPosition(2)
    assert relay(engine, 2, 3, key=owner) == OutboxPosition(3)
    assert isinstance(relay(engine, 3, 4, key=other), Forbidden)
    assert stored(reader) == ["m1", "m2", "m3"]
