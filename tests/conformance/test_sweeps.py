"""The periodic clean-ups: contract F7, F13. What is due is settled at the start of any batch, so that those for
expired and stale messages normally find nothing; here a small bound on settling leaves them something."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import ProduceMany, Removed, Sweep, SweepKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, QueueCounts
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, STALE_RECOVERED, EngineSettings, Event

from .engines import on_sql
from .script import DAY_MS, T0, contents, counted, do, fail, look, receive, run, send, sweep


@pytest.fixture
def one_at_a_time(monkeypatch):
    """A batch settles one due message and leaves the rest to the sweeps."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 1)


@pytest.mark.parametrize("kind", SweepKind)
def test_f13_an_empty_store_has_nothing_to_sweep(engine, kind):
    result = run(engine, Sweep(kind))
    assert result.outcomes == [Removed(0, more=False)]
    assert result.events == []


@pytest.mark.usefixtures("failed_stay")
def test_f7_failed_messages_move_to_the_dead_letter_queue(engine):
    produced = send(engine, "body")
    fail(engine)
    result = run(engine, Sweep(SweepKind.FAILED), now=T0 + 5)
    assert result.outcomes == [Removed(1, more=False)]
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]
    message = look(engine, produced.id, "q-dlq")
    assert (message.status, message.attempts, message.content) == ("ready", 0, "body")
    assert (message.failure_reason, message.source_queue) == (REASON_MAX_ATTEMPTS, "q")
    assert (message.received_at, message.process_after) == (T0, T0 + 5)
    assert message.expires_after == T0 + 5 + 7 * DAY_MS
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}


@pytest.mark.usefixtures("failed_stay")
def test_f7_failed_in_a_dead_letter_queue_is_deleted(engine):
    produced = send(engine)
    fail(engine)
    sweep(engine, SweepKind.FAILED)
    fail(engine, queue="q-dlq")
    assert sweep(engine, SweepKind.FAILED) == Removed(0, more=False)
    result = run(engine, Sweep(SweepKind.FAILED_DLQ))
    assert result.outcomes == [Removed(1, more=False)]
    assert result.events == [Event(CLEANED_UP, "q-dlq", 1, "failed")]
    assert look(engine, produced.id, "q-dlq") is None
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts()}


def test_f7_other_messages_are_left_alone(engine):
    send(engine)
    send(engine, process_after=T0 + 5)
    send(engine)
    receive(engine)
    for kind in SweepKind:
        assert sweep(engine, kind) == Removed(0, more=False)
    assert counted(engine) == {"q": QueueCounts(ready=1, delayed=1, processing=1)}


@on_sql
@pytest.mark.usefixtures("failed_stay")
def test_f13_a_sweep_is_bounded_and_says_that_there_is_more(make_engine, monkeypatch):
    monkeypatch.setattr(limits, "SWEEP_BATCH_MAX", 4)
    engine = make_engine(EngineSettings(attempts_max=1))
    do(engine, ProduceMany("q", tuple(NewMessage(str(n)) for n in range(6))))
    receive(engine, 6, lease_ms=0)
    run(engine)
    assert counted(engine) == {"q": QueueCounts(failed=6)}
    assert sweep(engine, SweepKind.FAILED) == Removed(4, more=True)
    assert sweep(engine, SweepKind.FAILED) == Removed(2, more=False)
    assert contents(receive(engine, 9, queue="q-dlq")) == [str(n) for n in range(6)]


@on_sql
def test_f13_expired(engine, one_at_a_time):
    for _ in range(3):
        send(engine)
    result = run(engine, Sweep(SweepKind.EXPIRED_DLQ), Sweep(SweepKind.EXPIRED), now=T0 + DAY_MS)
    assert result.outcomes == [Removed(0, more=False), Removed(2, more=False)]
    assert result.events == [Event(MOVED_TO_DLQ, "q", 3, "expired")]


@on_sql
def test_f13_expired_in_a_dead_letter_queue(make_engine, one_at_a_time):
    engine = make_engine(EngineSettings(queue_ttl_ms=5, dlq_ttl_ms=5))
    for _ in range(3):
        send(engine)
    sweep(engine, SweepKind.EXPIRED, now=T0 + 5)
    result = run(engine, Sweep(SweepKind.EXPIRED), Sweep(SweepKind.EXPIRED_DLQ), now=T0 + 10)
    assert result.outcomes == [Removed(0, more=False), Removed(2, more=False)]
    assert result.events == [Event(CLEANED_UP, "q-dlq", 3, "expired")]


@on_sql
def test_f13_expired_takes_delayed_messages_too(make_engine, one_at_a_time):
    engine = make_engine(EngineSettings(queue_ttl_ms=5))
    for _ in range(2):
        send(engine, process_after=T0 + 10)
    result = run(engine, Sweep(SweepKind.EXPIRED), now=T0 + 15)
    assert result.outcomes == [Removed(1, more=False)]
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=2)}


@on_sql
def test_f13_stale(engine, one_at_a_time):
    for _ in range(3):
        send(engine)
    receive(engine, 3, lease_ms=10)
    result = run(engine, Sweep(SweepKind.STALE), now=T0 + 10)
    assert result.outcomes == [Removed(2, more=False)]
    assert result.events == [Event(STALE_RECOVERED, "q", 3)]
    assert counted(engine) == {"q": QueueCounts(ready=3)}


@on_sql
@pytest.mark.usefixtures("failed_stay")
def test_f13_stale_at_the_last_attempt_fails(make_engine, one_at_a_time):
    engine = make_engine(EngineSettings(attempts_max=1))
    for _ in range(2):
        send(engine)
    receive(engine, 2, lease_ms=10)
    result = run(engine, Sweep(SweepKind.STALE), Sweep(SweepKind.FAILED), now=T0 + 10)
    assert not result.failed_queued
    assert result.outcomes == [Removed(1, more=False), Removed(2, more=False)]
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=2)}
