"""Lease numbers: those of a name never come back, and a lease says when it was made. Shares of the consumers."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.commands import ForgetConsumer, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import Settling
from forq_trio.model.errors import LeaseGone, LeaseOutOfOrder, LeasesFull, TooManyConsumers
from forq_trio.storage.engine import DEFERRED

from .engines import on_sql
from .script import T0, do, send
from .test_consumers import lease, open_k, send_each, settle, step, stored

ACKNOWLEDGE, RELEASE, _ = Settling


@pytest.fixture(autouse=True)
def _two_messages_a_page(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 2)


def forget(engine, name="k"):
    while do(engine, ForgetConsumer("q", name)) is not None:
        pass


def test_no_lease_number_comes_back_after_a_consumer_was_forgotten(engine):
    """Whoever stores results under lease numbers never writes over those of the consumer that was forgotten."""
    open_k(engine)
    for number in (1, 2):
        send_each(engine, "ab")
        lease(engine, number)
        settle(engine, number, RELEASE if number == 2 else ACKNOWLEDGE)
    forget(engine)
    assert open_k(engine, name="other").leased == 0
    anew = open_k(engine)
    assert (anew.leased, anew.acknowledged, anew.released_before, anew.open) == (2, 1, 3, None)
    again = [step(engine, number, generation=anew.generation) for number in (1, 2, 4)]
    assert [type(outcome) for outcome in again] == [LeaseGone, LeaseGone, LeaseOutOfOrder]
    third = lease(engine, 3, generation=anew.generation)
    assert (third.open.number, third.open.messages) == (3, 2)
    settle(engine, 3)
    forget(engine)
    forget(engine, "other")
    assert (open_k(engine).leased, open_k(engine, name="other").leased) == (3, 0)


def test_what_a_forgotten_consumer_had_not_acknowledged_counts_as_given_back(engine):
    """Whoever has written such a lease's messages is told that they come again."""
    open_k(engine)
    for number in (1, 2):
        send_each(engine, "ab")
        lease(engine, number)
        settle(engine, number, RELEASE if number == 2 else ACKNOWLEDGE)
    for _ in range(2):  # a consumer that was forgotten unused says as much
        forget(engine)
        generation = open_k(engine).generation
    refused = do(engine, SettleLease("q", "k", generation, 2, ACKNOWLEDGE))
    assert isinstance(refused, LeaseGone)
    assert do(engine, SettleLease("q", "k", generation, 1, ACKNOWLEDGE)).acknowledged == 1


def test_the_numbers_of_so_many_names_are_stored_and_others_begin_above_the_rest(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_NUMBERS_MAX", 2)
    for number, name in enumerate("abc", start=1):
        generation = open_k(engine, name=name).generation
        for each in range(1, number + 1):
            send(engine, "m")
            lease(engine, each, generation=generation, name=name)
            while do(engine, SettleLease("q", name, generation, each, ACKNOWLEDGE)).open is not None:
                pass
        forget(engine, name)
    assert {name: open_k(engine, name=name).leased for name in "abcd"} == {"a": 1, "b": 2, "c": 3, "d": 1}


@on_sql
def test_a_lease_says_when_its_last_page_was_made(engine):
    """A backup may have one that is not complete: what completes it there, and on the server, are two leases."""
    open_k(engine)
    send_each(engine, "abcde")
    first = step(engine, now=T0 + 1)
    assert (first.complete, first.open.made_at) == (False, T0 + 1)
    assert step(engine, now=T0 + 2).open.made_at == T0 + 2
    complete = lease(engine, now=T0 + 3)
    assert (complete.complete, complete.open.messages, complete.open.made_at) == (True, 5, T0 + 3)
    assert lease(engine, now=T0 + 4) == complete
    settle(engine)
    assert stored(engine).kept[0].made_at == T0 + 3


def test_a_key_has_a_share_of_the_consumers(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMERS_A_KEY_MAX", 1)
    narrow, other = Key("narrow", "q"), Key("other", "q")
    assert do(engine, OpenConsumer("q", "a", key=narrow)).made_by == "narrow"
    refused = do(engine, OpenConsumer("q", "b", key=narrow))
    assert isinstance(refused, TooManyConsumers)
    assert "this key has made 1 consumers" in refused.message
    assert do(engine, OpenConsumer("q", "b", key=other)).made_by == "other"
    assert do(engine, OpenConsumer("q", "c")).made_by == ""
    assert do(engine, OpenConsumer("q", "b", key=narrow)).made_by == "other"
    do(engine, ForgetConsumer("q", "a"))
    assert do(engine, OpenConsumer("q", "a", key=narrow)).generation


def test_a_key_has_a_share_of_the_bytes_of_leases(engine, monkeypatch):
    """Where it has used up its own, its pages that are no longer needed go, never those of another key."""
    generation = {}
    for name, key in (("a", "narrow"), ("b", "narrow"), ("c", "other"), ("d", "other")):
        generation[name] = do(engine, OpenConsumer("q", name, key=Key(key, "q"))).generation

    def fill(name, number):
        send_each(engine, "ab")
        while True:
            outcome = step(engine, number, name=name, generation=generation[name])
            if outcome is not DEFERRED and (isinstance(outcome, LeasesFull) or outcome.complete):
                return outcome

    def acknowledge(name):
        while do(engine, SettleLease("q", name, generation[name], 1, ACKNOWLEDGE)).open is not None:
            pass

    for name in "ac":
        size = fill(name, 1).stored_bytes
        acknowledge(name)
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_A_KEY_MAX", size)
    assert fill("b", 1).open.messages == 2
    assert (stored(engine, "a").kept, len(stored(engine, "c").kept)) == ((), 1)
    refused = fill("a", 2)
    assert isinstance(refused, LeasesFull)
    assert "of those this key made" in refused.message
    assert fill("d", 1).open.messages == 2
    assert stored(engine, "c").kept == ()
    acknowledge("b")
    assert fill("a", 2).open.messages == 2


@on_sql
def test_each_page_that_is_dropped_counts_as_much_as_each_that_is_left(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_STEP_DROPPED_MAX", 1)
    open_k(engine)
    send_each(engine, ["x" * 10, "x" * 20, "x" * 300, "x" * 40, "x" * 5, "x" * 6, "x" * 70])
    size = lease(engine).open.bytes
    settle(engine)
    said = []
    while (consumer := do(engine, ForgetConsumer("q", "k"))) is not None:
        said += [(lease.messages, lease.pages, lease.bytes) for lease in consumer.dropping]
    three = size - size // 4
    two = three - three // 3
    assert said == [(7, 3, three), (7, 2, two), (7, 1, two - two // 2)]
