"""Offers of messages with a key: created, updated, ignored (contract D1-D9, D36)."""

import pytest

from forq_trio.model.commands import OfferMany
from forq_trio.model.errors import KeyExists, QueueFull
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import OFFERED, PRODUCED, Event

from .keyed import offer, offering, pending, read
from .script import (
    DAY_MS,
    LEASE_MS,
    T0,
    ack,
    configure,
    contents,
    counted,
    drain,
    has_no_message,
    look,
    nack,
    pause,
    receive,
    receive_one,
    run,
    send,
)

LATER = T0 + 10_000
BOTH = ("createOrUpdate", "onceMore")
"""The modes that change a message that is not in process."""


def test_d01_if_absent_stores_a_new_key(engine):
    offered = offer(engine, mode="createIfAbsent", delay_ms=10_000)
    assert (offered.outcome, offered.process_after, offered.once_more) == ("created", LATER, False)
    assert pending(engine).message.id == offered.id
    assert has_no_message(engine)
    assert contents(receive(engine, now=LATER)) == ["x"]


def test_d02_if_absent_leaves_a_pending_one_as_it_is(engine):
    first = offer(engine, delay_ms=10_000)
    again = offer(engine, content="other", mode="createIfAbsent", now=T0 + 1)
    assert (again.outcome, again.id, again.process_after) == ("ignored", first.id, LATER)
    assert (pending(engine).message.content, pending(engine).message.process_after) == ("x", LATER)


def test_d03_an_offer_of_a_new_key_creates(engine):
    offered = offer(engine)
    assert (offered.outcome, offered.revision) == ("created", offered.sequence)
    message = look(engine, offered.id)
    assert (message.status, message.attempts, message.received_at) == ("ready", 0, T0)
    keyed = message.keyed
    assert (keyed.key, keyed.kind, keyed.mode, keyed.offers) == ("k", "", "createOrUpdate", 1)
    assert (keyed.first_offer_at, keyed.last_offer_at, keyed.max_wait_until) == (T0, T0, None)


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize(
    ("content", "delay_ms", "due"), [("new", 10_000, LATER), ("x", 20_000, T0 + 20_000), ("new", 1, T0 + 1)]
)
def test_d04_another_content_or_time_updates(engine, mode, content, delay_ms, due):
    first = offer(engine, delay_ms=10_000)
    updated = offer(engine, content=content, delay_ms=delay_ms, mode=mode)
    assert (updated.outcome, updated.id, updated.sequence) == ("updated", first.id, first.sequence)
    assert updated.revision > first.revision
    assert counted(engine)["q"].total == 1
    assert has_no_message(engine, now=due - 1)
    assert contents(receive(engine, 2, now=due)) == [content]


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 7},
        {"ttl_ms": 5_000},
        {"attributes": {"k": "v"}},
        {"group": "g"},
        {"max_attempts": 2},
        {"dead_letter_queue": "other"},
        {"dead_letter_queue": ""},
    ],
)
def test_d04_another_option_updates(engine, options):
    offer(engine, delay_ms=10_000)
    assert offer(engine, delay_ms=10_000, **options).outcome == "updated"
    assert offer(engine, delay_ms=10_000, **options).outcome == "ignored"
    message = pending(engine).message
    assert {name: getattr(message, name) for name in options} == options
    assert message.expires_after == LATER + options.get("ttl_ms", DAY_MS)


@pytest.mark.parametrize("mode", BOTH)
def test_d05_the_same_to_the_millisecond_is_ignored(engine, mode):
    first = offer(engine, process_after=LATER)
    before = pending(engine).message
    again = offer(engine, process_after=LATER, mode=mode, now=T0 + 5)
    assert (again.outcome, again.revision, again.process_after) == ("ignored", first.revision, LATER)
    after = pending(engine).message
    assert (after.received_at, after.updated_at) == (before.received_at, before.updated_at) == (T0, T0)
    assert (after.keyed.offers, after.keyed.last_offer_at) == (2, T0 + 5)
    assert offer(engine, process_after=LATER + 1, mode=mode).outcome == "updated"


def test_d05_no_attributes_are_the_same_as_none(engine):
    offer(engine, process_after=LATER)
    assert offer(engine, process_after=LATER, attributes={}).outcome == "ignored"


def test_d05_without_a_time_it_is_due_like_one_that_is_due_already(engine):
    offer(engine)
    assert offer(engine, now=T0 + 5).outcome == "ignored"
    offer(engine, "later", delay_ms=5_000)
    assert offer(engine, "later", now=T0 + 4_999).outcome == "updated"


def test_d05_without_a_time_it_is_the_same_in_a_queue_with_a_delay_once_it_is_due(engine):
    configure(engine, delay_ms=1_000)
    offer(engine)
    assert offer(engine, now=T0 + 1_000).outcome == "ignored"


def test_d05_the_time_is_the_one_that_was_offered_whatever_nacks_made_of_it(engine):
    offer(engine, process_after=T0)
    _, receipt = receive_one(engine)
    assert nack(engine, receipt, 5_000)
    assert offer(engine, process_after=T0).outcome == "ignored"
    assert look(engine, pending(engine).message.id).status == "delayed"


def test_d06_the_same_leaves_the_lease_of_one_in_process(engine):
    offer(engine, process_after=T0)
    _, receipt = receive_one(engine)
    assert offer(engine, process_after=T0).outcome == "ignored"
    assert has_no_message(engine)
    assert ack(engine, receipt)
    assert read(engine) is None


def test_d07_another_content_makes_one_in_process_claimable_anew(engine):
    offer(engine)
    delivery, receipt = receive_one(engine)
    assert delivery.attempts == 1
    result = run(engine)
    updated = offer(engine, content="new", now=T0 + 1)
    assert (updated.outcome, updated.id) == ("updated", delivery.id)
    message = look(engine, delivery.id)
    assert (message.status, message.attempts, message.lease_until) == ("ready", 0, None)
    assert not ack(engine, receipt, now=T0 + 1)
    assert not nack(engine, receipt, now=T0 + 1)
    (again,) = receive(engine, now=T0 + 1)
    assert (again.content, again.attempts, again.sequence) == ("new", 1, delivery.sequence)
    assert result.next_due_ms == T0 + LEASE_MS


def test_d07_another_time_hides_it_until_then(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    assert offer(engine, delay_ms=5_000).outcome == "updated"
    assert not ack(engine, receipt)
    assert has_no_message(engine, now=T0 + 4_999)
    assert contents(receive(engine, now=T0 + 5_000)) == ["x"]


def test_d07_the_update_of_one_in_process_longer_than_it_lives_is_delivered(engine):
    offer(engine, ttl_ms=1_000)
    receive_one(engine)
    assert offer(engine, content="new", ttl_ms=1_000, now=T0 + 5_000).outcome == "updated"
    run(engine, now=T0 + 5_000)
    assert contents(receive(engine, now=T0 + 5_000)) == ["new"]


def test_d07_its_failures_are_forgotten(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    assert nack(engine, receipt, 0, "broke")
    offered = offer(engine, content="new")
    message = look(engine, offered.id)
    assert (message.attempts, message.failures, message.last_error) == (0, (), None)


@pytest.mark.parametrize(
    "key", ["a", "ä" * 200, "..", "/", "%2F", "a_b%c'\"d", "customer/41", "🙂" * 200, " ", "\x01"]
)
def test_d08_any_key_comes_back_as_it_was(engine, key):
    offered = offer(engine, key, kind="größe/%")
    assert pending(engine, key, "größe/%").message.id == offered.id
    (delivery,) = receive(engine)
    assert (delivery.key, delivery.kind) == (key, "größe/%")


def test_d36_queues_and_kinds_do_not_see_each_other(engine):
    first = offer(engine)
    assert offer(engine, kind="other").outcome == "created"
    assert offer(engine, queue="elsewhere").outcome == "created"
    assert offer(engine, "K").outcome == "created"
    assert pending(engine).message.id == first.id
    assert [read(engine, "k", "third"), read(engine, queue="third")] == [None, None]


def test_create_refuses_a_pending_key(engine):
    offer(engine, mode="create")
    with pytest.raises(KeyExists):
        offer(engine, content="other", mode="create")
    receive_one(engine)
    with pytest.raises(KeyExists):
        offer(engine, mode="create")
    assert pending(engine).message.content == "x"
    assert pending(engine).message.keyed.offers == 1


def test_a_key_is_free_once_its_message_is_gone(engine):
    first = offer(engine, mode="create")
    assert drain(engine) == ["x"]
    again = offer(engine, mode="create")
    assert again.outcome == "created"
    assert again.id != first.id


def test_messages_without_a_key_are_as_ever(engine):
    send(engine)
    offer(engine)
    deliveries = receive(engine, 2)
    assert [(each.key, each.kind) for each in deliveries] == [(None, ""), ("k", "")]
    assert look(engine, deliveries[0].id).keyed is None


def test_offers_are_counted_by_their_outcome(engine):
    offerings = (offering(), offering(), offering(content="y"), offering("l"))
    result = run(engine, OfferMany("q", offerings))
    assert result.events == [
        Event(OFFERED, "q", 2, "created"),
        Event(OFFERED, "q", 1, "ignored"),
        Event(OFFERED, "q", 1, "updated"),
        Event(PRODUCED, "q", 2),
    ]
    assert result.woken == {"q"}


def test_an_update_keeps_the_place(engine):
    for key in "abc":
        offer(engine, key, key)
    offer(engine, "a", "a2")
    assert drain(engine) == ["a2", "b", "c"]


def test_an_update_of_the_priority_moves(engine):
    for key in "abc":
        offer(engine, key, key)
    offer(engine, "c", "c2", priority=900)
    assert drain(engine) == ["c2", "a", "b"]


def test_a_paused_queue_takes_offers(engine):
    pause(engine)
    offer(engine)
    assert offer(engine, content="new").outcome == "updated"
    assert has_no_message(engine)


def test_a_full_queue_refuses_a_new_key_and_takes_an_update(engine):
    configure(engine, max_messages=1)
    offer(engine)
    with pytest.raises(QueueFull):
        offer(engine, "l")
    assert offer(engine, content="new").outcome == "updated"
    assert offer(engine, content="new", mode="createIfAbsent").outcome == "ignored"


@pytest.mark.parametrize("overflow", Overflow)
def test_an_update_that_grows_past_the_bytes_of_its_queue_is_refused(engine, overflow):
    configure(engine, max_bytes=4, overflow=overflow)
    offer(engine, content="xxx")
    assert offer(engine, content="yyyy").outcome == "updated"
    with pytest.raises(QueueFull):
        offer(engine, content="zzzzz")
    assert pending(engine).message.content == "yyyy"
    assert offer(engine, content="z").outcome == "updated"
    assert engine.snapshot().counts["q"].bytes == 1


def test_a_queue_that_is_too_full_takes_an_update_that_does_not_grow(engine):
    offer(engine, content="xxxx")
    configure(engine, max_bytes=1)
    assert offer(engine, content="yyy").outcome == "updated"


def test_a_held_one_is_ready_when_it_is_updated(engine):
    configure(engine, group_in_flight_max=1)
    offer(engine, "a", "a", group="g")
    offer(engine, "b", "b", group="g")
    _, receipt = receive_one(engine)
    assert has_no_message(engine)
    assert pending(engine, "b").message.status == "held"
    assert offer(engine, "b", "b2", group="g").outcome == "updated"
    assert has_no_message(engine)
    assert ack(engine, receipt)
    assert contents(receive(engine)) == ["b2"]


def test_an_update_of_one_in_process_lets_the_next_of_its_group_go(engine):
    configure(engine, group_in_flight_max=1)
    offer(engine, "a", "a", group="g")
    send(engine, "b", group="g")
    receive_one(engine)
    assert has_no_message(engine)
    offer(engine, "a", "a2", group="g", delay_ms=5_000)
    assert contents(receive(engine)) == ["b"]


def test_a_ready_one_that_changes_its_group_lets_the_next_of_the_old_group_go(engine):
    configure(engine, group_in_flight_max=1)
    for key in "abc":
        offer(engine, key, key, group="g")
    _, receipt = receive_one(engine)
    assert has_no_message(engine)
    assert ack(engine, receipt)
    assert offer(engine, "b", "b", group="other").outcome == "updated"
    assert sorted(contents(receive(engine, 2))) == ["b", "c"]


def test_an_update_of_one_in_process_leaves_space_in_a_bounded_queue(engine):
    configure(engine, in_flight_max=1)
    offer(engine, "a", "a")
    send(engine, "b")
    receive_one(engine)
    assert has_no_message(engine)
    offer(engine, "a", "a2", delay_ms=5_000)
    assert contents(receive(engine)) == ["b"]
