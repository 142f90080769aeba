"""Messages by status, and what is counted for the metrics (contract F11)."""

import pytest

from forq_trio.model.commands import Ack, Nack, Produce, ProduceMany, Release, Sweep, SweepKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import (
    ACKED,
    CONSUMED,
    MOVED_TO_DLQ,
    NACKED,
    PRODUCED,
    RELEASED,
    STALE_RECOVERED,
    Event,
)

from .script import DAY_MS, T0, claim, counted, fail, receipts, receive, receive_one, run, send


@pytest.mark.usefixtures("failed_stay")
def test_counts_follow_a_message_through_its_life(engine):
    send(engine, process_after=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(delayed=1)}
    run(engine, now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(ready=1)}
    fail(engine, now=T0 + 10, attempts=4)
    _, receipt = receive_one(engine, now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(processing=1)}
    run(engine, Nack("q", (receipt,)), now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(failed=1)}
    run(engine, Sweep(SweepKind.FAILED), now=T0 + 10)
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}


def test_a_queue_that_was_only_asked_is_not_known(engine):
    receive(engine, queue="asked")
    run(engine, Ack("asked", receipts(())), Sweep(SweepKind.EXPIRED), parked={"asked": [claim()]})
    assert counted(engine) == {}


def test_f11_events_are_summed_per_kind_and_queue_and_sorted(engine):
    commands = [
        Produce("b", NewMessage("x")),
        ProduceMany("a", (NewMessage("x"), NewMessage("x"), NewMessage("x"))),
        Produce("b", NewMessage("x")),
        claim(2, queue="a"),
    ]
    assert run(engine, *commands).events == [
        Event(CONSUMED, "a", 2),
        Event(PRODUCED, "a", 3),
        Event(PRODUCED, "b", 2),
    ]


def test_f11_deliveries_to_parked_receivers_are_consumed_too(engine):
    events = run(engine, Produce("q", NewMessage("x")), parked={"q": [claim()]}).events
    assert events == [Event(CONSUMED, "q", 1), Event(PRODUCED, "q", 1)]


def test_f11_settlements_count_what_succeeded(engine):
    for _ in range(4):
        send(engine)
    first, second, third, fourth = receipts(receive(engine, 4))
    events = run(
        engine,
        Ack("q", (first, first)),
        Nack("q", (second, third, first), 0),
        Release("q", (fourth,)),
        Ack("other", (fourth,)),
    ).events
    assert events == [Event(ACKED, "q", 1), Event(NACKED, "q", 2), Event(RELEASED, "q", 1)]


@pytest.mark.usefixtures("failed_stay")
def test_f11_a_nack_that_fails_the_message_is_still_a_nack(engine):
    send(engine)
    fail(engine, attempts=4)
    _, receipt = receive_one(engine)
    assert run(engine, Nack("q", (receipt,))).events == [Event(NACKED, "q", 1)]


def test_f11_what_time_did_is_counted(engine):
    send(engine, queue="leased")
    send(engine, queue="expiring")
    receive(engine, queue="leased", now=T0 + DAY_MS - 10, lease_ms=5)
    assert run(engine, now=T0 + DAY_MS).events == [
        Event(MOVED_TO_DLQ, "expiring", 1, "expired"),
        Event(MOVED_TO_DLQ, "leased", 1, "expired"),
        Event(STALE_RECOVERED, "leased", 1),
    ]


def test_f11_a_delay_that_ends_and_a_batch_of_nothing_count_nothing(engine):
    send(engine, process_after=T0 + 5)
    assert run(engine, now=T0 + 5).events == []
    assert run(engine, claim(queue="empty"), now=T0 + 5).events == []
