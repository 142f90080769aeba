"""A message that fails for the last time becomes a dead letter, or goes, in the transaction in which it fails: contract
F7, and operations/due.py."""

import json
from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Cancel,
    Extend,
    Nack,
    NackById,
    Nacked,
    ProduceMany,
    Redrive,
    Sweep,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, QueueCounts
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, NACKED, STALE_RECOVERED, EngineSettings, Event
from support.batches import read_events

from .engines import on_sql
from .script import (
    DAY_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    look,
    receipts,
    receive,
    receive_one,
    run,
    send,
    sweep,
)


@pytest.fixture
def engine(make_engine):
    return make_engine(EngineSettings(attempts_max=1, history=True, events=True))


def by_receipt(message_id, receipt):
    return Nack("q", (receipt,), 0, "no")


def by_id(message_id, receipt):
    return NackById("q", message_id)


def by_ending_its_lease(message_id, receipt):
    return Extend("q", (receipt,), 0)


@pytest.mark.parametrize(
    ("settles", "changes"),
    [(by_receipt, [Event(NACKED, "q", 1)]), (by_id, [Event(NACKED, "q", 1)]), (by_ending_its_lease, [])],
)
def test_f7_a_settlement_that_fails_moves_it_at_once(engine, settles, changes) -> None:
    produced = send(engine, "body")
    _, receipt = receive_one(engine)
    result = run(engine, settles(produced.id, receipt), now=T0 + 5)
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "failed"), *changes]
    assert (result.failed_queued, set(result.woken)) == (False, {"q-dlq"})
    assert result.moved_in == {"q-dlq": 1}
    message = look(engine, produced.id, "q-dlq")
    assert (message.status, message.attempts, message.content) == ("ready", 0, "body")
    assert (message.failure_reason, message.source_queue) == (REASON_MAX_ATTEMPTS, "q")
    assert (message.received_at, message.process_after) == (T0, T0 + 5)
    assert message.expires_after == T0 + 5 + 7 * DAY_MS
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}
    assert sweep(engine, SweepKind.FAILED).count == 0


def test_f7_the_end_of_its_last_lease_moves_it_at_once(engine) -> None:
    produced = send(engine)
    receive(engine, lease_ms=10)
    result = run(engine, now=T0 + 10)
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "failed"), Event(STALE_RECOVERED, "q", 1)]
    assert look(engine, produced.id, "q-dlq").failures[-1].reason == "lease ended"
    assert not result.failed_queued


def test_whoever_waits_for_dead_letters_gets_it_in_the_same_batch(engine) -> None:
    send(engine, "body")
    _, receipt = receive_one(engine)
    result = run(engine, Nack("q", (receipt,)), parked={"q-dlq": [claim(queue="q-dlq")]})
    ((_, deliveries),) = result.served["q-dlq"]
    assert contents(deliveries) == ["body"]


def test_a_claim_of_the_same_batch_gets_it(engine) -> None:
    send(engine, "body")
    _, receipt = receive_one(engine)
    _, deliveries = run(engine, Nack("q", (receipt,)), claim(queue="q-dlq")).outcomes
    assert contents(deliveries) == ["body"]


def test_f7_one_that_fails_in_a_dead_letter_queue_is_gone_at_once(engine) -> None:
    produced = send(engine, queue="q-dlq")
    _, receipt = receive_one(engine, queue="q-dlq")
    result = run(engine, Nack("q-dlq", (receipt,), reason="again"))
    assert result.events == [Event(CLEANED_UP, "q-dlq", 1, "failed"), Event(NACKED, "q-dlq", 1)]
    assert look(engine, produced.id, "q-dlq") is None
    with closing(engine.open_reader()) as reader:
        (line,) = reader.log_lines("history", 0, None, 9, None).lines.splitlines()
    finished = json.loads(line)
    assert (finished["outcome"], finished["reason"]) == ("discarded", "failed")


def test_its_events_are_told_in_their_order(engine) -> None:
    for _ in range(2):
        send(engine)
    (first, second) = receipts(receive(engine, 2))
    run(engine, Nack("q", (first, second), reason="no"), now=T0 + 5)
    with closing(engine.open_reader()) as reader:
        told = [event for event in read_events(reader) if event["at"] == T0 + 5]
    for sequence in (1, 2):
        mine = [event for event in told if event["sequence"] == sequence]
        assert [(event["kind"], event["reason"], event["target"], event["attempt"]) for event in mine] == [
            ("nacked", "no", None, 1),
            ("dead_lettered", "failed", "q-dlq", 1),
        ]


@on_sql
@pytest.mark.parametrize(("name", "bound"), [("FAILED_MOVED_MAX", 2), ("REWRITE_BYTES_MAX", 8)])
def test_a_batch_moves_some_and_leaves_the_rest_to_a_sweep(engine, monkeypatch, name, bound) -> None:
    """Two of them, of five bytes each, reach either bound; so each kind of nack fails as many."""
    do(engine, ProduceMany("q", tuple(NewMessage(f"body{n}") for n in range(4))))
    deliveries = receive(engine, 4)
    by_ids = [NackById("q", delivery.id) for delivery in deliveries[2:]]
    with monkeypatch.context() as bounded:
        bounded.setattr(limits, name, bound)
        result = run(engine, Nack("q", receipts(deliveries[:2])), *by_ids)
    assert result.outcomes == [(Nacked.FAILED,) * 2, True, True]
    assert result.events == [Event(MOVED_TO_DLQ, "q", 2, "failed"), Event(NACKED, "q", 4)]
    assert result.failed_queued
    assert counted(engine) == {"q": QueueCounts(failed=2), "q-dlq": QueueCounts(ready=2)}
    assert run(engine, Sweep(SweepKind.FAILED)).outcomes[0].count == 2
    assert contents(receive(engine, 9, queue="q-dlq")) == [f"body{n}" for n in range(4)]


def test_what_a_later_command_of_the_batch_does_to_it_counts(engine) -> None:
    cancelled, redriven = send(engine), send(engine)
    taken = receipts(receive(engine, 2))
    batch = [Nack("q", taken), Redrive("q", (redriven.id,), "elsewhere"), Cancel("q", cancelled.id)]
    result = run(engine, *batch)
    assert result.outcomes == [(Nacked.FAILED,) * 2, (True,), None]
    assert counted(engine) == {"q": QueueCounts(), "elsewhere": QueueCounts(ready=1)}


def test_the_next_message_of_its_group_is_handed_out_in_the_same_batch(engine) -> None:
    configure(engine, group_in_flight_max=1)
    for content in ("first", "second"):
        send(engine, content, group="g")
    _, receipt = receive_one(engine)
    _, deliveries = run(engine, Nack("q", (receipt,)), claim(2)).outcomes
    assert contents(deliveries) == ["second"]
