"""A consumer's own rule for messages that were delivered too often (S4)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Extend, RedrivePolicy
from forq_trio.model.messages import REASON_MAX_ATTEMPTS, QueueCounts, Status
from forq_trio.storage.engine import CLEANED_UP, CONSUMED, MOVED_TO_DLQ, Event

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
    woken_by,
)


def send_tried(engine, content, attempts, **fields):
    """A ready message that was delivered `attempts` times; nothing else may be in the queue."""
    produced = send(engine, content, max_attempts=100, **fields)
    fail(engine, attempts=attempts)
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
    assert (message.attempts, message.source_attempts, message.status) == (0, 2, Status.READY)
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
    assert result.events == [
        Event(CLEANED_UP, "q", 1, "dlq_full"),
        Event(MOVED_TO_DLQ, "q", 2, "failed"),
    ]


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


def test_a_claim_removes_a_bounded_number_and_goes_on_in_the_next_batch(engine, monkeypatch):
    for _ in range(5):
        send(engine, "x", max_attempts=100)
    for _ in range(2):
        run(engine, Extend("q", receipts(receive(engine, 9)), 0))
    send(engine, "good")
    monkeypatch.setattr(limits, "CLAIM_FILTERED_MAX", 2)
    wanted = claim(redrive_policy=RedrivePolicy(2, "bad"))
    result = run(engine, wanted)
    assert result.outcomes == [()]
    assert result.next_due_ms == T0
    assert counted(engine)["bad"].ready == 2
    assert run(engine, parked={"q": [wanted]}).served == {}
    assert counted(engine)["bad"].ready == 4
    served = run(engine, parked={"q": [wanted]}).served
    assert [contents(deliveries) for _, deliveries in served["q"]] == [["good"]]
    assert run(engine).next_due_ms > T0
