"""Messages with a key are claimed, settled, read, acknowledged by revision and dropped (contract D17-D35)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Cancel,
    Delete,
    DropKey,
    DropKeys,
    Nack,
    OfferMany,
    Purge,
    PurgeStep,
    RescheduleKey,
)
from forq_trio.model.errors import MessageInFlight

from .engines import on_sql
from .keyed import ack_revision, drop, offer, offer_all, offering, outcomes, pending, read, reschedule
from .script import (
    LEASE_MS,
    T0,
    ack,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    look,
    nack,
    receipts,
    receive,
    receive_one,
    run,
    send,
    woken_by,
)

LATER = T0 + 10_000


def test_d17_nothing_from_an_empty_queue(engine):
    assert receive(engine) == ()


def test_d18_a_due_one_has_its_key_and_content(engine):
    offered = offer(engine, "customer/41", "x", kind="mail", process_after=T0)
    (delivery,) = receive(engine)
    assert (delivery.key, delivery.kind, delivery.content) == ("customer/41", "mail", "x")
    assert (delivery.id, delivery.attempts) == (offered.id, 1)


def test_d19_a_future_one_is_not_delivered(engine):
    offer(engine, process_after=LATER)
    assert has_no_message(engine, now=LATER - 1)


def test_d20_one_that_is_due_now_is_delivered(engine):
    offer(engine, process_after=LATER)
    assert contents(receive(engine, now=LATER)) == ["x"]


def test_d22_a_claim_hides_it_from_every_other_consumer(engine):
    offer(engine)
    receive_one(engine)
    assert receive(engine, now=T0 + LEASE_MS - 1) == ()


def test_d23_and_d24_an_ack_removes_it_and_a_second_does_nothing(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert read(engine) is None
    assert not ack(engine, receipt)


def test_d25_an_ack_after_an_update_leaves_the_updated_one(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    offer(engine, content="new")
    assert not ack(engine, receipt)
    assert pending(engine).message.content == "new"


def test_d25_an_ack_of_a_lease_that_ended_leaves_the_updated_one(engine):
    offer(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    offer(engine, content="new", now=T0 + 10)
    assert not ack(engine, receipt, now=T0 + 10)
    assert pending(engine).message.content == "new"


def test_d26_a_late_ack_removes_one_that_nobody_claimed_again(engine):
    offer(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    assert ack(engine, receipt, now=T0 + 20)
    assert read(engine) is None


def test_d27_a_late_ack_removes_nothing_that_another_claimed(engine):
    offer(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    receive_one(engine, now=T0 + 20)
    assert not ack(engine, receipt, now=T0 + 20)
    assert read(engine) is not None


def test_d28_without_an_ack_it_comes_again(engine):
    offer(engine)
    receive_one(engine, lease_ms=10)
    (again,) = receive(engine, now=T0 + 10)
    assert (again.attempts, again.content, again.key) == (2, "x", "k")


def test_d29_who_waits_is_served_in_the_batch_of_the_offer(engine):
    assert woken_by(engine, OfferMany("q", (offering(),))) == ["x"]
    assert woken_by(engine, OfferMany("q", (offering(content="new"),))) == ["new"]


def test_d30_some_of_many_the_oldest_first(engine):
    offer_all(engine, *[offering(f"k{n}", str(n)) for n in range(10)])
    deliveries = receive(engine, 5)
    assert contents(deliveries) == ["0", "1", "2", "3", "4"]
    assert all(ack(engine, receipt) for receipt in receipts(deliveries))
    assert counted(engine)["q"].total == 5


def test_d32_a_read_locks_nothing(engine):
    offered = offer(engine, process_after=LATER)
    assert pending(engine).message.id == offered.id
    _, receipt = receive_one(engine, now=LATER)
    assert pending(engine).message.status == "processing"
    assert ack(engine, receipt, now=LATER)
    assert read(engine) is None


@pytest.mark.parametrize("polled", [False, True])
def test_d33_an_ack_by_revision_removes_what_was_not_changed(engine, polled):
    offered = offer(engine)
    if polled:
        _, receipt = receive_one(engine)
    assert ack_revision(engine, offered.revision)
    assert read(engine) is None
    assert not ack_revision(engine, offered.revision)
    assert not polled or not ack(engine, receipt)


@pytest.mark.parametrize("change", [{"content": "new"}, {"delay_ms": 5_000}])
def test_d33_an_ack_by_revision_leaves_what_was_changed(engine, change):
    offered = offer(engine)
    updated = offer(engine, **change)
    assert not ack_revision(engine, offered.revision)
    assert ack_revision(engine, updated.revision)


def test_d33_a_new_due_time_is_a_change_and_an_ignored_offer_none(engine):
    offered = offer(engine, process_after=LATER)
    assert offer(engine, process_after=LATER).outcome == "ignored"
    rescheduled = reschedule(engine, LATER + 1)
    assert not ack_revision(engine, offered.revision)
    assert ack_revision(engine, rescheduled.revision)


def test_d33_not_by_the_revision_of_an_earlier_message_of_the_key(engine):
    offered = offer(engine)
    assert drop(engine)
    offer(engine)
    assert not ack_revision(engine, offered.revision)


@pytest.mark.parametrize("in_process", [False, True])
def test_d34_a_drop_removes_it_also_in_process(engine, in_process):
    offer(engine)
    if in_process:
        _, receipt = receive_one(engine)
    assert drop(engine)
    assert read(engine) is None
    assert not drop(engine)
    assert not in_process or not ack(engine, receipt)
    assert counted(engine)["q"].total == 0


@on_sql
def test_a_drop_of_all_goes_by_key(engine, monkeypatch):
    monkeypatch.setattr(limits, "PURGE_BATCH_MAX", 1)
    offer_all(engine, *[offering(key) for key in "cab"])
    assert do(engine, DropKeys("q", "")).count == 1
    assert [read(engine, key) is None for key in "abc"] == [True, False, False]


def test_d35_a_drop_of_all_takes_this_queue_and_kind_alone(engine):
    offer_all(engine, *[offering(f"k{n}", kind="mail") for n in range(3)], offering("k0"))
    offer(engine, kind="mail", queue="other")
    send(engine)
    receive_one(engine)
    assert do(engine, DropKeys("q", "mail")) == PurgeStep(3, None)
    assert [counted(engine)[queue].total for queue in ("q", "other")] == [2, 1]
    assert do(engine, DropKeys("q", "mail")) == PurgeStep(0, None)


def test_d35_what_is_offered_in_between_stays(engine):
    offer(engine, "a")
    first = do(engine, DropKeys("q", "", 0))
    assert first == PurgeStep(0, None)
    up_to = pending(engine, "a").message.sequence
    offer(engine, "b")
    assert do(engine, DropKeys("q", "", up_to)) == PurgeStep(1, None)
    assert read(engine, "b") is not None


def test_a_new_due_time_leaves_the_rest(engine):
    offered = offer(engine, attributes={"k": "v"}, ttl_ms=5_000)
    rescheduled = reschedule(engine, LATER)
    assert (rescheduled.outcome, rescheduled.id, rescheduled.process_after) == ("updated", offered.id, LATER)
    message = look(engine, offered.id)
    assert (message.content, message.attributes, message.status) == ("x", {"k": "v"}, "delayed")
    assert (message.expires_after, message.received_at) == (LATER + 5_000, T0)
    assert has_no_message(engine, now=LATER - 1)
    assert contents(receive(engine, now=LATER)) == ["x"]


def test_a_new_due_time_of_the_past_makes_it_ready(engine):
    offer(engine, delay_ms=10_000)
    reschedule(engine, T0)
    assert contents(receive(engine)) == ["x"]


def test_an_offer_of_the_new_due_time_is_the_same(engine):
    offer(engine)
    reschedule(engine, LATER)
    assert offer(engine, process_after=LATER).outcome == "ignored"


def test_no_new_due_time_for_one_in_process(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    assert isinstance(reschedule(engine, LATER), MessageInFlight)
    assert ack(engine, receipt)
    assert reschedule(engine, LATER) is None


@pytest.mark.parametrize("settle", [ack, nack])
def test_a_new_due_time_ends_the_receipt_of_a_lease_that_ended(engine, settle):
    offer(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    reschedule(engine, LATER, now=T0 + 10)
    assert not settle(engine, receipt, now=T0 + 10)
    assert pending(engine).message.status == "delayed"


@pytest.mark.parametrize(("at", "status"), [(T0, "ready"), (LATER, "delayed")])
def test_a_new_due_time_of_a_held_one(engine, at, status):
    configure(engine, group_in_flight_max=1)
    for key in "ab":
        offer(engine, key, key, group="g")
    receive_one(engine)
    assert has_no_message(engine)
    assert pending(engine, "b").message.status == "held"
    assert reschedule(engine, at, "b").outcome == "updated"
    assert pending(engine, "b").message.status == status


@pytest.mark.parametrize("remove", [Cancel, Delete])
def test_what_is_cancelled_or_deleted_frees_its_key(engine, remove):
    offered = offer(engine)
    do(engine, remove("q", offered.id) if remove is Cancel else remove("q", (offered.id,)))
    assert read(engine) is None
    assert offer(engine, mode="create").outcome == "created"


def test_what_is_purged_frees_its_key(engine):
    offer(engine)
    do(engine, Purge("q"))
    assert offer(engine, mode="create").outcome == "created"


def test_what_expires_frees_its_key(engine):
    offer(engine, ttl_ms=5_000)
    assert offer(engine, mode="create", now=T0 + 5_000).outcome == "created"


def test_keys_of_one_batch_are_dropped_and_offered(engine):
    offer(engine)
    result = run(engine, DropKey("q", "k", ""), DropKey("q", "k", ""))
    assert result.outcomes == [True, False]


def test_d13_many_with_some_that_are_there(engine):
    offer_all(engine, *[offering(f"k{n}", "old") for n in range(10)])
    many = [offering(f"k{n}", "new", mode="createIfAbsent") for n in range(250)]
    assert outcomes(offer_all(engine, *many)) == ["ignored"] * 10 + ["created"] * 240
    assert counted(engine)["q"].total == 250
    assert pending(engine, "k3").message.content == "old"


def test_no_new_due_time_for_one_that_failed_in_the_same_batch(engine):
    """It would come back with all its attempts used up."""
    offer(engine, max_attempts=1)
    _, receipt = receive_one(engine)
    result = run(engine, Nack("q", (receipt,)), RescheduleKey("q", "k", "", LATER))
    assert isinstance(result.outcomes[1], MessageInFlight)
    assert (read(engine), contents(receive(engine, queue="q-dlq"))) == (None, ["x"])
