"""Message batches: what becomes of members is counted, and what follows is sent once, in the same commit."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AddToMessageBatch,
    Cancel,
    Claim,
    Delete,
    DiscardMessages,
    Nack,
    Ping,
    Purge,
    ShowMessageBatches,
)
from forq_trio.model.errors import (
    MessageBatchEnded,
    MessageBatchExists,
    MessageBatchNotFound,
    MessageBatchTooDeep,
    QueueFull,
)
from forq_trio.model.message_batches.types import BATCH_ATTRIBUTE, ENDED_ATTRIBUTE, AddressedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, Receipt
from forq_trio.model.queues.setting_values import Overflow

from .batched import ALARM, THEN, added, close, counts, opened, shown, waiting
from .script import (
    DAY_MS,
    HOUR_MS,
    T0,
    ack,
    configure,
    contents,
    do,
    fail,
    receipts,
    receive,
    receive_one,
    redrive,
    run,
    send,
)


def test_then_is_sent_in_the_commit_of_the_last_ack(engine):
    opened(engine, then=THEN)
    added(engine, "1", "2")
    close(engine)
    first, second = receive(engine, 2)
    assert ack(engine, Receipt.parse(first.receipt))
    assert counts(engine) == (1, 1, 0, 0)
    assert waiting(engine, "reports") == []
    result = run(engine, Ack("q", receipts([second])), parked={"reports": [Claim("reports", 1, 1_000)]})
    ((_, deliveries),) = result.served["reports"]
    assert contents(deliveries) == ["all done"]
    assert deliveries[0].attributes == {ENDED_ATTRIBUTE: "b"}
    batch = shown(engine)
    assert (batch.state, batch.outcome, batch.then_id) == ("ended", "sent", deliveries[0].id)
    assert (batch.left, batch.done, batch.ended_at) == (0, 2, T0)
    assert waiting(engine, "reports") == []


def test_nothing_is_sent_before_the_batch_is_closed(engine):
    opened(engine, then=THEN)
    added(engine, "1")
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert waiting(engine, "reports") == []
    assert shown(engine).state == "open"
    assert close(engine).state == "ended"
    assert waiting(engine, "reports") == ["all done"]


def test_a_batch_without_members_ends_when_it_is_closed(engine):
    opened(engine, then=THEN)
    close(engine)
    assert waiting(engine, "reports") == ["all done"]
    close(engine)
    assert waiting(engine, "reports") == []


def test_a_batch_that_sends_nothing_only_counts(engine):
    opened(engine)
    added(engine, "1")
    close(engine)
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert (shown(engine).state, shown(engine).outcome) == ("ended", "nothing_to_send")


def test_a_member_names_its_batch(engine):
    opened(engine)
    added(engine, "1", attributes={"k": "v"})
    (delivery,) = receive(engine)
    assert delivery.attributes == {"k": "v", BATCH_ATTRIBUTE: "b"}


@pytest.mark.parametrize(
    "end",
    [
        lambda engine, sent: run(engine, Purge("q")),
        lambda engine, sent: run(engine, Delete("q", (sent.id,))),
        lambda engine, sent: run(engine, Cancel("q", sent.id)),
        lambda engine, sent: run(engine, DiscardMessages("q", receipts(receive(engine)), "no use")),
        lambda engine, sent: run(engine, Ping(), now=T0 + 1_000),
    ],
    ids=["purged", "deleted", "cancelled", "discarded", "expired"],
)
def test_a_member_that_is_removed_counts_as_removed(engine, end):
    opened(engine, then=THEN)
    (sent,) = added(engine, "1", ttl_ms=1_000, dead_letter_queue="")
    close(engine)
    end(engine, sent)
    batch = shown(engine, now=T0 + 1_000)
    assert (batch.left, batch.done, batch.removed, batch.dead) == (0, 0, 1, 0)
    assert batch.outcome == "sent"
    assert contents(receive(engine, queue="reports", now=T0 + 1_000)) == ["all done"]


def test_on_dead_is_sent_at_the_first_dead_letter_alone(engine):
    opened(engine, then=THEN, on_dead=ALARM)
    added(engine, "1", "2", max_attempts=1)
    close(engine)
    first, second = receive(engine, 2)
    do(engine, Nack("q", receipts([first]), 0))
    assert counts(engine) == (1, 0, 0, 1)
    assert waiting(engine, "alarms") == ["one is dead"]
    assert waiting(engine, "reports") == []
    do(engine, Nack("q", receipts([second]), 0))
    assert waiting(engine, "alarms") == []
    assert waiting(engine, "reports") == ["all done"]
    assert counts(engine) == (0, 0, 0, 2)


def test_a_member_that_failed_without_a_dead_letter_queue_is_dead(engine):
    opened(engine, on_dead=ALARM)
    added(engine, "1", dead_letter_queue="", max_attempts=1)
    close(engine)
    fail(engine, attempts=1)
    assert counts(engine) == (0, 0, 0, 1)
    assert waiting(engine, "alarms") == ["one is dead"]


def test_a_redriven_dead_letter_is_a_member_again(engine):
    opened(engine, then=THEN, on_dead=ALARM)
    (one, _) = added(engine, "1", "2", max_attempts=1)
    close(engine)
    first, second = receive(engine, 2)
    do(engine, Nack("q", receipts([first]), 0))
    redrive(engine, one.id)
    assert counts(engine) == (2, 0, 0, 0)
    ack(engine, *receipts([second]))
    assert waiting(engine, "reports") == []
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert counts(engine) == (0, 2, 0, 0)
    assert waiting(engine, "reports") == ["all done"]
    assert waiting(engine, "alarms") == ["one is dead"]


def test_a_dead_letter_of_a_batch_that_has_ended_changes_nothing(engine):
    opened(engine, then=THEN)
    (one,) = added(engine, "1", max_attempts=1)
    close(engine)
    fail(engine, attempts=1)
    assert waiting(engine, "reports") == ["all done"]
    redrive(engine, one.id)
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert counts(engine) == (0, 0, 0, 1)
    assert waiting(engine, "reports") == []


def test_a_batch_that_needs_all_done_waits_for_its_dead_letters(engine):
    opened(engine, then=THEN, needs="done")
    (one,) = added(engine, "1", max_attempts=1)
    close(engine)
    fail(engine, attempts=1)
    assert shown(engine).state == "closed"
    assert waiting(engine, "reports") == []
    redrive(engine, one.id)
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert waiting(engine, "reports") == ["all done"]


def test_a_batch_that_needs_all_done_ends_without_then_if_one_is_removed(engine):
    opened(engine, then=THEN, needs="done")
    added(engine, "1", "2", max_attempts=1)
    close(engine)
    first, second = receive(engine, 2)
    do(engine, Nack("q", receipts([first]), 0))
    ack(engine, *receipts([second]))
    assert shown(engine).state == "closed"
    do(engine, Purge("q-dlq"))
    assert (shown(engine).outcome, counts(engine)) == ("unmet", (0, 1, 1, 0))
    assert waiting(engine, "reports") == []


def test_a_batch_that_needs_all_done_is_unmet_if_a_member_failed_for_good(engine):
    opened(engine, then=THEN, needs="done")
    added(engine, "1", dead_letter_queue="", max_attempts=1)
    close(engine)
    fail(engine, attempts=1)
    assert (shown(engine).outcome, counts(engine)) == ("unmet", (0, 0, 0, 1))
    assert waiting(engine, "reports") == []


def test_a_batch_that_never_can_be_done_does_not_wait_for_its_dead_letters(engine):
    opened(engine, then=THEN, needs="done")
    _, two = added(engine, "1", "2", max_attempts=1)
    close(engine)
    do(engine, Nack("q", receipts(receive(engine)), 0))
    run(engine, Cancel("q", two.id))
    assert (shown(engine).outcome, counts(engine)) == ("unmet", (0, 0, 1, 1))


def chain(engine, steps):
    """Steps that wait for each other; returns the ids of their batches, and the first message."""
    ids = [str(number) for number in range(1, steps)]
    for outer, id in zip([None, *ids], ids, strict=False):
        then = AddressedMessage("q", NewMessage(f"after {id}", max_attempts=1))
        opened(engine, id, then=then, needs="done", outer=outer)
    (first,) = added(engine, "first", id=ids[-1], max_attempts=1)
    for id in ids:
        close(engine, id)
    return ids, first


def test_a_chain_ends_whole_when_a_step_is_discarded(engine):
    ids, _ = chain(engine, 4)
    run(engine, DiscardMessages("q", receipts(receive(engine)), "no use"))
    assert [shown(engine, id).outcome for id in ids] == ["unmet"] * 3
    assert waiting(engine, "q") == []


def test_a_chain_goes_on_when_a_dead_step_is_redriven(engine):
    ids, first = chain(engine, 3)
    fail(engine, attempts=1)
    assert [shown(engine, id).state for id in ids] == ["closed"] * 2
    redrive(engine, first.id)
    for text in ("first", "after 2", "after 1"):
        delivery, receipt = receive_one(engine)
        assert delivery.content == text
        assert ack(engine, receipt)
    assert [shown(engine, id).outcome for id in ids] == ["sent"] * 2


def test_members_may_add_members_until_the_last_has_ended(engine):
    opened(engine, then=THEN)
    added(engine, "1")
    close(engine)
    _, receipt = receive_one(engine)
    outcome = run(
        engine, Ack("q", (receipt,)), AddToMessageBatch("b", (AddressedMessage("q", NewMessage("2")),))
    ).outcomes
    assert outcome[0] == (True,)
    assert counts(engine) == (1, 1, 0, 0)
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert waiting(engine, "reports") == ["all done"]
    assert isinstance(added(engine, "3"), MessageBatchEnded)
    assert waiting(engine, "q") == []


def test_a_message_that_is_refused_or_known_is_no_member(engine):
    configure(engine, max_messages=2)
    opened(engine)
    one, again, two, three = do(
        engine,
        AddToMessageBatch(
            "b",
            (
                AddressedMessage("q", NewMessage("1", deduplication_id="d")),
                AddressedMessage("q", NewMessage("1", deduplication_id="d")),
                AddressedMessage("q", NewMessage("2")),
                AddressedMessage("q", NewMessage("3")),
            ),
        ),
    )
    assert (one.sequence, again.duplicate) == (again.sequence, True)
    assert isinstance(two, Produced)
    assert isinstance(three, QueueFull)
    assert counts(engine) == (2, 0, 0, 0)


def test_members_that_are_evicted_are_counted(engine):
    configure(engine, max_messages=1, overflow=Overflow.DROP_OLDEST)
    opened(engine, then=THEN)
    _, refused = added(engine, "1", "2")
    assert isinstance(refused, QueueFull)
    for _ in range(2):
        run(engine, *[AddToMessageBatch("b", (AddressedMessage("q", NewMessage("m")),)) for _ in range(2)])
    assert counts(engine) == (1, 0, 4, 0)


def test_a_batch_expires_without_then(engine):
    opened(engine, then=THEN, expires_ms=HOUR_MS)
    added(engine, "1")
    close(engine)
    run(engine, now=T0 + HOUR_MS - 1)
    assert shown(engine, now=T0 + HOUR_MS - 1).state == "closed"
    run(engine, now=T0 + HOUR_MS)
    batch = shown(engine, now=T0 + HOUR_MS)
    assert (batch.state, batch.outcome, batch.left) == ("ended", "expired", 1)
    assert contents(receive(engine, now=T0 + HOUR_MS)) == ["1"]
    assert receive(engine, queue="reports", now=T0 + HOUR_MS) == ()


def test_a_batch_that_has_ended_is_remembered_for_a_day(engine):
    opened(engine)
    close(engine)
    assert shown(engine, now=T0 + DAY_MS - 1) is not None
    run(engine, now=T0 + DAY_MS)
    assert shown(engine, now=T0 + DAY_MS) is None
    assert isinstance(close(engine, now=T0 + DAY_MS), MessageBatchNotFound)


def test_an_abandoned_batch_sends_nothing_and_its_members_stay(engine):
    opened(engine, then=THEN)
    added(engine, "1")
    assert close(engine, abandon=True).outcome == "abandoned"
    assert close(engine).outcome == "abandoned"
    assert waiting(engine, "q") == ["1"]
    assert waiting(engine, "reports") == []


def test_a_message_that_its_queue_refuses_is_sent_again(engine):
    configure(engine, "reports", max_messages=1)
    send(engine, "in the way", queue="reports")
    opened(engine, then=THEN)
    close(engine)
    batch = shown(engine)
    assert (batch.state, batch.then_id, batch.refused) == ("ended", None, QueueFull.code)
    _, receipt = receive_one(engine, queue="reports")
    ack(engine, receipt, queue="reports")
    later = T0 + limits.MESSAGE_BATCH_RETRY_MS
    run(engine, now=later)
    assert contents(receive(engine, queue="reports", now=later)) == ["all done"]
    assert shown(engine, now=later).refused is None


def test_a_message_that_is_always_refused_is_given_up_when_the_batch_expires(engine):
    configure(engine, "reports", max_messages=1)
    send(engine, "in the way", queue="reports")
    opened(engine, then=THEN, expires_ms=90_000)
    close(engine)
    for later in (60_000, 120_000):
        run(engine, now=T0 + later)
    batch = shown(engine, now=T0 + 120_000)
    assert (batch.outcome, batch.refused) == ("refused", QueueFull.code)


def test_an_on_dead_that_is_always_refused_is_given_up_when_the_batch_expires(engine):
    configure(engine, "alarms", max_messages=1)
    send(engine, "in the way", queue="alarms")
    opened(engine, on_dead=ALARM, expires_ms=90_000)
    added(engine, "1", max_attempts=1)
    fail(engine, attempts=1)
    assert shown(engine).refused == QueueFull.code
    for later in (60_000, 120_000):
        run(engine, now=T0 + later)
    batch = shown(engine, now=T0 + 120_000)
    assert (batch.outcome, batch.refused) == ("expired", None)


def test_a_message_that_is_refused_does_not_hold_up_the_other(engine):
    configure(engine, "alarms", max_messages=1)
    send(engine, "in the way", queue="alarms")
    opened(engine, "outer")
    opened(engine, then=THEN, on_dead=ALARM, outer="outer")
    added(engine, "1", "2", max_attempts=1)
    close(engine)
    first, second = receive(engine, 2)
    do(engine, Nack("q", receipts([first]), 0))
    assert shown(engine).refused == QueueFull.code
    ack(engine, *receipts([second]))
    assert waiting(engine, "reports") == ["all done"]
    assert (shown(engine).outcome, shown(engine).refused) == ("sent", QueueFull.code)
    _, receipt = receive_one(engine, queue="alarms")
    ack(engine, receipt, queue="alarms")
    later = T0 + limits.MESSAGE_BATCH_RETRY_MS
    run(engine, now=later)
    assert contents(receive(engine, queue="alarms", now=later)) == ["one is dead"]
    assert shown(engine, now=later).refused is None
    run(engine, now=later + limits.MESSAGE_BATCH_RETRY_MS)
    assert receive(engine, queue="alarms", now=later + limits.MESSAGE_BATCH_RETRY_MS) == ()


def test_an_outer_batch_does_not_wait_for_on_dead(engine):
    configure(engine, "alarms", max_messages=1)
    send(engine, "in the way", queue="alarms")
    opened(engine, "outer", then=THEN)
    opened(engine, "inner", on_dead=ALARM, outer="outer")
    added(engine, "1", id="inner", max_attempts=1)
    close(engine, "outer")
    close(engine, "inner")
    fail(engine, attempts=1)
    assert shown(engine, "inner").refused == QueueFull.code
    assert counts(engine, "outer") == (0, 0, 0, 1)
    assert waiting(engine, "reports") == ["all done"]


def test_an_inner_batch_is_a_member_and_its_then_takes_its_place(engine):
    opened(engine, "outer", then=THEN)
    opened(engine, "inner", then=AddressedMessage("q", NewMessage("second")), outer="outer")
    added(engine, "first", id="inner")
    close(engine, "outer")
    close(engine, "inner")
    _, receipt = receive_one(engine)
    ack(engine, receipt)
    assert shown(engine, "inner").state == "ended"
    assert counts(engine, "outer") == (1, 0, 0, 0)
    delivery, receipt = receive_one(engine)
    assert delivery.content == "second"
    assert delivery.attributes == {ENDED_ATTRIBUTE: "inner", BATCH_ATTRIBUTE: "outer"}
    assert waiting(engine, "reports") == []
    ack(engine, receipt)
    assert waiting(engine, "reports") == ["all done"]


@pytest.mark.parametrize(
    ("abandon", "fails", "expected"),
    [(False, False, (0, 1, 0, 0)), (False, True, (0, 0, 0, 1)), (True, False, (0, 0, 1, 0))],
)
def test_an_inner_batch_without_then_counts_as_it_ended(engine, abandon, fails, expected):
    opened(engine, "outer", then=THEN)
    opened(engine, "inner", outer="outer")
    added(engine, "1", id="inner", max_attempts=1)
    close(engine, "outer")
    if fails:
        fail(engine, attempts=1)
    elif not abandon:
        _, receipt = receive_one(engine)
        ack(engine, receipt)
    close(engine, "inner", abandon=abandon)
    assert counts(engine, "outer") == expected
    assert waiting(engine, "reports") == ["all done"]


def test_batches_are_nested_to_a_depth(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCH_DEPTH_MAX", 2)
    opened(engine, "1")
    assert opened(engine, "2", outer="1").outer == "1"
    assert isinstance(opened(engine, "3", outer="2"), MessageBatchTooDeep)
    assert isinstance(opened(engine, "3", outer="none"), MessageBatchNotFound)
    assert counts(engine, "2") == (0, 0, 0, 0)
    close(engine, "2")
    assert isinstance(opened(engine, "3", outer="2"), MessageBatchEnded)


def test_a_batch_that_is_opened_again_is_the_same(engine):
    first = opened(engine, then=THEN)
    added(engine, "1")
    again = opened(engine, then=THEN)
    assert (again.made_at, again.left) == (first.made_at, 1)
    assert isinstance(opened(engine, then=ALARM), MessageBatchExists)
    assert isinstance(opened(engine, then=THEN, by="t"), MessageBatchExists)


def test_a_token_sees_its_own_batches(engine):
    for id, by in (("1", "t"), ("2", "u"), ("3", "t"), ("4", None)):
        opened(engine, id, by=by)
    page = do(engine, ShowMessageBatches(limit=10, by="t"))
    assert [each.id for each in page.batches] == ["3", "1"]
    first = do(engine, ShowMessageBatches(limit=3))
    assert [each.id for each in first.batches] == ["4", "3", "2"]
    last = do(engine, ShowMessageBatches(before=first.next, limit=3))
    assert ([each.id for each in last.batches], last.next) == (["1"], None)
    assert shown(engine, "2", by="t") is None
    assert isinstance(close(engine, "2", by="t"), MessageBatchNotFound)
    assert close(engine, "2", by="u").state == "ended"
