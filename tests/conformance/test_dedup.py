"""Deduplication: a second send with a known id within the window stores nothing."""

from forq_trio.model.commands import Produce, ProduceMany, SweepKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, QueueCounts
from forq_trio.storage.engine import PRODUCED, Event

from .script import T0, ack, contents, counted, do, receive, receive_one, run, send, sweep

WINDOW_MS = 5_000


def send_unique(engine, content="x", *, key="k", queue="q", now=T0):
    return send(
        engine, content, queue=queue, now=now, deduplication_id=key, deduplication_window_ms=WINDOW_MS
    )


def test_a_duplicate_is_answered_with_the_first_and_not_stored(engine):
    first = send_unique(engine, "first")
    again = send_unique(engine, "second", now=T0 + WINDOW_MS - 1)
    assert again == Produced(first.id, first.sequence, duplicate=True)
    assert contents(receive(engine, 2)) == ["first"]


def test_the_window_starts_with_the_first_send_and_is_not_renewed(engine):
    first = send_unique(engine)
    send_unique(engine, now=T0 + WINDOW_MS - 1)
    late = send_unique(engine, now=T0 + WINDOW_MS)
    assert not late.duplicate
    assert late.id != first.id
    assert send_unique(engine, now=T0 + 2 * WINDOW_MS - 1).id == late.id


def test_the_window_holds_after_the_message_is_acknowledged(engine):
    first = send_unique(engine)
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert send_unique(engine) == Produced(first.id, first.sequence, duplicate=True)
    assert counted(engine) == {"q": QueueCounts()}


def test_other_ids_other_queues_and_no_id_are_free(engine):
    sends = [
        send_unique(engine),
        send_unique(engine, key="K"),
        send_unique(engine, queue="other"),
        send(engine),
        send(engine),
    ]
    assert not any(each.duplicate for each in sends)
    assert len({each.id for each in sends}) == 5


def test_duplicates_inside_one_batch(engine):
    command = Produce("q", NewMessage("x", deduplication_id="k"))
    first, second = run(engine, command, command).outcomes
    assert (first.duplicate, second.duplicate) == (False, True)
    assert (second.id, second.sequence) == (first.id, first.sequence)


def test_duplicates_inside_one_request(engine):
    messages = (NewMessage("a", deduplication_id="k"), NewMessage("b"), NewMessage("c", deduplication_id="k"))
    first, between, second = do(engine, ProduceMany("q", messages))
    assert second == Produced(first.id, first.sequence, duplicate=True)
    assert not between.duplicate
    assert contents(receive(engine, 3)) == ["a", "b"]


def test_duplicates_do_not_count_as_produced(engine):
    command = Produce("q", NewMessage("x", deduplication_id="k"))
    assert run(engine, command, command).events == [Event(PRODUCED, "q", 1)]
    assert run(engine, command).events == []


def test_dropping_expired_ids_leaves_the_others(engine):
    send_unique(engine, key="old")
    young = send_unique(engine, key="young", now=T0 + 1)
    sweep(engine, SweepKind.EXPIRED, now=T0 + WINDOW_MS)
    assert not send_unique(engine, key="old", now=T0 + WINDOW_MS).duplicate
    assert send_unique(engine, key="young", now=T0 + WINDOW_MS).id == young.id
