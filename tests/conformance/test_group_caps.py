"""The group limit: which messages it holds, and what makes them ready in the same batch."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Configure,
    Delete,
    Extend,
    Nack,
    ProduceMany,
    Purge,
    Redrive,
    RedrivePolicy,
    Release,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import DEFERRED, MOVED_TO_DLQ, Event

from .engines import on_sql
from .script import (
    LEASE_MS,
    T0,
    ack,
    claim,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    look,
    receipts,
    receive,
    receive_one,
    run,
    send,
    woken_by,
)


@pytest.fixture
def capped(engine):
    """An engine whose queue takes one message of a group in process at a time."""
    configure(engine, group_in_flight_max=1)
    return engine


def send_all(engine, names, **fields):
    messages = [NewMessage(name, group=name[0], **fields) for name in names.split()]
    return do(engine, ProduceMany("q", tuple(messages)))


def test_a_group_gets_up_to_its_limit_and_the_others_are_served(engine):
    configure(engine, group_in_flight_max=2)
    send_all(engine, "a1 a2 a3 a4 b1")
    for _ in range(3):
        send(engine, "none")
    deliveries = receive(engine, 9)
    assert sorted(contents(deliveries)) == ["a1", "a2", "b1", "none", "none", "none"]
    assert counted(engine)["q"] == QueueCounts(processing=6, held=2)
    assert has_no_message(engine)


def test_a_held_message_has_the_status_held(capped):
    _, held = send_all(capped, "a1 a2")
    result = run(capped, claim(2), now=T0 + 7)
    message = look(capped, held.id)
    assert (message.status, message.attempts, message.updated_at) == ("held", 0, T0 + 7)
    assert capped.open_reader().queue("q")[0].held == 1
    assert result.next_due_ms > T0 + 7


def test_the_bound_is_each_queues_own(capped):
    send_all(capped, "a1")
    receive(capped)
    send(capped, queue="other", group="a")
    send(capped, queue="other", group="a")
    assert len(receive(capped, 2, queue="other")) == 2


@pytest.fixture
def held(capped):
    """a1 in process; a2 and a3 held."""
    produced = send_all(capped, "a1 a2 a3", max_attempts=9)
    _, receipt = receive_one(capped, now=T0)
    assert has_no_message(capped)
    assert counted(capped)["q"] == QueueCounts(processing=1, held=2)
    return produced, receipt


def test_an_ack_frees_the_next_message(capped, held):
    _, receipt = held
    assert woken_by(capped, Ack("q", (receipt,))) == ["a2"]
    assert counted(capped)["q"] == QueueCounts(processing=1, held=1)


def test_an_ack_by_id_frees_the_next_message(capped, held):
    produced, _ = held
    assert woken_by(capped, AckById("q", produced[0].id)) == ["a2"]


@pytest.mark.parametrize(
    "command",
    [lambda receipt: Nack("q", (receipt,), 10), lambda receipt: Release("q", (receipt,), 10)],
    ids=["nack", "release"],
)
def test_giving_back_with_a_delay_frees_the_next_message(capped, held, command):
    assert woken_by(capped, command(held[1])) == ["a2"]


@pytest.mark.parametrize(
    "command",
    [
        lambda receipt: Nack("q", (receipt,), 0),
        lambda receipt: Release("q", (receipt,)),
        lambda receipt: Extend("q", (receipt,), 0),
    ],
    ids=["nack", "release", "extend"],
)
def test_a_message_that_is_ready_again_comes_before_the_next_one(capped, held, command):
    assert woken_by(capped, command(held[1])) == ["a1"]
    assert counted(capped)["q"] == QueueCounts(processing=1, held=2)


def test_the_message_of_a_lease_that_ends_comes_before_the_next_one(capped, held):
    assert woken_by(capped, now=T0 + LEASE_MS) == ["a1"]


def test_a_message_that_fails_frees_the_next_one(capped):
    send_all(capped, "a1 a2", max_attempts=1)
    receive(capped, 2)
    assert woken_by(capped, now=T0 + LEASE_MS) == ["a2"]


def test_a_purged_message_frees_the_next_one(capped, held):
    assert woken_by(capped, Purge("q", held[0][0].sequence)) == ["a2"]


def ready_behind_nobody(engine, held):
    """a2 is ready but unclaimed, a3 held, and nobody is in process."""
    assert do(engine, Ack("q", (held[1],))) == (True,)
    assert counted(engine)["q"] == QueueCounts(ready=1, held=1)


@pytest.mark.parametrize(
    "command",
    [
        lambda a2: Delete("q", (a2.id,)),
        lambda a2: Redrive("q", (a2.id,), "other"),
        lambda a2: Purge("q", a2.sequence),
    ],
    ids=["delete", "redrive", "purge"],
)
def test_a_removed_ready_message_frees_the_next_one(capped, held, command):
    """Otherwise the messages behind it would be held for ever."""
    ready_behind_nobody(capped, held)
    assert woken_by(capped, command(held[0][1])) == ["a3"]


def test_an_expired_ready_message_frees_the_next_one(capped):
    messages = (
        NewMessage("a1", group="a"),
        NewMessage("a2", group="a", ttl_ms=9),
        NewMessage("a3", group="a"),
    )
    produced = do(capped, ProduceMany("q", messages))
    _, receipt = receive_one(capped)
    assert has_no_message(capped)
    ready_behind_nobody(capped, (produced, receipt))
    assert woken_by(capped, now=T0 + 9) == ["a3"]


def test_a_message_delivered_too_often_frees_the_next_one_in_the_next_batch(capped):
    (bad,) = send_all(capped, "a1")
    assert do(capped, Nack("q", (receive_one(capped)[1],), 0)) == (True,)
    send_all(capped, "a0", priority=500)
    send_all(capped, "a2")
    _, receipt = receive_one(capped)
    assert has_no_message(capped)
    ready_behind_nobody(capped, ((), receipt))
    result = run(capped, claim(redrive_policy=RedrivePolicy(1, "bad")))
    assert result.outcomes == [()]
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]
    assert (result.next_due_ms, look(capped, bad.id, "bad").source_queue) == (T0, "q")
    assert woken_by(capped) == ["a2"]


def test_held_messages_become_ready_in_claim_order(capped):
    send_all(capped, "a1")
    receive(capped)
    send_all(capped, "a2", priority=1)
    send_all(capped, "a3", priority=9)
    send_all(capped, "a4", priority=9)
    assert has_no_message(capped)
    order = []
    for _ in range(3):
        running = capped.open_reader().browse("q", None, 9)
        claimed = next(message for message in running if message.status == "processing")
        order += woken_by(capped, AckById("q", claimed.id))
    assert order == ["a3", "a4", "a2"]


def test_as_many_become_ready_as_the_limit_allows(engine):
    configure(engine, group_in_flight_max=3)
    send_all(engine, "a1 a2 a3 a4 a5 a6")
    deliveries = receive(engine, 6)
    assert contents(deliveries) == ["a1", "a2", "a3"]
    assert woken_by(engine, Ack("q", receipts(deliveries[:2]))) == ["a4", "a5"]
    assert counted(engine)["q"] == QueueCounts(processing=3, held=1)


def test_a_held_message_expires(capped):
    send_all(capped, "a1")
    receive_one(capped)
    _, late = send_all(capped, "a2 a3", ttl_ms=10)
    assert has_no_message(capped)
    result = run(capped, now=T0 + 10)
    assert result.events == [Event(MOVED_TO_DLQ, "q", 2, "expired")]
    assert look(capped, late.id, "q-dlq").status == "ready"


def test_a_held_message_can_be_redriven(capped, held):
    produced, _ = held
    assert woken_by(capped, Redrive("q", (produced[2].id,), "other"), queue="other") == ["a3"]
    assert counted(capped)["q"] == QueueCounts(processing=1, held=1)


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        (SettingsChange(group_in_flight_max=None), ["a2", "a3"]),
        (SettingsChange(group_in_flight_max=2), ["a2"]),
        (SettingsChange(group_in_flight_max=1), []),
        (SettingsChange(lease_ms=1), []),
        (None, ["a2", "a3"]),
    ],
)
def test_a_changed_bound_wakes_parked_receivers(capped, held, change, woken):
    assert woken_by(capped, Configure("q", change)) == woken


@on_sql
def test_a_bound_is_taken_away_in_parts_each_in_a_batch_of_its_own(capped, monkeypatch):
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 2)
    send_all(capped, "a1 a2 a3 a4 a5 a6")
    assert contents(receive(capped, 9)) == ["a1"]
    result = run(capped, Configure("q", None))
    assert (result.next_due_ms, counted(capped)["q"].ready) == (T0, 2)
    assert woken_by(capped) == ["a2", "a3", "a4", "a5"]
    assert woken_by(capped) == ["a6"]
    assert run(capped).next_due_ms > T0


def test_a_bound_that_is_changed_ends_in_a_bounded_number_of_batches(capped, monkeypatch):
    """Parked receivers may set freed messages to held again; that does not free them once more."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 2)
    send_all(capped, "a1 a2 a3 a4 a5 a6")
    receive(capped, 9)
    assert woken_by(capped, Configure("q", SettingsChange(group_in_flight_max=2))) == ["a2"]
    for _ in range(3):
        assert woken_by(capped) == []
    assert counted(capped)["q"] == QueueCounts(processing=2, held=4)
    assert run(capped).next_due_ms > T0


@on_sql
def test_a_claim_holds_a_bounded_number_and_goes_on_in_the_next_batch(capped, monkeypatch):
    monkeypatch.setattr(limits, "CLAIM_FILTERED_MAX", 2)
    send_all(capped, "a1 a2 a3 a4", priority=500)
    send_all(capped, "b1")
    assert contents(receive(capped)) == ["a1"]
    result = run(capped, claim())
    assert result.outcomes == [DEFERRED]
    assert result.next_due_ms == T0
    assert counted(capped)["q"] == QueueCounts(ready=2, processing=1, held=2)
    assert woken_by(capped) == ["b1"]
    assert counted(capped)["q"] == QueueCounts(processing=2, held=3)
    assert run(capped).next_due_ms > T0


def test_a_message_without_a_group_is_never_held(capped):
    send_all(capped, "a1")
    for _ in range(3):
        send(capped, "none")
    assert len(receive(capped, 9)) == 4


def test_an_ack_in_one_group_frees_no_message_of_another(capped):
    """Each group has a limit of its own."""
    send_all(capped, "a1 a2 b1 b2")
    first, second = receive(capped, 9)
    assert (first.content, second.content) == ("a1", "b1")
    assert ack(capped, receipts([second])[0])
    assert contents(receive(capped, 9)) == ["b2"]


def test_a_lease_that_ended_is_not_taken_back_while_its_group_is_full(capped):
    send_all(capped, "a1 a2", priority=1)
    (late,) = receive(capped, 1, lease_ms=5)
    run(capped, now=T0 + 5)  # a1 is ready again, its receipt still current
    send_all(capped, "a0", priority=9)
    (other,) = receive(capped, 1, now=T0 + 5)
    assert contents([late, other]) == ["a1", "a0"]
    assert do(capped, Extend("q", receipts([late]), LEASE_MS), T0 + 6) == (None,)
    assert counted(capped)["q"].processing == 1
    assert ack(capped, *receipts([other]), now=T0 + 7)
    assert do(capped, Extend("q", receipts([late]), LEASE_MS), T0 + 8) == (T0 + 8 + LEASE_MS,)
    assert counted(capped)["q"].processing == 1


def test_of_two_leases_that_ended_one_is_taken_back(engine):
    configure(engine, group_in_flight_max=2)
    send_all(engine, "a1 a2")
    deliveries = receive(engine, 2, lease_ms=5)
    run(engine, now=T0 + 5)
    configure(engine, group_in_flight_max=1, now=T0 + 6)
    assert do(engine, Extend("q", receipts(deliveries), LEASE_MS), T0 + 7) == (T0 + 7 + LEASE_MS, None)
    assert counted(engine)["q"].processing == 1


def test_a_lease_that_ends_in_the_same_batch_lets_another_be_extended(capped):
    send_all(capped, "a1", priority=1)
    (late,) = receive(capped, 1, lease_ms=5)
    run(capped, now=T0 + 5)
    send_all(capped, "a0", priority=9)
    (other,) = receive(capped, 1, now=T0 + 5)
    ended, taken_back = run(
        capped, Extend("q", receipts([other]), 0), Extend("q", receipts([late]), LEASE_MS), now=T0 + 6
    ).outcomes
    assert (ended, taken_back) == ((T0 + 6,), (T0 + 6 + LEASE_MS,))
    assert counted(capped)["q"].processing == 1
