"""Dead letters go back: to where they came from or elsewhere, as if they had never been tried."""

import pytest

from forq_trio.model.commands import Ack, Produce, Redrive
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import REQUEUED, Event

from .script import (
    DAY_MS,
    T0,
    configure,
    contents,
    counted,
    do,
    drain,
    look,
    receive,
    receive_one,
    redrive,
    run,
    send,
    send_dead_letter,
    woken_by,
)

LATER = T0 + 1_000


def test_f15_everything_but_the_message_is_reset(engine):
    produced = send_dead_letter(engine, "x", priority=7, attributes={"k": "v"})
    result = run(engine, Redrive("q-dlq", (produced.id,)), now=LATER)
    assert result.outcomes == [(True,)]
    assert result.events == [Event(REQUEUED, "q", 1)]
    assert result.woken == {"q"}
    message = look(engine, produced.id)
    assert (message.status, message.attempts, message.sequence) == ("ready", 0, produced.sequence)
    assert (message.process_after, message.expires_after) == (LATER, LATER + DAY_MS)
    assert (message.failure_reason, message.source_queue, message.source_attempts) == (None, None, None)
    assert message.dead_lettered_at is None
    assert (message.received_at, message.first_received_at, len(message.failures)) == (T0, T0, 5)
    assert (message.priority, message.attributes, message.content) == (7, {"k": "v"}, "x")
    assert counted(engine) == {"q": QueueCounts(ready=1), "q-dlq": QueueCounts()}


def test_f15_it_is_back_at_its_old_place(engine):
    produced = send_dead_letter(engine, "old")
    send(engine, "new")
    redrive(engine, produced.id)
    assert drain(engine) == ["old", "new"]


def test_its_own_time_to_live_starts_anew(engine):
    produced = send_dead_letter(engine, ttl_ms=5_000)
    redrive(engine, produced.id, now=LATER)
    assert look(engine, produced.id).expires_after == LATER + 5_000


def test_another_queue_and_its_time_to_live(engine):
    configure(engine, "other", ttl_ms=7_000)
    produced = send_dead_letter(engine)
    assert redrive(engine, produced.id, target="other") == (True,)
    assert look(engine, produced.id, "other").expires_after == T0 + 7_000


def test_it_may_fail_again_and_comes_from_there_then(engine):
    produced = send_dead_letter(engine, ttl_ms=5_000)
    redrive(engine, produced.id, target="other")
    run(engine, now=T0 + 5_000)
    message = look(engine, produced.id, "other-dlq")
    assert (message.source_queue, message.source_attempts) == ("other", 0)


def test_each_id_is_answered_for_itself(engine):
    produced = send_dead_letter(engine)
    sent_here = send(engine, queue="q-dlq")
    elsewhere = send(engine)
    ids = (produced.id, produced.id, sent_here.id, elsewhere.id, "no such id")
    assert redrive(engine, *ids) == (True, False, False, False, False)


def test_not_to_the_queue_it_is_in(engine):
    produced = send_dead_letter(engine)
    assert redrive(engine, produced.id, target="q-dlq") == (False,)


def test_one_without_a_source_goes_where_it_is_told(engine):
    produced = send(engine, queue="q-dlq")
    assert redrive(engine, produced.id) == (False,)
    assert redrive(engine, produced.id, target="q") == (True,)


def test_f15_not_while_it_is_in_process(engine):
    produced = send_dead_letter(engine)
    _, receipt = receive_one(engine, queue="q-dlq")
    assert redrive(engine, produced.id) == (False,)
    assert do(engine, Ack("q-dlq", (receipt,))) == (True,)


def test_an_old_receipt_is_good_for_nothing(engine):
    produced = send_dead_letter(engine)
    _, receipt = receive_one(engine, queue="q-dlq", lease_ms=0)
    assert redrive(engine, produced.id) == (True,)
    assert do(engine, Ack(None, (receipt,))) == (False,)


def test_a_delayed_one_is_ready_at_once(engine):
    produced = send(engine, queue="q-dlq", delay_ms=50)
    assert redrive(engine, produced.id, target="q") == (True,)
    assert contents(receive(engine)) == ["x"]


def test_who_waits_is_served_in_the_same_batch(engine):
    produced = send_dead_letter(engine, "back")
    assert woken_by(engine, Redrive("q-dlq", (produced.id,))) == ["back"]


def test_bounds_of_its_queue_do_not_hold_for_it(engine):
    produced = send_dead_letter(engine)
    configure(engine, max_messages=1, max_bytes=1)
    send(engine)
    assert redrive(engine, produced.id) == (True,)
    assert counted(engine)["q"].ready == 2


@pytest.mark.parametrize("own", [None, ""])
def test_no_dead_letters_is_a_word_that_stays(engine, own):
    produced = send(engine, queue="q-dlq", dead_letter_queue=own, ttl_ms=5_000)
    assert redrive(engine, produced.id, target="q") == (True,)
    run(engine, now=T0 + 5_000)
    assert (look(engine, produced.id, "q-dlq") is None) is (own == "")


def test_a_send_of_the_same_batch_comes_first(engine):
    produced = send_dead_letter(engine, "old")
    run(engine, Redrive("q-dlq", (produced.id,)), Produce("q", NewMessage("new")))
    assert drain(engine) == ["old", "new"]
