"""Sending: contract F1, F2."""

from uuid import UUID

from forq_trio.model.commands import Ack, ForgetQueue, Produce, ProduceMany
from forq_trio.model.errors import QueueNotFound
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, QueueCounts

from .script import (
    DAY_MS,
    T0,
    ack,
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
)


def test_f2_the_answer_names_a_uuid_v7_and_a_growing_sequence(engine):
    first, second = send(engine), send(engine)
    assert (first.sequence, second.sequence) == (1, 2)
    assert not first.duplicate
    for produced in (first, second):
        assert UUID(produced.id).version == 7
        assert str(UUID(produced.id)) == produced.id
    assert first.id < second.id


def test_f1_a_sent_message_is_stored_as_it_was(engine, zero):
    produced = send(engine, f"größe {zero} \U0001f980", priority=7)
    message = look(engine, produced.id)
    assert message.content == f"größe {zero} \U0001f980"
    assert (message.queue, message.sequence, message.priority) == ("q", 1, 7)
    assert (message.status, message.attempts) == ("ready", 0)
    assert message.received_at == message.updated_at == message.process_after == T0
    assert message.expires_after == T0 + DAY_MS
    assert (message.processing_started_at, message.lease_until) == (None, None)
    assert (message.failure_reason, message.source_queue, message.last_error) == (None, None, None)


def test_f1_empty_and_large_contents_survive(engine):
    large = "€" * 87_381
    send(engine, "")
    send(engine, large)
    assert contents(receive(engine, 2)) == ["", large]


def test_f2_time_to_live_starts_at_process_after(engine):
    produced = send(engine, process_after=T0 + 5_000)
    message = look(engine, produced.id)
    assert (message.status, message.process_after) == ("delayed", T0 + 5_000)
    assert message.expires_after == T0 + 5_000 + DAY_MS
    assert message.received_at == T0


def test_f1_process_after_in_the_past_or_now_is_ready(engine):
    past = send(engine, process_after=T0 - 9_000)
    now = send(engine, process_after=T0)
    assert look(engine, past.id).status == "ready"
    assert look(engine, past.id).expires_after == T0 - 9_000 + DAY_MS
    assert look(engine, now.id).status == "ready"
    assert receive(engine, 2)[0].id == past.id


def test_many_are_answered_in_their_order(engine):
    messages = tuple(NewMessage(str(number)) for number in range(100))
    produced = do(engine, ProduceMany("q", messages))
    assert [each.sequence for each in produced] == list(range(1, 101))
    assert len({each.id for each in produced}) == 100
    deliveries = receive(engine, 100)
    assert contents(deliveries) == [str(number) for number in range(100)]
    assert [each.id for each in deliveries] == [each.id for each in produced]


def test_sends_of_one_batch_keep_their_order(engine):
    result = run(engine, *(Produce("q", NewMessage(str(number))) for number in range(10)))
    assert [outcome.sequence for outcome in result.outcomes] == list(range(1, 11))
    assert contents(receive(engine, 10)) == [str(number) for number in range(10)]


def test_sequence_numbers_are_never_used_again(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    assert send(engine).sequence == 2


def test_sequence_numbers_run_across_queues(engine):
    assert [send(engine, queue=queue).sequence for queue in ("a", "b", "a")] == [1, 2, 3]


def test_a_queue_comes_into_being_by_its_first_message(engine):
    assert counted(engine) == {}
    send(engine, queue="new")
    assert counted(engine) == {"new": QueueCounts(ready=1)}


def test_a_batch_may_send_and_settle_at_once(engine):
    send(engine)
    deliveries = receive(engine)
    result = run(engine, Produce("q", NewMessage("next")), Ack("q", receipts(deliveries)))
    assert isinstance(result.outcomes[0], Produced)
    assert result.outcomes[1] == (True,)
    assert counted(engine) == {"q": QueueCounts(ready=1)}


def test_a_send_may_ask_for_a_queue_that_exists(engine):
    one = Produce("q", NewMessage("x"), known_only=True)
    many = ProduceMany("q", (NewMessage("y"),), known_only=True)
    for command in (one, many):
        assert isinstance(do(engine, command), QueueNotFound)
    assert engine.snapshot().counts == {}
    outcomes = run(engine, one, Produce("q", NewMessage("first")), one, many).outcomes
    assert isinstance(outcomes[0], QueueNotFound)
    assert [isinstance(each, Produced) for each in outcomes[1:3]] == [True, True]
    assert contents(receive(engine, 9)) == ["first", "x", "y"]


def test_a_queue_that_has_settings_alone_exists(engine):
    configure(engine, lease_ms=5)
    assert isinstance(do(engine, Produce("q", NewMessage("x"), known_only=True)), Produced)


def test_a_forgotten_queue_does_not_exist(engine):
    send(engine)
    assert do(engine, ForgetQueue("q", 1)) is True
    assert isinstance(do(engine, Produce("q", NewMessage("x"), known_only=True)), QueueNotFound)
    assert engine.snapshot().counts == {}
