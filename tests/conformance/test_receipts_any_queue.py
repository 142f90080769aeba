"""A receipt names its message in whatever queue: acks and extends need not say which (S5)."""

from forq_trio.model.commands import Ack, Extend
from forq_trio.model.messages.types import QueueCounts, Receipt
from forq_trio.storage.engine import ACKED, Event

from .script import T0, counted, do, look, receive_one, redrive, run, send, send_dead_letter


def claimed_in(engine, *queues):
    claimed = []
    for queue in queues:
        send(engine, queue=queue)
        claimed.append(receive_one(engine, queue=queue)[1])
    return tuple(claimed)


def test_s5_acks_of_several_queues_at_once(engine):
    ids = claimed_in(engine, "a", "b")
    result = run(engine, Ack(None, (*ids, Receipt(99, 1), ids[0])))
    assert result.outcomes == [(True, True, False, False)]
    assert result.events == [Event(ACKED, "a", 1), Event(ACKED, "b", 1)]
    assert engine.snapshot().counts == {"a": QueueCounts(), "b": QueueCounts()}


def test_s5_leases_of_several_queues_at_once(engine):
    ids = claimed_in(engine, "a", "b")
    assert do(engine, Extend(None, (*ids, Receipt(99, 1)), 50)) == (T0 + 50, T0 + 50, None)
    assert run(engine, now=T0 + 50).woken == {"a", "b"}


def test_s5_a_lease_of_nothing_in_any_queue(engine):
    ids = claimed_in(engine, "a", "b")
    assert run(engine, Extend(None, ids, 0)).woken == {"a", "b"}
    assert counted(engine) == {"a": QueueCounts(ready=1), "b": QueueCounts(ready=1)}


def test_s5_an_old_receipt_is_refused_here_too(engine):
    send(engine)
    _, old = receive_one(engine, lease_ms=0)
    _, current = receive_one(engine)
    assert do(engine, Ack(None, (old, current))) == (False, True)


def test_with_a_message_id_both_must_be_right(engine):
    produced = send(engine)
    _, receipt = receive_one(engine)
    other = "00000000-0000-7000-8000-000000000000"
    assert do(engine, Ack(None, (receipt,), other)) == (False,)
    assert do(engine, Ack(None, (receipt,), produced.id)) == (True,)


def test_a_message_that_was_moved_since_is_not_current(engine):
    produced = send_dead_letter(engine)
    _, receipt = receive_one(engine, queue="q-dlq", lease_ms=0)
    run(engine)
    assert redrive(engine, produced.id) == (True,)
    assert do(engine, Ack(None, (receipt,))) == (False,)
    assert look(engine, produced.id) is not None
