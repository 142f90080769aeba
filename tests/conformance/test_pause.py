"""A paused queue takes messages and hands out none; who waits is served by the batch that resumes it."""

import pytest

from forq_trio.model.commands import Ack, Configure, Nack, Pause, Produce, ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueSettings, SettingsChange

from .script import (
    LEASE_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    drain,
    has_no_message,
    look,
    pause,
    receipts,
    receive,
    receive_one,
    run,
    send,
    woken_by,
)


def test_sends_go_on_and_claims_find_nothing(engine):
    pause(engine)
    send(engine, "a")
    result = run(engine, Produce("q", NewMessage("b")), claim(9), parked={"q": [claim()]})
    assert result.outcomes[1] == ()
    assert result.served == {}
    assert counted(engine)["q"] == QueueCounts(ready=2)
    assert [message.attempts for message in engine.open_reader().peek("q", 9)] == [0, 0]


def test_resuming_serves_who_waits_in_the_same_batch(engine):
    pause(engine)
    send(engine, "a")
    result = run(engine, Pause("q", paused=False), claim(), parked={"q": [claim()]})
    assert [contents(deliveries) for _, deliveries in result.served["q"]] == [["a"]]
    assert result.outcomes == [None, ()]
    assert result.woken == {"q"}


def test_it_holds_for_the_batch_that_pauses(engine):
    send(engine)
    assert run(engine, claim(), Pause("q", paused=True)).outcomes[0] == ()


def test_the_last_word_of_a_batch_counts(engine):
    send(engine, "a")
    on, off = Pause("q", paused=True), Pause("q", paused=False)
    assert woken_by(engine, on, off) == ["a"]


def test_twice_is_once(engine):
    for paused in (True, True, False, False):
        assert do(engine, Pause("q", paused)) is None
        assert engine.snapshot().rules("q").paused is paused
    assert run(engine, Pause("q", paused=False)).woken == frozenset()


def test_other_queues_go_on(engine):
    pause(engine)
    send(engine, "other", queue="other")
    assert drain(engine, queue="other") == ["other"]


def test_what_is_in_process_is_settled_and_time_goes_on(engine):
    for _ in range(4):
        send(engine, ttl_ms=2 * LEASE_MS)
    first, second, _ = receipts(receive(engine, 3))
    pause(engine)
    assert do(engine, Ack("q", (first,))) == (True,)
    assert do(engine, Nack("q", (second,), 0)) == (True,)
    run(engine, now=T0 + LEASE_MS)
    assert counted(engine)["q"] == QueueCounts(ready=3)
    run(engine, now=T0 + 2 * LEASE_MS)
    assert counted(engine)["q-dlq"] == QueueCounts(ready=3)


@pytest.mark.parametrize("delay_ms", [0, 7])
def test_what_becomes_ready_in_a_paused_queue_waits_for_it(engine, delay_ms):
    send(engine, "a", delay_ms=delay_ms)
    pause(engine)
    assert woken_by(engine, now=T0 + 7) == []
    assert woken_by(engine, Pause("q", paused=False), now=T0 + 7) == ["a"]


def test_settings_come_and_go_without_it(engine):
    pause(engine)
    assert engine.snapshot().settings == {"q": QueueSettings(paused=True)}
    configure(engine, lease_ms=1)
    assert engine.snapshot().settings == {"q": QueueSettings(lease_ms=1, paused=True)}
    assert do(engine, Configure("q", None)) == QueueSettings(paused=True)
    pause(engine, paused=False)
    assert engine.snapshot().settings == {}


def test_a_queue_nobody_used_can_be_paused_and_stays_unlisted(engine):
    pause(engine)
    assert engine.snapshot().counts == {}
    assert engine.open_reader().queues() == {}


def test_the_settings_of_the_batch_that_resumes_hold(engine):
    pause(engine)
    produced = send(engine)
    change = Configure("q", SettingsChange(lease_ms=77))
    run(engine, Pause("q", paused=False), change, claim(lease_ms=None))
    message = look(engine, produced.id)
    assert (message.status, message.lease_until) == ("processing", T0 + 77)


def test_all_who_wait_are_served_as_far_as_it_goes(engine):
    pause(engine)
    do(engine, ProduceMany("q", tuple(map(NewMessage, "abc"))))
    waiting = [claim(2), claim(2), claim(2), claim(2)]
    served = run(engine, Pause("q", paused=False), parked={"q": waiting}).served["q"]
    assert [(place, contents(deliveries)) for place, deliveries in served] == [
        (0, ["a"]),
        (1, ["b"]),
        (2, ["c"]),
    ]
    assert has_no_message(engine)


def test_a_message_claimed_before_can_be_taken_up_again(engine):
    send(engine)
    _, receipt = receive_one(engine)
    pause(engine)
    assert do(engine, Nack("q", (receipt,), 0)) == (True,)
    assert has_no_message(engine)
