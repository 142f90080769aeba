"""Message batches: what becomes of members is counted, and what follows is sent once, in the same commit."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AddToMessageBatch,
    Cancel,
    Claim,
    CloseMessageBatch,
    Delete,
    DiscardMessages,
    Nack,
    OpenMessageBatch,
    Ping,
    Purge,
    ShowMessageBatches,
)
from forq_trio.model.errors import (
    MessageBatchEnded,
    MessageBatchExists,
    MessageBatchFull,
    MessageBatchNotFound,
    MessageBatchTooDeep,
    QueueFull,
    TooManyMessageBatches,
)
from forq_trio.model.message_batches.types import (
    BATCH_ATTRIBUTE,
    ENDED_ATTRIBUTE,
    BatchMessage,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, Receipt
from forq_trio.model.queues.setting_values import Overflow

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

THEN = BatchMessage("reports", NewMessage("all done"))
ALARM = BatchMessage("alarms", NewMessage("one is dead"))


def opened(engine, id="b", *, by=None, now=T0, **terms):
    return do(engine, OpenMessageBatch(id, NewMessageBatch(**terms), by), now)


def added(engine, *texts, id="b", queue="q", now=T0, **options):
    messages = tuple(BatchMessage(queue, NewMessage(text, **options)) for text in texts)
    return do(engine, AddToMessageBatch(id, messages), now)


def close(engine, id="b", *, abandon=False, by=None, now=T0):
    return do(engine, CloseMessageBatch(id, abandon, by), now)


def shown(engine, id="b", *, by=None, now=T0):
    page = do(engine, ShowMessageBatches(id, by=by), now)
    return page.batches[0] if page.batches else None


def counts(engine, id="b", now=T0):
    batch = shown(engine, id, now=now)
    return batch.left, batch.done, batch.removed, batch.dead


def waiting(engine, queue):
    """The contents of the messages that are in a queue now, which are taken out of it."""
    return contents(receive(engine, 10, queue=queue))


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
    assert (batch.state, batch.result, batch.then_id) == ("ended", "sent", deliveries[0].id)
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
    assert (shown(engine).state, shown(engine).result) == ("ended", "nothing_to_send")


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
    assert batch.result == "sent"
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
    assert (shown(engine).result, counts(engine)) == ("unmet", (0, 1, 1, 0))
    assert waiting(engine, "reports") == []


def test_members_may_add_members_until_the_last_has_ended(engine):
    opened(engine, then=THEN)
    added(engine, "1")
    close(engine)
    _, receipt = receive_one(engine)
    outcome = run(
        engine, Ack("q", (receipt,)), AddToMessageBatch("b", (BatchMessage("q", NewMessage("2")),))
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
                BatchMessage("q", NewMessage("1", deduplication_id="d")),
                BatchMessage("q", NewMessage("1", deduplication_id="d")),
                BatchMessage("q", NewMessage("2")),
                BatchMessage("q", NewMessage("3")),
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
        run(engine, *[AddToMessageBatch("b", (BatchMessage("q", NewMessage("m")),)) for _ in range(2)])
    assert counts(engine) == (1, 0, 4, 0)


def test_a_batch_expires_without_then(engine):
    opened(engine, then=THEN, expires_ms=HOUR_MS)
    added(engine, "1")
    close(engine)
    run(engine, now=T0 + HOUR_MS - 1)
    assert shown(engine, now=T0 + HOUR_MS - 1).state == "closed"
    run(engine, now=T0 + HOUR_MS)
    batch = shown(engine, now=T0 + HOUR_MS)
    assert (batch.state, batch.result, batch.left) == ("ended", "expired", 1)
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
    assert close(engine, abandon=True).result == "abandoned"
    assert close(engine).result == "abandoned"
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
    assert shown(engine, now=T0 + 120_000).result == "refused"


def test_an_inner_batch_is_a_member_and_its_then_takes_its_place(engine):
    opened(engine, "outer", then=THEN)
    opened(engine, "inner", then=BatchMessage("q", NewMessage("second")), outer="outer")
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


def test_there_are_so_many_batches(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", 3)
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_A_TOKEN_MAX", 1)
    opened(engine, "1", by="t")
    assert isinstance(opened(engine, "2", by="t"), TooManyMessageBatches)
    opened(engine, "2")
    opened(engine, "3")
    assert isinstance(opened(engine, "4"), TooManyMessageBatches)
    close(engine, "1")
    run(engine, now=T0 + DAY_MS)
    assert opened(engine, "4", by="t", now=T0 + DAY_MS).id == "4"


def test_what_batches_send_is_bounded_in_bytes(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_BYTES_MAX", 20)
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_BYTES_A_TOKEN_MAX", 10)
    opened(engine, "1", by="t", then=THEN)
    assert isinstance(opened(engine, "2", by="t", then=THEN), TooManyMessageBatches)
    assert opened(engine, "2", by="u", then=THEN).id == "2"
    assert isinstance(opened(engine, "3", then=THEN), TooManyMessageBatches)


def test_a_batch_has_so_many_members(engine, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCH_MEMBERS_MAX", 2)
    opened(engine)
    added(engine, "1")
    assert isinstance(added(engine, "2", "3"), MessageBatchFull)
    added(engine, "2")
    assert isinstance(opened(engine, "inner", outer="b"), MessageBatchFull)
    assert counts(engine) == (2, 0, 0, 0)


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
