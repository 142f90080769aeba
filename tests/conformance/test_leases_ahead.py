"""A lease that is made before the one in front of it is settled: two at most, acknowledged in their order."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import ForgetConsumer, LeaseMessages, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import Settling, consumer_key
from forq_trio.model.errors import ConsumerFenced, LeaseGone, LeaseOutOfOrder
from forq_trio.model.messages.types import QueueCounts

from .engines import on_sql
from .script import T0, counted, do, drain, send

ACKNOWLEDGE, RELEASE, EXPIRE = Settling


@pytest.fixture(autouse=True)
def _pages_of_two(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 4)


@pytest.fixture
def filled(engine):
    do(engine, OpenConsumer("q", "k", 60_000))
    for content in "abcdefgh":
        send(engine, content)
    return engine


def lease(engine, number, most=3, *, ahead=False, now=T0, generation=1):
    """The consumer, or the error; the step is repeated while it makes pages."""
    step = LeaseMessages("q", "k", generation, number, most, 10**9, ahead)
    consumer = None
    while (again := do(engine, step, now)) != consumer and not isinstance(again, Exception):
        consumer = again
    return again


def settle(engine, number, how=ACKNOWLEDGE, *, generation=1, now=T0):
    """One lease, or both: the consumer once there is nothing more to do for this number."""
    consumer = None
    step = SettleLease("q", "k", generation, number, how)
    while (again := do(engine, step, now)) != consumer and not isinstance(again, Exception):
        consumer = again
    return again


def read(engine, number):
    reader = engine.open_reader()
    try:
        return b"".join(reader.lease_pages("q", "k", number, 0, 99)).count(b"\n")
    finally:
        reader.close()


def stored(engine):
    return engine.snapshot().consumers[consumer_key("q", "k")]


def test_a_second_lease_is_made_before_the_first_is_settled(filled):
    assert isinstance(lease(filled, 1).open.messages, int)
    consumer = lease(filled, 2, ahead=True)
    assert (consumer.leased, consumer.acknowledged) == (2, 0)
    assert (consumer.open.number, consumer.open.messages, consumer.complete) == (1, 3, True)
    assert (consumer.ahead.number, consumer.ahead.messages, consumer.ahead_complete) == (2, 3, True)
    assert (read(filled, 1), read(filled, 2)) == (3, 3)
    assert counted(filled)["q"].processing == 6


def test_only_who_asks_for_it_gets_one_ahead_and_only_one(filled):
    lease(filled, 1)
    assert isinstance(lease(filled, 2), LeaseOutOfOrder)
    assert isinstance(lease(filled, 3, ahead=True), LeaseOutOfOrder)
    lease(filled, 2, ahead=True)
    assert isinstance(lease(filled, 3, 1, ahead=True), LeaseOutOfOrder)


@on_sql
def test_none_is_made_ahead_of_one_that_may_get_more(filled):
    do(filled, LeaseMessages("q", "k", 1, 1, 100, 10**9))
    assert not stored(filled).complete
    assert isinstance(lease(filled, 2, ahead=True), LeaseOutOfOrder)


def test_want_of_messages_does_not_complete_it(filled):
    lease(filled, 1, 7)
    consumer = lease(filled, 2, 5, ahead=True)
    assert (consumer.ahead.messages, consumer.ahead_complete) == (1, False)
    send(filled, "i")
    assert lease(filled, 2, 5, ahead=True).ahead.messages == 2
    send(filled, "j")
    consumer = lease(filled, 2, 5)
    assert (consumer.ahead.messages, consumer.ahead_complete) == (3, True)
    send(filled, "k")
    assert lease(filled, 2, 5) == consumer


def test_without_messages_it_is_not_made(filled):
    lease(filled, 1, 100)
    assert lease(filled, 2, ahead=True).ahead is None
    assert stored(filled).leased == 1


def test_they_are_acknowledged_in_their_order(filled):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    consumer = settle(filled, 1)
    assert (consumer.acknowledged, consumer.open.number, consumer.complete, consumer.ahead) == (
        1,
        2,
        True,
        None,
    )
    assert [kept.number for kept in consumer.kept] == [1]
    assert settle(filled, 2).acknowledged == 2
    assert counted(filled)["q"].processing == 0
    assert drain(filled) == ["g", "h"]


def test_an_acknowledgement_of_the_second_settles_the_first_before(filled):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    consumer = settle(filled, 2)
    assert (consumer.acknowledged, consumer.open) == (2, None)
    assert drain(filled) == ["g", "h"]


def test_one_that_may_get_more_cannot_be_acknowledged(filled):
    lease(filled, 1, 7)
    lease(filled, 2, ahead=True)
    assert isinstance(settle(filled, 2), LeaseOutOfOrder)
    assert stored(filled).acknowledged == 0
    settle(filled, 1)
    assert isinstance(settle(filled, 2), LeaseOutOfOrder)
    lease(filled, 2)
    assert settle(filled, 2).acknowledged == 2


@pytest.mark.parametrize("how", [RELEASE, EXPIRE])
def test_both_are_given_back_together(filled, how):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    later = T0 + 60_000
    consumer = settle(filled, 1, how, now=later)
    while consumer.open is not None:
        consumer = settle(filled, consumer.open.number, how, now=later)
    assert (consumer.released_before, consumer.ahead, consumer.settling) == (3, None, None)
    assert read(filled, 1) == read(filled, 2) == 0
    assert isinstance(settle(filled, 1), LeaseGone)
    assert isinstance(settle(filled, 2), LeaseGone)
    assert counted(filled)["q"].ready == 8


def test_what_is_given_back_is_read_no_more(filled):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    do(filled, SettleLease("q", "k", 1, 1, RELEASE))
    assert stored(filled).readable(1) is stored(filled).readable(2) is None
    assert isinstance(lease(filled, 2, ahead=True), LeaseGone)
    assert isinstance(settle(filled, 2), LeaseGone)


@on_sql
def test_an_acknowledgement_that_has_begun_is_finished_and_the_second_is_released(filled):
    lease(filled, 1, 5)
    lease(filled, 2, ahead=True)
    do(filled, SettleLease("q", "k", 1, 1, ACKNOWLEDGE))
    assert stored(filled).settling is ACKNOWLEDGE
    consumer = settle(filled, 1, RELEASE)
    assert consumer.acknowledged == 1
    assert settle(filled, 2, RELEASE).open is None
    assert drain(filled) == ["f", "g", "h"]


def test_an_older_generation_makes_and_settles_none(filled):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    do(filled, OpenConsumer("q", "k"))
    assert isinstance(lease(filled, 3, ahead=True), ConsumerFenced)
    assert isinstance(settle(filled, 1), ConsumerFenced)
    assert lease(filled, 2, generation=2) == stored(filled)
    assert settle(filled, 2, generation=2).acknowledged == 2


def test_pages_of_both_count_and_all_go_with_the_consumer(filled):
    lease(filled, 1)
    lease(filled, 2, ahead=True)
    both = stored(filled)
    assert both.stored_bytes == both.open.bytes + both.ahead.bytes
    assert do(filled, ForgetConsumer("q", "k", None)) is not None
    consumer = stored(filled)
    while consumer.open is not None:
        consumer = settle(filled, consumer.open.number, RELEASE, generation=consumer.generation)
    while do(filled, ForgetConsumer("q", "k", stored(filled).generation)) is not None:
        pass
    assert counted(filled)["q"] == QueueCounts(ready=8)
