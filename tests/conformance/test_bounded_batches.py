"""What a batch does is bounded in messages and bytes (storage/allowance.py); the next one goes on."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Configure,
    Delete,
    Extend,
    Nack,
    Pause,
    Produce,
    ProduceMany,
    Purge,
    PurgeStep,
    Release,
    Resubmit,
    SweepKind,
)
from forq_trio.model.errors import QueueFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import DEFERRED, Deferred

from .engines import on_sql
from .script import (
    LEASE_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    fail,
    pause,
    receipts,
    receive,
    redrive,
    run,
    send,
    sweep,
)

pytestmark = on_sql

TEXT = "four"


@pytest.fixture
def small(monkeypatch):
    """A step takes three messages of four bytes."""
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)


def send_all(engine, count, *, queue="q", **fields):
    return [send(engine, TEXT, queue=queue, **fields) for _ in range(count)]


# Claims


def test_the_bytes_that_a_batch_hands_out_are_bounded(engine, small):
    send_all(engine, 7)
    result = run(engine, claim(5), claim(5))
    assert len(result.outcomes[0]) == 3
    assert result.outcomes[1] is DEFERRED
    assert result.next_due_ms == T0
    assert counted(engine)["q"] == QueueCounts(ready=4, processing=3)


def test_a_message_above_the_bound_is_handed_out_alone(engine, small):
    send(engine, "x" * 100)
    send_all(engine, 1)
    assert len(do(engine, claim(5))[0].content) == 100
    assert contents(do(engine, claim(5))) == [TEXT]


def test_the_messages_that_a_batch_hands_out_are_bounded(engine, monkeypatch):
    send_all(engine, 9)
    monkeypatch.setattr(limits, "COMMIT_MESSAGES_MAX", 4)
    *served, left_out = run(engine, claim(3), claim(3), claim(3)).outcomes
    assert [len(outcome) for outcome in served] == [3, 1]
    assert left_out is DEFERRED


def test_receivers_that_the_bound_left_out_are_served_by_the_next_batch(engine, small):
    waiting = {"q": [claim(2), claim(2), claim(2)]}
    pause(engine)
    send_all(engine, 6)
    first = run(engine, Pause("q", False), parked=waiting)
    assert [place for place, _ in first.served["q"]] == [0, 1]
    assert first.next_due_ms == T0
    rest = {"q": waiting["q"][2:]}
    assert [len(deliveries) for _, deliveries in run(engine, parked=rest).served["q"]] == [2]


def test_no_queue_is_left_behind(engine, small):
    """Where one queue uses all that a batch may hand out, the next batch begins with another one."""
    for queue in ("a", "b", "c"):
        send_all(engine, 9, queue=queue)
    served = []
    for _ in range(6):
        outcomes = run(engine, *(claim(3, queue=queue) for queue in ("a", "b", "c"))).outcomes
        served += [queue for queue, outcome in zip("abc", outcomes, strict=True) if outcome is not DEFERRED]
    assert served == ["a", "b", "c", "a", "b", "c"]


def test_a_claim_gets_nothing_only_where_there_is_nothing(engine, small):
    send_all(engine, 3)
    assert [len(outcome) for outcome in run(engine, *[claim()] * 4).outcomes] == [1, 1, 1, 0]


# Commands that name messages


@pytest.mark.parametrize("kind", [Ack, Nack, Extend, Release])
def test_receipts_of_large_messages_are_settled_in_parts(engine, monkeypatch, kind):
    send_all(engine, 6)
    deliveries = receive(engine, 6)
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 16)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 16)
    more = (0,) if kind is Extend else ()
    named = [kind("q", receipts(deliveries[start : start + 2]), *more) for start in (0, 2, 4)]
    first = run(engine, *named).outcomes
    assert DEFERRED not in first[:2]
    assert first[2] is DEFERRED
    assert do(engine, named[2]) != DEFERRED
    assert counted(engine)["q"].processing == 0


@pytest.mark.parametrize("kind", [Ack, Nack, Extend, Release])
def test_a_settlement_stops_at_the_receipt_that_uses_up_the_bytes(engine, monkeypatch, kind):
    send_all(engine, 5)
    taken = receipts(receive(engine, 5))
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
    more = (0,) if kind is Extend else ()
    settled, deferred = run(engine, kind("q", taken, *more), kind("q", taken[4:], *more)).outcomes
    assert (type(settled), len(settled.done), all(value is not False for value in settled.done)) == (
        Deferred,
        3,
        True,
    )
    assert deferred == DEFERRED
    assert counted(engine)["q"].processing == 2
    assert len(do(engine, kind("q", taken[3:], *more))) == 2
    assert counted(engine)["q"].processing == 0


def test_a_last_nack_of_large_messages_leaves_none_to_a_sweep(engine, monkeypatch):
    """What a batch fails it moves: both steps stop at the same message."""
    configure(engine, max_attempts=1)
    send_all(engine, 5)
    taken = receipts(receive(engine, 5))
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 10)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 10)
    result = run(engine, Nack("q", taken))
    assert (len(result.outcomes[0].done), result.failed_queued) == (3, False)
    assert counted(engine) == {"q": QueueCounts(processing=2), "q-dlq": QueueCounts(ready=3)}


def test_messages_named_by_id_are_settled_in_parts(engine, monkeypatch):
    produced = send_all(engine, 4)
    receive(engine, 4)
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
    outcomes = run(engine, *(AckById("q", each.id) for each in produced)).outcomes
    assert outcomes == [True, True, True, DEFERRED]


def test_moves_removals_and_copies_are_made_in_parts(engine, monkeypatch):
    produced = [each.id for each in send_all(engine, 6, max_attempts=1)]
    do(engine, Nack("q", receipts(receive(engine, 6))))
    sweep(engine, SweepKind.FAILED)
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 8)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 8)
    copies = run(engine, *(Resubmit("q-dlq", each) for each in produced[:3])).outcomes
    assert [outcome is DEFERRED for outcome in copies] == [False, False, True]
    deleted = run(engine, *(Delete("q-dlq", (each,)) for each in produced[:3])).outcomes
    assert deleted == [(True,), (True,), DEFERRED]
    assert redrive(engine, *produced[2:]) == (True,) * 4


# What nobody names


def test_due_messages_are_settled_in_parts(engine, monkeypatch):
    send_all(engine, 5)
    receive(engine, 5)
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
    assert run(engine, now=T0 + LEASE_MS).next_due_ms <= T0 + LEASE_MS
    assert counted(engine)["q"] == QueueCounts(ready=3, processing=2)
    run(engine, now=T0 + LEASE_MS)
    assert counted(engine)["q"] == QueueCounts(ready=5)


@pytest.mark.usefixtures("failed_stay")
def test_a_purge_and_a_sweep_go_in_parts(engine, small):
    send_all(engine, 5)
    assert do(engine, Purge("q")) == PurgeStep(3, 5)
    assert do(engine, Purge("q", 5)) == PurgeStep(2, None)
    for _ in range(4):
        send(engine, TEXT, max_attempts=1)
        fail(engine, attempts=1)
    assert [(swept.count, swept.more) for swept in (sweep(engine, SweepKind.FAILED) for _ in range(2))] == [
        (3, True),
        (1, False),
    ]


def test_groups_that_are_freed_together_are_looked_at_in_parts(engine, monkeypatch):
    configure(engine, group_in_flight_max=1)
    for group in "abcde":
        send_all(engine, 2, group=group)
    deliveries = receive(engine, 10)
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 2)
    result = run(engine, Ack("q", receipts(deliveries)))
    ready = [counted(engine)["q"].ready]
    assert result.next_due_ms == T0
    while run(engine).next_due_ms == T0:
        ready.append(counted(engine)["q"].ready)
    assert [*ready, counted(engine)["q"].ready] == [2, 4, 5]


def test_a_group_that_may_have_many_gets_them_in_parts(engine, monkeypatch):
    configure(engine, group_in_flight_max=1)
    send_all(engine, 6, group="g")
    deliveries = receive(engine, 6)
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 2)
    configure(engine, group_in_flight_max=9)
    assert counted(engine)["q"] == QueueCounts(ready=2, held=3, processing=len(deliveries))
    while run(engine).next_due_ms == T0:
        assert counted(engine)["q"].held in (1, 0)
    assert counted(engine)["q"] == QueueCounts(ready=5, processing=1)


def test_groups_that_are_freed_all_the_time_do_not_hold_up_a_lifted_limit(engine, monkeypatch):
    configure(engine, "lifted", group_in_flight_max=1)
    configure(engine, group_in_flight_max=1)
    send_all(engine, 3, queue="lifted", group="g")
    run(engine, claim(9, queue="lifted"))
    for group in "abc":
        send_all(engine, 3, group=group)
    deliveries = receive(engine, 9)
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 3)
    run(engine, Ack("q", receipts(deliveries)), Configure("lifted", None))
    assert counted(engine)["lifted"].held == 0


# Evictions


@pytest.fixture
def lowered(engine, monkeypatch):
    """A queue that is far above its bound, because that was lowered; a send evicts two at the most."""
    send_all(engine, 9)
    configure(engine, max_messages=3, overflow=Overflow.DROP_OLDEST)
    monkeypatch.setattr(limits, "EVICTED_MAX", 2)
    return engine


def test_a_queue_above_a_lowered_bound_comes_down_send_by_send(lowered):
    totals = []
    for _ in range(7):
        send(lowered, "new")
        totals.append(counted(lowered)["q"].total)
    assert totals == [8, 7, 6, 5, 4, 3, 3]


def test_of_many_sends_at_once_some_wait_for_the_next_batch(lowered):
    outcomes = run(lowered, *[Produce("q", NewMessage("new"))] * 3).outcomes
    assert [outcome is DEFERRED for outcome in outcomes] == [False, True, True]
    assert counted(lowered)["q"].total == 8


def test_no_kind_of_send_starves_another(lowered):
    commands = [*[Produce("q", NewMessage("new"))] * 2, ProduceMany("q", (NewMessage("new"),) * 2)]
    outcomes = run(lowered, *commands).outcomes
    assert [outcome is DEFERRED for outcome in outcomes] == [False, True, False]


def test_a_large_message_gets_into_a_queue_full_of_small_ones(engine, monkeypatch):
    """It may put its queue above the bound, by itself; the next ones may not, and bring it down."""
    send_all(engine, 10)
    configure(engine, max_bytes=40, overflow=Overflow.DROP_OLDEST)
    monkeypatch.setattr(limits, "EVICTED_MAX", 2)
    send(engine, "x" * 20)
    assert engine.snapshot().counts["q"].bytes == 52
    assert isinstance(do_send(engine, "y" * 20), QueueFull)
    assert engine.snapshot().counts["q"].bytes == 44
    assert isinstance(do_send(engine, "y" * 20), QueueFull)
    assert engine.snapshot().counts["q"].bytes == 40
    send(engine, "y" * 20)
    assert engine.snapshot().counts["q"].bytes == 52
    send(engine, TEXT)
    assert engine.snapshot().counts["q"].bytes == 48


def test_a_send_looks_at_a_bounded_number_of_bytes(engine, small):
    send_all(engine, 9)
    configure(engine, max_messages=2, overflow=Overflow.DEAD_LETTER)
    send(engine, "new")
    assert counted(engine) == {"q": QueueCounts(ready=7), "q-dlq": QueueCounts(ready=3)}


def test_a_refused_send_into_a_queue_full_of_messages_in_process_evicts_none(engine):
    send_all(engine, 4)
    receive(engine, 3)
    configure(engine, max_messages=3, overflow=Overflow.DROP_OLDEST)
    assert isinstance(do_send(engine, "new"), QueueFull)
    assert counted(engine)["q"] == QueueCounts(ready=1, processing=3)


def do_send(engine, content):
    return do(engine, Produce("q", NewMessage(content)))


def test_what_was_left_due_stays_due_when_the_clock_is_set_back(engine, monkeypatch):
    configure(engine, "lifted", group_in_flight_max=1)
    send_all(engine, 4, queue="lifted", group="g")
    run(engine, claim(9, queue="lifted"))
    send_all(engine, 3, ttl_ms=1_000)
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 1)
    run(engine, Configure("lifted", None), now=T0 + 5_000)
    assert (counted(engine)["lifted"].held, counted(engine)["q"].ready) == (2, 2)
    run(engine, now=T0 + 4_000)
    assert counted(engine)["q"].ready == 1
