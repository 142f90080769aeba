"""Results: a message that is acknowledged with one is kept with it, whether the history is on or off."""

from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckWithResult,
    Cancel,
    Delete,
    Nack,
    PurgeHistory,
    Redrive,
    Removed,
    TrimHistory,
)
from forq_trio.storage.engine import ACKED, Batch, EngineSettings, Event
from support.batches import looking

from .script import DAY_MS, HOUR_MS, T0, ack, configure, do, receipts, receive, receive_one, run, send

EVERYTHING = 10**12
KEEP_MS = 5_000


@pytest.fixture(params=[False, True], ids=["history-off", "history-on"])
def engine(make_engine, request):
    return make_engine(EngineSettings(history=request.param))


@pytest.fixture
def off(make_engine):
    return make_engine(EngineSettings())


def result_of(engine, message_id, queue="q"):
    return looking(engine, lambda reader: reader.message_result(queue, message_id))


def finish(engine, result="r", *, now=T0, keep_ms=KEEP_MS, queue="q", content="x"):
    """Send a message, receive it, and acknowledge it with a result; its id."""
    sent = send(engine, content, queue=queue, now=now)
    _, receipt = receive_one(engine, queue=queue, now=now)
    assert do(engine, AckWithResult(queue, (receipt,), result, keep_ms), now) == (True,)
    return sent.id


def finished(engine, message_id, queue="q"):
    with closing(engine.open_reader()) as reader:
        return reader.finished(queue, message_id)


def trim(engine, now, *, hours=168, bytes_max=EVERYTHING):
    return do(engine, TrimHistory(now - hours * HOUR_MS, bytes_max), now)


def test_the_result_is_kept_with_the_finished_message(engine, zero):
    sent = send(engine, "x", attributes={"k": "v"}, group="g", now=T0)
    _, receipt = receive_one(engine, now=T0 + 1)
    result = run(engine, AckWithResult("q", (receipt,), f"größe{zero}", KEEP_MS), now=T0 + 7)
    assert result.outcomes == [(True,)]
    assert result.events == [Event(ACKED, "q", 1)]
    known = result_of(engine, sent.id)
    assert (known.id, known.queue, known.state, known.attempts) == (sent.id, "q", "acked", 1)
    assert (known.result, known.last_error, known.ended_at) == (f"größe{zero}", None, T0 + 7)
    kept = finished(engine, sent.id)
    assert (kept.content, kept.attributes, kept.outcome) == ("x", {"k": "v"}, "acked")
    assert (kept.result, kept.kept_until) == (f"größe{zero}", T0 + 7 + KEEP_MS)
    assert kept.bytes == len("x" + "k" + "v") + len(f"größe{zero}".encode())
    assert engine.snapshot().history_of("q") == (1, kept.bytes)


def test_a_message_waits_until_it_ends(engine):
    sent = send(engine)
    assert result_of(engine, sent.id).state == "waiting"
    _, receipt = receive_one(engine)
    assert result_of(engine, sent.id).state == "waiting"
    assert result_of(engine, sent.id, "r") is None
    do(engine, Nack("q", (receipt,), 0, "no line"))
    known = result_of(engine, sent.id)
    assert (known.state, known.attempts, known.last_error) == ("waiting", 1, "no line")


def test_several_share_a_result_and_one_that_is_not_current_is_refused(engine):
    for content in "abc":
        send(engine, content)
    a, b, c = receipts(receive(engine, 3))
    assert ack(engine, b)
    assert do(engine, AckWithResult("q", (a, b, c), "same", KEEP_MS)) == (True, False, True)
    assert do(engine, AckWithResult("q", (a,), "again", KEEP_MS)) == (False,)
    assert do(engine, AckWithResult("r", (a,), "again", KEEP_MS)) == (False,)


def test_an_empty_result_is_one(engine):
    assert result_of(engine, finish(engine, "")).result == ""


def test_without_a_result_nothing_is_kept_while_the_history_is_off(off):
    sent = send(off)
    _, receipt = receive_one(off)
    assert ack(off, receipt)
    assert result_of(off, sent.id) is None


def test_a_dead_letter_is_known_by_the_queue_it_came_from(engine):
    configure(engine, max_attempts=1)
    sent = send(engine)
    _, receipt = receive_one(engine)
    result = run(engine, Nack("q", (receipt,), None, "no line"), now=T0 + 3)
    assert dict(result.ended) == {sent.id: "dead"}
    known = result_of(engine, sent.id)
    assert (known.queue, known.state, known.last_error, known.ended_at) == (
        "q-dlq",
        "dead",
        "no line",
        T0 + 3,
    )
    assert result_of(engine, sent.id, "q-dlq").state == "waiting"
    assert do(engine, Redrive("q-dlq", (sent.id,))) == (True,)
    assert result_of(engine, sent.id).state == "waiting"


def test_a_dead_letter_that_ends_in_its_queue_is_still_known(make_engine):
    engine = make_engine(EngineSettings(history=True))
    configure(engine, max_attempts=1)
    sent = send(engine)
    _, receipt = receive_one(engine)
    do(engine, Nack("q", (receipt,), None, "no line"))
    assert do(engine, Delete("q-dlq", (sent.id,))) == (True,)
    known = result_of(engine, sent.id)
    assert (known.queue, known.state, known.last_error) == ("q-dlq", "deleted", "no line")


def test_ends_are_told_and_acks_without_a_result_only_to_those_who_wait_for_them(engine):
    sent = [send(engine) for _ in range(5)]
    first, second, *others = receipts(receive(engine, 4))
    assert dict(run(engine, Ack("q", (first,))).ended) == {}
    assert dict(run(engine, AckWithResult("q", (second,), "r", KEEP_MS)).ended) == {sent[1].id: "acked"}
    assert dict(run(engine, Cancel("q", sent[4].id)).ended) == {sent[4].id: "cancelled"}
    result = engine.execute_batch(Batch((Ack("q", tuple(others)),), T0, awaited_ends={sent[3].id}))
    engine.commit()
    assert dict(result.ended) == {sent[3].id: "acked"}
    assert dict(run(engine).ended) == {}


def test_retention_leaves_a_result_for_its_time(engine):
    message = finish(engine, keep_ms=2 * HOUR_MS)
    assert trim(engine, T0 + 2 * HOUR_MS - 1, hours=1) == Removed(0, more=False)
    assert result_of(engine, message).result == "r"
    assert trim(engine, T0 + 2 * HOUR_MS, hours=1) == Removed(1, more=False)
    assert result_of(engine, message) is None
    assert engine.snapshot().history_of(None) == (0, 0)


def test_while_the_history_is_on_a_result_stays_as_long_as_its_message(make_engine):
    engine = make_engine(EngineSettings(history=True))
    message = finish(engine, keep_ms=1)
    assert trim(engine, T0 + DAY_MS, hours=48) == Removed(0, more=False)
    assert result_of(engine, message).result == "r"


def test_while_the_history_is_off_a_result_goes_when_its_time_is_over(off):
    message = finish(off, keep_ms=1)
    assert trim(off, T0 + 1) == Removed(1, more=False)
    assert result_of(off, message) is None


def test_the_bound_on_bytes_holds_for_results(engine):
    old, new = finish(engine, "r" * 50), finish(engine, "r" * 50)
    assert trim(engine, T0, bytes_max=60) == Removed(1, more=False)
    assert result_of(engine, old) is None
    assert result_of(engine, new).result == "r" * 50


def test_a_time_that_a_clock_far_ahead_wrote_is_not_believed(off):
    finish(off, now=T0 + 100 * DAY_MS, keep_ms=HOUR_MS)
    assert trim(off, T0) == Removed(1, more=False)


def test_while_the_history_is_off_the_oldest_results_give_way(off, monkeypatch):
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 3)
    messages = [finish(off, str(number)) for number in range(5)]
    assert [result_of(off, message) and result_of(off, message).result for message in messages] == [
        None,
        None,
        "2",
        "3",
        "4",
    ]
    assert off.snapshot().history_of(None).messages == 3
    assert off.snapshot().logs["history"][1:3] == (3, 5)


def finish_many(engine, number, result="r"):
    """Finish many messages with one ack; their ids."""
    sent = [send(engine).id for _ in range(number)]
    held = tuple(receipts(receive(engine, number)))
    assert do(engine, AckWithResult("q", held, result, KEEP_MS)) == (True,) * number
    return sent


def test_no_more_results_are_added_than_removed_once_there_are_enough(off, monkeypatch):
    """A step removed 200, and one command stores up to 1,000."""
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 10)
    monkeypatch.setattr(limits, "HISTORY_STEP_MESSAGES", 4)
    for _ in range(3):
        messages = finish_many(off, 50)
        assert off.snapshot().history_of(None).messages == 10
        assert [bool(result_of(off, each)) for each in messages] == [False] * 40 + [True] * 10


def test_retention_removes_the_results_that_were_too_large_for_one_ack(off, monkeypatch):
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 10)
    monkeypatch.setattr(limits, "HISTORY_STEP_BYTES", 100)
    finish_many(off, 50, "r" * 50)
    while trim(off, T0).more:
        pass
    assert off.snapshot().history_of(None).messages == 10
    assert trim(off, T0) == Removed(0, more=False)


def test_while_the_history_is_on_their_number_has_no_bound(make_engine, monkeypatch):
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 1)
    engine = make_engine(EngineSettings(history=True))
    messages = [finish(engine) for _ in range(3)]
    assert all(result_of(engine, message) for message in messages)


def test_a_purge_of_the_history_removes_results(engine):
    message = finish(engine)
    assert do(engine, PurgeHistory("q")).count == 1
    assert result_of(engine, message) is None
