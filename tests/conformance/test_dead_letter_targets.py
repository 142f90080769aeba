"""Where messages go that failed or expired: their own word, else their queue's, else Forq's rule (F7, S4)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Configure, ForgetQueue, Removed, Sweep, SweepKind
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.messages.types import REASON_EXPIRED, REASON_MAX_ATTEMPTS, QueueCounts
from forq_trio.model.queues.settings import QueueSettings, SettingsChange
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, Event

from .script import (
    DAY_MS,
    T0,
    configure,
    counted,
    do,
    fail,
    look,
    nack,
    pause,
    receive_one,
    run,
    send,
    sweep,
    woken_by,
)


@pytest.mark.usefixtures("failed_stay")
def test_f7_a_dead_letter_says_where_it_came_from(engine):
    produced = send(engine)
    fail(engine, attempts=4)
    assert nack(engine, receive_one(engine, now=T0 + 1)[1], None, "broke", now=T0 + 2)
    sweep(engine, SweepKind.FAILED, now=T0 + 3)
    message = look(engine, produced.id, "q-dlq")
    assert (message.source_queue, message.source_attempts, message.dead_lettered_at) == ("q", 5, T0 + 3)
    assert (message.failure_reason, message.last_error) == (REASON_MAX_ATTEMPTS, "broke")
    assert (message.attempts, message.status, message.process_after) == (0, "ready", T0 + 3)
    assert (message.sequence, message.received_at) == (produced.sequence, T0)
    assert (message.first_received_at, len(message.failures)) == (T0, 5)
    assert message.expires_after == T0 + 3 + 7 * DAY_MS


@pytest.mark.usefixtures("failed_stay")
def test_a_queue_may_name_another_one(engine):
    configure(engine, dead_letter_queue="hospital")
    produced = send(engine)
    fail(engine)
    assert run(engine, Sweep(SweepKind.FAILED)).events == [Event(MOVED_TO_DLQ, "q", 1, "failed")]
    assert look(engine, produced.id, "hospital").source_queue == "q"
    assert "q-dlq" not in engine.snapshot().counts


def test_it_lives_as_long_as_its_new_queue_says(engine):
    configure(engine, dead_letter_queue="hospital")
    produced = send(engine, ttl_ms=10)
    run(engine, now=T0 + 10)
    message = look(engine, produced.id, "hospital")
    assert (message.failure_reason, message.expires_after) == (REASON_EXPIRED, T0 + 10 + DAY_MS)
    assert message.ttl_ms == 10


@pytest.mark.parametrize("own", [True, False], ids=["the message's word", "the queue's word"])
@pytest.mark.usefixtures("failed_stay")
def test_without_one_messages_are_deleted(engine, own):
    if own:
        fields = {"dead_letter_queue": ""}
    else:
        configure(engine, dead_letter_queue="")
        fields = {}
    send(engine, ttl_ms=1_000, **fields)
    fail(engine)
    result = run(engine, Sweep(SweepKind.FAILED))
    assert result.outcomes == [Removed(1, more=False)]
    assert result.events == [Event(CLEANED_UP, "q", 1, "failed")]
    send(engine, ttl_ms=10, **fields)
    assert run(engine, now=T0 + 10).events == [Event(CLEANED_UP, "q", 1, "expired")]
    assert engine.snapshot().counts == {"q": QueueCounts()}


def test_a_message_goes_before_its_queue(engine):
    configure(engine, dead_letter_queue="hospital")
    produced = send(engine, dead_letter_queue="own")
    assert look(engine, produced.id).dead_letter_queue == "own"
    fail(engine)
    sweep(engine, SweepKind.FAILED)
    assert look(engine, produced.id, "own").source_queue == "q"


@pytest.mark.usefixtures("failed_stay")
def test_the_way_of_its_own_is_gone_once(engine):
    """From there on it goes where everybody goes, so it cannot be sent round."""
    produced = send(engine, dead_letter_queue="own")
    fail(engine)
    sweep(engine, SweepKind.FAILED)
    assert look(engine, produced.id, "own").dead_letter_queue is None
    fail(engine, queue="own")
    sweep(engine, SweepKind.FAILED)
    assert look(engine, produced.id, "own-dlq").source_queue == "own"
    fail(engine, queue="own-dlq")
    assert sweep(engine, SweepKind.FAILED_DLQ).count == 1
    assert sum(counts.total for counts in engine.snapshot().counts.values()) == 0


def test_a_message_that_names_its_own_queue_is_deleted(engine):
    send(engine, dead_letter_queue="q", ttl_ms=5)
    assert run(engine, now=T0 + 5).events == [Event(CLEANED_UP, "q", 1, "expired")]


def test_a_dead_letter_queue_may_have_one_itself(engine):
    configure(engine, "q-dlq", dead_letter_queue="grave")
    produced = send(engine, ttl_ms=5)
    run(engine, now=T0 + 5)
    run(engine, now=T0 + 5 + 7 * DAY_MS)
    assert look(engine, produced.id, "grave").source_queue == "q-dlq"


def test_by_time_they_are_moved_into_a_full_queue_too(engine):
    configure(engine, "q-dlq", max_messages=1)
    for _ in range(3):
        send(engine, ttl_ms=5)
    run(engine, now=T0 + 5)
    assert counted(engine)["q-dlq"].ready == 3


def test_a_dead_letter_wakes_a_receiver_wherever_it_goes(engine):
    configure(engine, dead_letter_queue="hospital")
    send(engine, "ill", ttl_ms=5)
    assert woken_by(engine, queue="hospital", now=T0 + 5) == ["ill"]


def refused(engine, command):
    error = do(engine, command)
    assert isinstance(error, InvalidSetting), error
    return error.field


def test_a_circle_is_refused_and_changes_nothing(engine):
    configure(engine, "a", dead_letter_queue="b")
    configure(engine, "b", dead_letter_queue="c", lease_ms=1)
    change = SettingsChange(dead_letter_queue="a", lease_ms=2)
    assert refused(engine, Configure("c", change)) == "dead_letter_queue"
    assert "c" not in engine.snapshot().settings
    assert refused(engine, Configure("b", change)) == "dead_letter_queue"
    assert engine.snapshot().settings["b"] == QueueSettings(dead_letter_queue="c", lease_ms=1)


def test_a_circle_by_the_default_is_refused(engine):
    assert refused(engine, Configure("q-dlq", SettingsChange(dead_letter_queue="q"))) == "dead_letter_queue"
    configure(engine, dead_letter_queue="")
    configure(engine, "q-dlq", dead_letter_queue="q")
    for command in (
        Configure("q", SettingsChange(dead_letter_queue=None)),
        Configure("q", None),
        ForgetQueue("q"),
    ):
        assert refused(engine, command) == "dead_letter_queue"
    assert engine.snapshot().rules("q").dead_letter_queue == ""


def test_a_long_chain_is_not_followed_unless_its_beginning_changes(engine):
    """It grows at its end, where each step is short. A walk along it would be as long as there are queues."""
    length = limits.DEAD_LETTER_STEPS_MAX + 4
    for number in range(length):
        configure(engine, f"q{number}", dead_letter_queue=f"q{number + 1}")
    configure(engine, "q0", lease_ms=1)
    pause(engine, "q0")
    assert engine.snapshot().settings["q0"] == QueueSettings(dead_letter_queue="q1", lease_ms=1, paused=True)
    # The last one would make a circle, which is not walked to its end.
    for command in (
        Configure("before", SettingsChange(dead_letter_queue="q0")),
        Configure("q0", SettingsChange(dead_letter_queue="q2")),
        Configure(f"q{length}", SettingsChange(dead_letter_queue="q0")),
    ):
        assert refused(engine, command) == "dead_letter_queue"
    configure(engine, "before", dead_letter_queue=f"q{length - 3}")


def test_of_two_that_would_make_a_circle_in_one_batch_the_first_wins(engine):
    first, second = run(
        engine,
        Configure("a", SettingsChange(dead_letter_queue="b")),
        Configure("b", SettingsChange(dead_letter_queue="a")),
    ).outcomes
    assert first == QueueSettings(dead_letter_queue="b")
    assert isinstance(second, InvalidSetting)
