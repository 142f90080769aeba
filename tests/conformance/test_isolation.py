"""A command that fails alone leaves its neighbours untouched (`Engine.execute_batch`); what a batch leaves behind."""

from forq_trio.model import limits
from forq_trio.model.commands import Ack, Optimize, Ping, Produce, ProduceMany
from forq_trio.model.errors import ForqError, Overloaded
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, QueueCounts
from forq_trio.storage.engine import Batch

from .script import T0, claim, contents, counted, receipts, receive, run, send

UNSTORABLE = NewMessage("\ud800")  # half of a surrogate pair: no UTF-8 for it; the broker refuses it earlier


def test_f1_a_message_that_cannot_be_stored_fails_alone(engine):
    send(engine, "settled")
    deliveries = receive(engine)
    before, failed, after, acked, claimed = run(
        engine,
        Produce("q", NewMessage("before")),
        Produce("q", UNSTORABLE),
        Produce("q", NewMessage("after")),
        Ack("q", receipts(deliveries)),
        claim(9),
    ).outcomes
    assert isinstance(failed, ForqError)
    assert isinstance(before, Produced)
    assert isinstance(after, Produced)
    assert acked == (True,)
    assert contents(claimed) == ["before", "after"]
    assert counted(engine) == {"q": QueueCounts(processing=2)}


def test_many_are_stored_all_or_none(engine):
    messages = (NewMessage("good", deduplication_id="k"), UNSTORABLE, NewMessage("good too"))
    result = run(engine, ProduceMany("new", messages), Produce("q", NewMessage("neighbour")))
    failed, neighbour = result.outcomes
    assert isinstance(failed, ForqError)
    assert isinstance(neighbour, Produced)
    assert [(event.queue, event.count) for event in result.events] == [("q", 1)]
    assert counted(engine) == {"q": QueueCounts(ready=1)}
    assert not send(engine, queue="new", deduplication_id="k").duplicate


def test_sequence_numbers_still_grow_after_a_failure(engine):
    first = send(engine)
    failed, second = run(
        engine, ProduceMany("q", (NewMessage("x"), UNSTORABLE)), Produce("q", NewMessage("y"))
    ).outcomes
    third = send(engine)
    assert isinstance(failed, ForqError)
    assert first.sequence < third.sequence
    assert first.sequence < second.sequence < third.sequence
    assert len({first.id, second.id, third.id}) == 3


def test_one_queue_too_many_is_refused_alone(engine, monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 2)
    send(engine, queue="a")
    commands = [Produce(queue, NewMessage("x")) for queue in ("b", "c", "a")]
    stored, refused, known = run(engine, *commands).outcomes
    assert isinstance(refused, Overloaded)
    assert isinstance(stored, Produced)
    assert isinstance(known, Produced)
    assert counted(engine) == {"a": QueueCounts(ready=2), "b": QueueCounts(ready=1)}


def test_a_dead_letter_queue_is_never_one_too_many(engine, monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 1)
    produced = send(engine)
    run(engine, now=T0 + 24 * limits.HOUR_MS)
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}
    assert receive(engine, queue="q-dlq", now=T0 + 24 * limits.HOUR_MS)[0].id == produced.id


def test_ping_and_optimize_change_nothing(engine):
    send(engine)
    result = run(engine, Ping(), Optimize())
    assert result.outcomes == [None, None]
    assert result.events == []
    assert counted(engine) == {"q": QueueCounts(ready=1)}


def test_commit_says_whether_there_was_anything_to_make_durable(engine):
    engine.execute_batch(Batch([], T0))
    assert not engine.commit()
    engine.execute_batch(Batch([claim()], T0))
    assert not engine.commit()
    engine.execute_batch(Batch([Produce("q", NewMessage("x"))], T0))
    assert engine.commit()


def test_a_checkpoint_moves_the_whole_log(engine):
    for _ in range(10):
        send(engine)
    if engine.log is None:
        return
    moved = engine.log.checkpoint(truncate=False)
    assert moved.copied_pages == moved.log_pages == engine.log.pages()
    engine.log.checkpoint(truncate=True)
    assert engine.log.pages() == 0
    assert contents(receive(engine, 20)) == ["x"] * 10
