"""A lease is named by its number and the time when it was made: another one of its number is never acknowledged."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import ForgetConsumer, LeaseMessages, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import Settling, consumer_key
from forq_trio.model.errors import LeaseGone, OtherLease

from .engines import on_sql
from .script import T0, counted, do, send

ACKNOWLEDGE, RELEASE, EXPIRE = Settling
ELSEWHERE = T0 - 1
"""When a lease was made that this engine never made, as on a server that was restored from a backup."""


@pytest.fixture(autouse=True)
def _two_messages_a_page(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 2)


def lease(engine, number, *, ahead=False):
    """Lease `number`, of two messages, which is made `number` milliseconds after T0."""
    for content in "ab":
        send(engine, content)
    return do(engine, LeaseMessages("q", "k", 1, number, 2, 10**9, ahead), T0 + number)


def settle(engine, number, made_at, how=ACKNOWLEDGE):
    """The consumer, or the error, once there is nothing more to do for this number."""
    step, consumer = SettleLease("q", "k", 1, number, how, made_at), None
    while (again := do(engine, step, T0 + 99)) != consumer and not isinstance(again, Exception):
        consumer = again
    return again


def stored(engine):
    return engine.snapshot().consumers[consumer_key("q", "k")]


@pytest.fixture
def opened(engine):
    do(engine, OpenConsumer("q", "k"), T0)
    return engine


def test_the_open_lease_is_acknowledged_by_its_own_time_only(opened):
    before = lease(opened, 1)
    refused = settle(opened, 1, ELSEWHERE)
    assert isinstance(refused, OtherLease)
    assert refused.message == f"lease 1 was made at {T0 + 1}, not at {ELSEWHERE}: it is another one"
    assert (stored(opened), counted(opened)["q"].processing) == (before, 2)
    assert settle(opened, 1, T0 + 1).acknowledged == 1
    assert counted(opened)["q"].processing == 0


def test_one_that_was_made_ahead_is_acknowledged_by_its_own_time_only(opened):
    lease(opened, 1)
    before = lease(opened, 2, ahead=True)
    assert isinstance(settle(opened, 2, T0 + 1), OtherLease)
    assert (stored(opened), counted(opened)["q"].processing) == (before, 4)
    assert settle(opened, 2, T0 + 2).acknowledged == 2


def test_nobody_has_to_tell_the_time(opened):
    lease(opened, 1)
    assert settle(opened, 1, None).acknowledged == 1


def test_one_that_is_acknowledged_is_told_from_others_as_long_as_what_follows_it_can_be_read(
    opened, monkeypatch
):
    monkeypatch.setattr(limits, "CONSUMER_LEASES_KEPT_MAX", 2)
    for number in (1, 2, 3, 4):
        lease(opened, number)
        settle(opened, number, T0 + number)
    assert [each.number for each in stored(opened).kept] == [3, 4]
    assert stored(opened).lease_times() == {2: T0 + 2, 3: T0 + 3, 4: T0 + 4}
    outcomes = {number: settle(opened, number, ELSEWHERE) for number in (1, 2, 3, 4)}
    assert [number for number, each in outcomes.items() if isinstance(each, OtherLease)] == [2, 3, 4]
    assert all(settle(opened, number, T0 + number).acknowledged == 4 for number in (1, 2, 3, 4))


def test_the_newest_one_is_told_from_others_without_its_pages(opened, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_LEASES_KEPT_MAX", 0)
    lease(opened, 1)
    settle(opened, 1, T0 + 1)
    assert (stored(opened).kept, stored(opened).lease_times()) == ((), {1: T0 + 1})
    assert isinstance(settle(opened, 1, ELSEWHERE), OtherLease)


def test_one_that_was_given_back_is_gone_and_another_one_of_its_number_is_another_one(opened):
    lease(opened, 1)
    settle(opened, 1, None, RELEASE)
    assert isinstance(settle(opened, 1, T0 + 1), LeaseGone)
    assert isinstance(settle(opened, 1, ELSEWHERE), OtherLease)
    lease(opened, 2)
    assert stored(opened).lease_times() == {1: T0 + 1, 2: T0 + 2}
    assert isinstance(settle(opened, 1, ELSEWHERE), OtherLease)


@on_sql
def test_a_lease_that_grows_has_the_time_of_its_last_page(opened):
    lease(opened, 1)
    settle(opened, 1, T0 + 1)
    for _ in range(4):
        send(opened, "m")
    for later in (2, 3):
        consumer = do(opened, LeaseMessages("q", "k", 1, 2, 4, 10**9), T0 + later)
    assert (consumer.open.messages, consumer.open.made_at, consumer.leased_at) == (4, T0 + 3, T0 + 3)


def test_a_consumer_says_when_it_was_created(opened):
    assert do(opened, OpenConsumer("q", "k"), T0 + 5).created_at == T0
    while do(opened, ForgetConsumer("q", "k"), T0 + 6) is not None:
        pass
    anew = do(opened, OpenConsumer("q", "k"), T0 + 7)
    assert (anew.created_at, anew.lease_times()) == (T0 + 7, {})


def test_after_a_consumer_was_forgotten_nothing_is_known_of_its_leases_and_nothing_is_removed(opened):
    lease(opened, 1)
    settle(opened, 1, T0 + 1)
    while do(opened, ForgetConsumer("q", "k"), T0 + 6) is not None:
        pass
    generation = do(opened, OpenConsumer("q", "k"), T0 + 7).generation
    send(opened, "m")
    do(opened, LeaseMessages("q", "k", generation, 2, 1, 10**9), T0 + 8)
    for made_at in (T0 + 1, ELSEWHERE):
        step = SettleLease("q", "k", generation, 1, ACKNOWLEDGE, made_at)
        assert do(opened, step, T0 + 9).acknowledged == 1
    assert counted(opened)["q"].processing == 1
