"""A consumer's own rule for messages that were delivered too often (S4)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Extend, RedrivePolicy, Resubmit, SweepKind
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, QueueCounts
from forq_trio.storage.engine import CLEANED_UP, CONSUMED, DEFERRED, MOVED_TO_DLQ, Event

from .engines import on_sql
from .script import (
    DAY_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    fail,
    look,
    receipts,
    receive,
    run,
    send,
    sweep,
    woken_by,
)


def send_tried(engine, content, attempts, *, queue="q", **fields):
    """A ready message that was delivered `attempts` times, with no dead-letter queue; alone in its queue."""
    fields = {"max_attempts": 100, "dead_letter_queue": "", **fields}
    produced = send(engine, content, queue=queue, **fields)
    fail(engine, queue=queue, attempts=attempts)
    return produced


def receive_with(engine, policy, most=9):
    return run(engine, claim(most, redrive_policy=policy))


def test_s4_delivered_up_to_the_bound_and_moved_then(engine):
    produced = send_tried(engine, "x", 1)
    policy = RedrivePolicy(2, "bad")
    (delivery,) = receive_with(engine, policy).outcomes[0]
    assert delivery.attempts == 2
    do(engine, Extend("q", receipts([delivery]), 0))
    result = receive_with(engine, policy)
    assert result.outcomes == [()]
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]
    message = look(engine, produced.id, "bad")
    assert (message.attempts, message.source_attempts, message.status) == (0, 2, "ready")
    assert (message.failure_reason, message.source_queue) == (REASON_MAX_ATTEMPTS, "q")
    assert (message.dead_lettered_at, message.expires_after) == (T0, T0 + DAY_MS)


def test_s4_without_a_queue_it_is_deleted(engine):
    send_tried(engine, "x", 1)
    assert receive_with(engine, RedrivePolicy(1)).events == [Event(CLEANED_UP, "q", 1, "failed")]
    assert engine.snapshot().counts == {"q": QueueCounts()}


def test_s4_where_the_queue_is_full_it_is_deleted(engine):
    policy = RedrivePolicy(1, "bad", messages_max=2)
    send_tried(engine, "first", 1)
    receive_with(engine, policy)
    send(engine, "delayed", queue="bad", delay_ms=5)
    send_tried(engine, "second", 1)
    assert receive_with(engine, policy).events == [Event(CLEANED_UP, "q", 1, "dlq_full")]
    assert counted(engine) == {"q": QueueCounts(), "bad": QueueCounts(ready=1, delayed=1)}


def test_a_queue_fills_within_one_claim(engine):
    for priority, content in enumerate("cba"):
        send_tried(engine, content, 1, priority=priority)
    result = receive_with(engine, RedrivePolicy(1, "bad", messages_max=2))
    assert result.events == [Event(CLEANED_UP, "q", 1, "dlq_full"), Event(MOVED_TO_DLQ, "q", 2, "failed")]


def test_a_claim_goes_on_to_the_next_ones_until_it_is_filled(engine):
    for priority, content in enumerate(("good 2", "bad 2", "good 1", "bad 1")):
        send_tried(engine, content, 2 if content.startswith("bad") else 1, priority=priority)
    result = receive_with(engine, RedrivePolicy(2, "bad"), most=2)
    assert contents(result.outcomes[0]) == ["good 1", "good 2"]
    assert result.events == [Event(CONSUMED, "q", 2), Event(MOVED_TO_DLQ, "q", 2, "failed")]


def test_only_those_that_are_met_are_dealt_with(engine):
    send_tried(engine, "bad", 2, priority=1)
    send(engine, "good", priority=2)
    assert contents(receive_with(engine, RedrivePolicy(2, "bad"), most=1).outcomes[0]) == ["good"]
    assert counted(engine)["q"] == QueueCounts(ready=1, processing=1)


def test_claims_without_the_rule_get_it_all_the_same(engine):
    send_tried(engine, "x", 3)
    assert receive(engine)[0].attempts == 4


def test_claims_of_different_rules_are_served_in_their_order(engine):
    for priority in range(3):
        send_tried(engine, str(priority), 2, priority=priority)
    first, second, third = run(
        engine, claim(redrive_policy=RedrivePolicy(3)), claim(redrive_policy=RedrivePolicy(2)), claim()
    ).outcomes
    assert contents(first) == ["2"]
    assert (second, third) == ((), ())
    assert counted(engine)["q"] == QueueCounts(processing=1)


def test_one_claims_rule_may_leave_nothing_for_the_next(engine):
    for priority in range(2):
        send_tried(engine, "x", 1, priority=priority)
    result = run(engine, claim(redrive_policy=RedrivePolicy(1)), claim())
    assert result.outcomes == [(), ()]
    assert result.events == [Event(CLEANED_UP, "q", 2, "failed")]
    assert result.durations == {}


def test_a_target_that_is_the_queue_itself_is_none(engine):
    send_tried(engine, "x", 1)
    result = receive_with(engine, RedrivePolicy(1, "q"))
    assert result.events == [Event(CLEANED_UP, "q", 1, "failed")]


@pytest.mark.parametrize("target", ["a bad one", "zz"])
def test_who_waits_where_it_goes_is_served_by_the_next_batch_at_once(engine, target):
    target = target.replace(" ", "")
    send_tried(engine, "x", 1)
    waiting = {target: [claim(queue=target)]}
    result = run(engine, claim(redrive_policy=RedrivePolicy(1, target)), parked=waiting)
    assert (result.served, result.next_due_ms) == ({}, T0)
    assert result.woken == {target}
    assert woken_by(engine, queue=target) == ["x"]
    assert run(engine).next_due_ms > T0


def test_who_waits_may_have_a_rule_too(engine):
    send_tried(engine, "bad", 1)
    configure(engine, lease_ms=1)
    send(engine, "good", priority=1)
    result = run(engine, parked={"q": [claim(redrive_policy=RedrivePolicy(1, "bad"))]})
    assert result.served == {}
    send(engine, "wakes", priority=0)
    result = run(engine, claim(redrive_policy=RedrivePolicy(1, "bad")))
    assert contents(result.outcomes[0]) == ["good"]


def test_the_new_queue_bounds_nothing(engine):
    configure(engine, "bad", max_messages=1)
    for priority in range(3):
        send_tried(engine, "x", 1, priority=priority)
    receive_with(engine, RedrivePolicy(1, "bad"))
    assert counted(engine)["bad"].ready == 3


@on_sql
def test_a_claim_removes_a_bounded_number_and_goes_on_in_the_next_batch(engine, monkeypatch):
    for _ in range(5):
        send(engine, "x", max_attempts=100)
    for _ in range(2):
        run(engine, Extend("q", receipts(receive(engine, 9)), 0))
    send(engine, "good")
    monkeypatch.setattr(limits, "CLAIM_FILTERED_MAX", 2)
    wanted = claim(redrive_policy=RedrivePolicy(2, "bad"))
    result = run(engine, wanted)
    assert result.outcomes == [DEFERRED]
    assert result.next_due_ms == T0
    assert counted(engine)["bad"].ready == 2
    assert run(engine, parked={"q": [wanted]}).served == {}
    assert counted(engine)["bad"].ready == 4
    served = run(engine, parked={"q": [wanted]}).served
    assert [contents(deliveries) for _, deliveries in served["q"]] == [["good"]]
    assert run(engine).next_due_ms > T0


def test_a_message_that_has_a_dead_letter_queue_goes_there_where_the_claim_names_none(engine):
    produced = send_tried(engine, "x", 1, dead_letter_queue=None)
    assert receive_with(engine, RedrivePolicy(1)).events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]
    assert look(engine, produced.id, "q-dlq").source_attempts == 1


def test_it_goes_there_too_where_the_one_of_the_claim_is_full(engine):
    send(engine, "in the way", queue="bad")
    produced = send_tried(engine, "x", 1, dead_letter_queue="grave")
    assert receive_with(engine, RedrivePolicy(1, "bad", 1)).outcomes == [()]
    assert look(engine, produced.id, "grave").failure_reason == REASON_MAX_ATTEMPTS


def test_without_a_bound_of_the_claim_its_senders_default_holds(engine):
    send_tried(engine, "theirs", 2, dead_letter_queue=None, queue="theirs")
    send_tried(engine, "ours", 2, default_max_receives=2)
    assert contents(run(engine, claim(queue="theirs", redrive_policy=RedrivePolicy())).outcomes[0]) == [
        "theirs"
    ]
    assert receive_with(engine, RedrivePolicy(None, "bad")).events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]


def test_a_claim_without_a_policy_knows_nothing_of_that_default(engine):
    send_tried(engine, "x", 3, default_max_receives=2)
    assert receive(engine)[0].attempts == 4


def test_a_copy_keeps_its_originals_default(engine):
    produced = send(engine, "x", default_max_receives=1, max_attempts=1, dead_letter_queue="bad")
    fail(engine, attempts=1)
    sweep(engine, SweepKind.FAILED)
    do(engine, Resubmit("bad", produced.id))
    do(engine, Extend("q", receipts(receive(engine)), 0))
    assert receive_with(engine, RedrivePolicy()).outcomes == [()]
