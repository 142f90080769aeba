"""A bound on messages of a queue in process: no claim gets past it, and what ends a lease serves who waits."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Configure,
    Delete,
    Extend,
    LeaseMessages,
    Nack,
    OpenConsumer,
    Purge,
    RedrivePolicy,
    Release,
    SettleLease,
)
from forq_trio.model.consumers.types import Settling
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import SettingsChange

from .script import (
    LEASE_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    receipts,
    receive,
    run,
    send,
    woken_by,
)


@pytest.fixture
def limited(engine):
    """An engine whose queue has two messages in process of the two that may be, and two more that are ready."""
    configure(engine, in_flight_max=2)
    for name in "abcd":
        send(engine, name)
    return engine


@pytest.fixture
def leased(limited):
    return receive(limited, 9)


def test_no_more_than_may_be(limited, leased):
    assert contents(leased) == ["a", "b"]
    assert counted(limited)["q"] == QueueCounts(ready=2, processing=2)
    assert has_no_message(limited)


def test_of_several_claims_of_a_batch_the_first_ones_get_them(limited):
    outcomes = run(limited, claim(1), claim(2), claim(3)).outcomes
    assert [contents(deliveries) for deliveries in outcomes] == [["a"], ["b"], []]


def test_parked_receivers_obey(limited):
    result = run(limited, Configure("q", SettingsChange(in_flight_max=3)), parked={"q": [claim(2), claim(2)]})
    assert [contents(deliveries) for _, deliveries in result.served["q"]] == [["a", "b"], ["c"]]


def test_a_full_queue_asks_for_no_batch_of_its_own(limited, leased):
    """Nothing is to be done until somebody settles a message, or a lease ends."""
    result = run(limited, claim(5), parked={"q": [claim()] * limits.RECEIVERS_OFFERED_MAX})
    assert (result.outcomes, result.next_due_ms) == ([()], T0 + LEASE_MS)


@pytest.mark.parametrize(
    "settle",
    [
        lambda delivery, receipt: Ack("q", (receipt,)),
        lambda delivery, receipt: AckById("q", delivery.id),
        lambda delivery, receipt: Nack("q", (receipt,), 10),
        lambda delivery, receipt: Release("q", (receipt,), 10),
        lambda delivery, receipt: Purge("q", delivery.sequence),
    ],
    ids=["ack", "ack by id", "nack", "release", "purge"],
)
def test_one_that_is_settled_serves_who_waits(limited, leased, settle):
    assert woken_by(limited, settle(leased[0], receipts(leased)[0])) == ["c"]
    assert counted(limited)["q"].processing == 2


@pytest.mark.parametrize(
    "command",
    [
        lambda receipt: Nack("q", (receipt,), 0),
        lambda receipt: Release("q", (receipt,)),
        lambda receipt: Extend("q", (receipt,), 0),
    ],
    ids=["nack", "release", "extend"],
)
def test_one_that_comes_back_is_the_next_one(limited, leased, command):
    assert woken_by(limited, command(receipts(leased)[0])) == ["a"]


def test_leases_that_end_serve_who_waits(limited, leased):
    assert woken_by(limited, now=T0 + LEASE_MS) == ["a", "b"]


def test_a_message_that_fails_serves_who_waits(engine):
    configure(engine, in_flight_max=1)
    send(engine, "a", max_attempts=1)
    send(engine, "b")
    receive(engine)
    assert woken_by(engine, now=T0 + LEASE_MS) == ["b"]


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        (SettingsChange(in_flight_max=3), ["c"]),
        (SettingsChange(in_flight_max=None), ["c", "d"]),
        (None, ["c", "d"]),
        (SettingsChange(in_flight_max=1), []),
        (SettingsChange(lease_ms=1), []),
    ],
)
def test_a_changed_bound_serves_who_waits(limited, leased, change, woken):
    assert woken_by(limited, Configure("q", change)) == woken


def test_a_bound_that_is_lowered_takes_nothing_away(limited, leased):
    configure(limited, in_flight_max=1)
    first, second = receipts(leased)
    assert woken_by(limited, Ack("q", (first,))) == []
    assert woken_by(limited, Ack("q", (second,))) == ["c"]


def test_the_bound_is_each_queues_own(limited, leased):
    for _ in range(3):
        send(limited, queue="other")
    assert len(receive(limited, 9, queue="other")) == 3


def test_both_bounds_hold(engine):
    configure(engine, in_flight_max=3, group_in_flight_max=1)
    for name in ("a1", "a2", "b1", "c1", "d1"):
        send(engine, name, group=name[0])
    assert contents(receive(engine, 9)) == ["a1", "b1", "c1"]
    assert counted(engine)["q"].processing == 3


def test_a_random_order_obeys(limited):
    assert len(do(limited, claim(9, shuffle=True))) == 2


def test_a_message_that_was_delivered_too_often_uses_none_of_it(limited, leased):
    do(limited, Nack("q", receipts(leased)[:1], 0))
    assert contents(do(limited, claim(9, redrive_policy=RedrivePolicy(1)))) == ["c"]


def test_a_lease_that_ended_is_not_taken_back_while_the_queue_is_full(engine):
    configure(engine, in_flight_max=1)
    send(engine, "late")
    (late,) = receive(engine, lease_ms=5)
    send(engine, "first", priority=500)
    (other,) = receive(engine, now=T0 + 5)
    assert other.content == "first"
    assert do(engine, Extend("q", receipts([late]), LEASE_MS), T0 + 6) == (None,)
    assert do(engine, Ack("q", receipts([other])), T0 + 6) == (True,)
    assert do(engine, Extend("q", receipts([late]), LEASE_MS), T0 + 7) == (T0 + 7 + LEASE_MS,)


def test_a_consumers_lease_obeys_and_its_settlement_serves_who_waits(limited):
    consumer = do(limited, OpenConsumer("q", "c", 60_000))
    leased = do(limited, LeaseMessages("q", "c", consumer.generation, 1, 9, 10_000))
    assert leased.open.messages == 2
    assert has_no_message(limited)
    assert woken_by(limited, SettleLease("q", "c", consumer.generation, 1, Settling.ACKNOWLEDGE)) == [
        "c",
        "d",
    ]


def test_a_ready_message_that_goes_frees_nothing(limited, leased):
    ready = limited.open_reader().browse("q", None, 9)[-1]
    assert woken_by(limited, Delete("q", (ready.id,))) == []


def test_an_extension_ends_no_lease_and_wakes_nobody(engine):
    configure(engine, in_flight_max=1)
    send(engine)
    send(engine)
    held = receipts(receive(engine))
    result = run(engine, Extend("q", held, LEASE_MS), parked={"q": [claim()]})
    assert (result.woken, result.served) == (set(), {})
