"""Offers of several messages at once: each alone, in their order (contract D10-D16)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import OfferMany, Produce
from forq_trio.model.errors import KeyExists, QueueFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import DEFERRED, Deferred

from .engines import on_sql
from .keyed import offer, offer_all, offering, outcomes, pending, read
from .script import T0, configure, contents, counted, do, drain, receive, receive_one, run, send


def test_d10_two_new_ones_in_their_order(engine):
    offered = offer_all(engine, offering("a"), offering("b"))
    assert outcomes(offered) == ["created", "created"]
    assert [pending(engine, key).message.id for key in "ab"] == [each.id for each in offered]


def test_d11_one_that_is_there_and_a_new_one(engine):
    offer(engine, "a")
    assert outcomes(offer_all(engine, offering("a", "new"), offering("b"))) == ["updated", "created"]


def test_d12_if_absent_among_new_ones(engine):
    offer(engine, "a", "old")
    offered = offer_all(engine, offering("b"), offering("a", "new", mode="createIfAbsent"), offering("c"))
    assert outcomes(offered) == ["created", "ignored", "created"]
    assert pending(engine, "a").message.content == "old"


def test_d14_none_at_all(engine):
    assert offer_all(engine) == ()
    assert counted(engine) == {}


def test_d15_a_key_twice_finds_what_the_first_left(engine):
    offered = offer_all(
        engine,
        offering("a", "1"),
        offering("a", "2"),
        offering("a", "2"),
        offering("a", "3", mode="createIfAbsent"),
        offering("a", "4", delay_ms=5),
        offering("b"),
        offering("a", "5"),
    )
    names = ["created", "updated", "ignored", "ignored", "updated", "created", "updated"]
    assert outcomes(offered) == names
    assert len({each.id for each in offered}) == 2
    assert pending(engine, "a").message.content == "5"
    assert pending(engine, "a").message.keyed.offers == 6


def test_d16_an_offer_may_update_unless_it_says_otherwise(engine):
    offer(engine)
    assert offer(engine, content="new").outcome == "updated"


def test_a_refused_one_refuses_itself_alone(engine):
    offer(engine, "a")
    first, second, third = offer_all(
        engine, offering("b"), offering("a", "new", mode="create"), offering("c")
    )
    assert (first.outcome, third.outcome) == ("created", "created")
    assert isinstance(second, KeyExists)
    assert pending(engine, "a").message.content == "x"


def test_of_too_many_the_first_are_stored(engine):
    configure(engine, max_messages=2)
    offered = offer_all(engine, *[offering(key) for key in "abcd"], offering("a", "new"))
    assert [getattr(each, "outcome", type(each)) for each in offered] == [
        "created",
        "created",
        QueueFull,
        QueueFull,
        "updated",
    ]


def test_beside_a_send_in_one_commit(engine):
    run(engine, OfferMany("q", (offering("a"), offering("b"))), Produce("q", NewMessage("c")))
    assert counted(engine)["q"].ready == 3


def test_offers_that_evict_the_oldest(engine):
    configure(engine, max_messages=2, overflow=Overflow.DROP_OLDEST)
    send(engine, "old")
    offer(engine, "a", "a")
    offer(engine, "b", "b")
    assert drain(engine) == ["a", "b"]


def test_an_evicted_one_frees_its_key(engine):
    configure(engine, max_messages=1, overflow=Overflow.DROP_OLDEST)
    offer(engine, "a")
    offer(engine, "b")
    assert read(engine, "a") is None
    assert offer(engine, "a", mode="create").outcome == "created"


@pytest.mark.parametrize("overflow", [Overflow.DROP_OLDEST, Overflow.DEAD_LETTER])
def test_a_key_whose_message_the_same_batch_evicts_is_offered_anew(engine, overflow):
    configure(engine, max_messages=1, overflow=overflow)
    offer(engine, "a", "a1")
    offered = offer_all(engine, offering("b", "b"), offering("a", "a2"))
    assert [getattr(each, "outcome", type(each)) for each in offered] == ["created", QueueFull]
    assert read(engine, "a") is None
    assert contents(receive(engine, 2)) == ["b"]


@pytest.mark.parametrize(("overflow", "left"), [(Overflow.DEAD_LETTER, "next"), (Overflow.DROP_OLDEST, None)])
def test_what_waits_behind_an_evicted_one_goes_on_only_with_dead_letters(engine, overflow, left):
    configure(engine, max_messages=1, overflow=overflow)
    offer(engine, "a", "a")
    receive_one(engine, lease_ms=10)
    offer(engine, "a", "next", mode="onceMore")
    run(engine, now=T0 + 10)
    offer(engine, "b", "b", now=T0 + 10)
    found = read(engine, "a")
    assert (found and found.message.content) == left
    assert read(engine, "b") is not None


def test_a_batch_of_long_contents_is_stored_whole(engine):
    many = [offering(f"k{n}", "x" * 100_000) for n in range(100)]
    assert outcomes(do(engine, OfferMany("q", tuple(many)))) == ["created"] * 100
    assert engine.snapshot().counts["q"].bytes == 10_000_000


REPLACED = [("ready", {}), ("waiting", {"mode": "onceMore"})]


@on_sql
@pytest.mark.parametrize(("what", "options"), REPLACED, ids=[what for what, _ in REPLACED])
def test_the_bytes_that_the_offers_of_a_batch_replace_are_bounded(engine, monkeypatch, what, options):
    for key in "abcde":
        offer(engine, key, "four")
    if what == "waiting":
        receive(engine, 5)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
    many = tuple(offering(key, "new", **options) for key in "abcde")
    first, second = run(engine, OfferMany("q", many), OfferMany("q", many[3:])).outcomes
    assert isinstance(first, Deferred)
    assert len(outcomes(first.done)) == 3
    assert second == DEFERRED
    assert len(do(engine, OfferMany("q", many[3:]))) == 2


def test_offers_that_replace_nothing_are_one_step(engine, monkeypatch):
    offer(engine, "a", "x" * 100)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
    many = [offering("a", mode="createIfAbsent"), offering("b", "x" * 100), offering("c", "x" * 100)]
    assert outcomes(offer_all(engine, *many)) == ["ignored", "created", "created"]


def test_a_batch_gives_the_order_that_batches_of_their_own_give(engine):
    """A message that leaves its group in the batch is no longer the last of that group."""
    offers = [
        *(offering(key, key, group="g") for key in "abc"),
        *(offering(key, key) for key in "cb"),
        *(offering(key, key, group="g") for key in "de"),
        offering("f", "f"),
    ]
    for each in offers:
        offer_all(engine, each, queue="alone")
    offer_all(engine, *offers)
    assert contents(receive(engine, 10)) == contents(receive(engine, 10, queue="alone"))
