"""Time to live: contract F7."""

from contextlib import closing

from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.types import REASON_EXPIRED, QueueCounts
from forq_trio.model.queues.setting_values import Expiry
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, EngineSettings, Event

from .script import (
    DAY_MS,
    T0,
    ack,
    configure,
    contents,
    counted,
    has_no_message,
    look,
    nack,
    receive,
    receive_one,
    run,
    send,
)


def test_f7_an_expired_message_moves_to_the_dead_letter_queue(engine):
    produced = send(engine, "old", priority=7)
    assert run(engine, now=T0 + DAY_MS - 1).events == []
    result = run(engine, now=T0 + DAY_MS)
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "expired")]
    assert look(engine, produced.id) is None
    message = look(engine, produced.id, "q-dlq")
    assert (message.status, message.attempts, message.content) == ("ready", 0, "old")
    assert (message.sequence, message.priority, message.received_at) == (produced.sequence, 7, T0)
    assert (message.failure_reason, message.source_queue) == (REASON_EXPIRED, "q")
    assert message.process_after == message.updated_at == T0 + DAY_MS
    assert message.expires_after == T0 + DAY_MS + 7 * DAY_MS
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}


def test_f7_an_expired_message_is_not_delivered(engine):
    send(engine)
    assert has_no_message(engine, now=T0 + DAY_MS)
    assert receive_one(engine, queue="q-dlq", now=T0 + DAY_MS)[0].attempts == 1


def test_f7_expired_in_a_dead_letter_queue_is_deleted(engine):
    produced = send(engine)
    run(engine, now=T0 + DAY_MS)
    assert run(engine, now=T0 + 8 * DAY_MS - 1).events == []
    assert run(engine, now=T0 + 8 * DAY_MS).events == [Event(CLEANED_UP, "q-dlq", 1, "expired")]
    assert look(engine, produced.id, "q-dlq") is None
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts()}


def test_f7_a_message_in_process_is_left_alone(engine):
    produced = send(engine)
    _, receipt = receive_one(engine, now=T0 + DAY_MS - 1)
    run(engine, now=T0 + DAY_MS + 1)
    assert look(engine, produced.id).status == "processing"
    assert ack(engine, receipt, now=T0 + DAY_MS + 1)


def test_f2_a_message_delayed_past_the_time_to_live_has_its_own(engine):
    due = T0 + 30 * DAY_MS
    send(engine, "far ahead", process_after=due)
    assert contents(receive(engine, now=due)) == ["far ahead"]


def test_f7_a_delay_after_a_nack_does_not_prolong_life(make_engine):
    engine = make_engine(EngineSettings(queue_ttl_ms=100))
    produced = send(engine)
    assert nack(engine, receive_one(engine)[1], 500)
    result = run(engine, now=T0 + 100)
    assert result.events == [Event(MOVED_TO_DLQ, "q", 1, "expired")]
    assert look(engine, produced.id, "q-dlq").process_after == T0 + 100


def test_f7_order_is_kept_in_the_dead_letter_queue(make_engine):
    engine = make_engine(EngineSettings(queue_ttl_ms=100))
    send(engine, "first", process_after=T0 + 50)
    send(engine, "second")
    run(engine, now=T0 + 100)
    run(engine, now=T0 + 150)
    assert contents(receive(engine, 2, queue="q-dlq", now=T0 + 150)) == ["first", "second"]


def test_f16_both_times_to_live_come_from_the_settings(make_engine):
    engine = make_engine(EngineSettings(queue_ttl_ms=5, dlq_ttl_ms=3))
    produced = send(engine)
    assert look(engine, produced.id).expires_after == T0 + 5
    run(engine, now=T0 + 5)
    assert look(engine, produced.id, "q-dlq").expires_after == T0 + 8
    run(engine, now=T0 + 8)
    assert look(engine, produced.id, "q-dlq") is None


def test_an_expired_message_is_deleted_where_its_queue_says_so(engine):
    send(engine, "old")
    send(engine, "names one", dead_letter_queue="grave")
    send(engine, "other", queue="other")
    configure(engine, expiry=Expiry.DELETE)
    events = sorted(run(engine, now=T0 + DAY_MS).events, key=lambda event: event.queue)
    assert events == [Event(MOVED_TO_DLQ, "other", 1, "expired"), Event(CLEANED_UP, "q", 2, "expired")]
    assert {name for name, counts in counted(engine).items() if counts != QueueCounts()} == {"other-dlq"}


def test_what_fails_is_a_dead_letter_although_what_expires_is_deleted(engine):
    configure(engine, expiry=Expiry.DELETE)
    produced = send(engine, max_attempts=1)
    assert nack(engine, receive_one(engine)[1])
    assert look(engine, produced.id, "q-dlq").status == "ready"


def test_what_expires_in_several_queues_at_once_ends_in_the_order_of_its_times(make_engine):
    """Whether a queue deletes what expires, or has no dead letters."""
    engine = make_engine(EngineSettings(history=True))
    configure(engine, queue="deletes", expiry=Expiry.DELETE)
    configure(engine, queue="without", dead_letter_queue="")
    sent = [
        send(engine, queue=queue, ttl_ms=ttl_ms)
        for queue, ttl_ms in (("deletes", 3), ("without", 4), ("without", 1), ("deletes", 2))
    ]
    run(engine, now=T0 + 4)
    with closing(engine.open_reader()) as reader:
        pages = [
            reader.find_finished(queue, MessageFilter(), None, None, 10, 10)
            for queue in ("deletes", "without")
        ]
    found = sorted((each.history_id, each.sequence) for page in pages for each in page.messages)
    assert [sequence for _, sequence in found] == [sent[place].sequence for place in (2, 3, 0, 1)]
