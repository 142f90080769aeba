"""What is measured of messages, and which queues a batch says it woke."""

import pytest

from forq_trio.model.commands import (
    Ack,
    AckById,
    Configure,
    Extend,
    Nack,
    Pause,
    Produce,
    ProduceMany,
    Purge,
    Release,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import END_TO_END, HANDLING, WAIT

from .script import T0, ack, claim, nack, receipts, receive, receive_one, run, send


def test_a_claim_measures_since_when_the_message_could_be_had(engine):
    send(engine, now=T0)
    send(engine, now=T0 + 30)
    send(engine, delay_ms=50, now=T0)
    result = run(engine, claim(9), now=T0 + 70)
    assert {key: sorted(values) for key, values in result.durations.items()} == {(WAIT, "q"): [20, 40, 70]}


def test_after_a_nack_it_measures_from_the_end_of_the_delay(engine):
    send(engine)
    assert nack(engine, receive_one(engine)[1], 50)
    assert run(engine, claim(), now=T0 + 60).durations == {(WAIT, "q"): [10]}


def test_a_due_time_in_the_past_counts_from_the_arrival(engine):
    send(engine, process_after=T0 - 5_000)
    assert run(engine, claim(), now=T0 + 1).durations == {(WAIT, "q"): [1]}


def test_parked_receivers_are_measured_too(engine):
    result = run(engine, Produce("q", NewMessage("x")), parked={"q": [claim()]})
    assert result.durations == {(WAIT, "q"): [0]}


@pytest.mark.parametrize("queue", ["q", None])
def test_an_ack_measures_from_the_send(engine, queue):
    for _ in range(2):
        send(engine)
    command = Ack(queue, receipts(receive(engine, 2, now=T0 + 10)))
    assert run(engine, command, command, now=T0 + 25).durations == {
        (END_TO_END, "q"): [25, 25],
        (HANDLING, "q"): [15, 15],
    }


def test_so_does_an_ack_by_id(engine):
    produced = send(engine)
    receive(engine)
    result = run(engine, AckById("q", produced.id), AckById("q", produced.id), now=T0 + 9)
    assert result.durations == {(END_TO_END, "q"): [9], (HANDLING, "q"): [9]}


def test_an_ack_after_the_lease_has_no_time_of_handling(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 11)
    assert run(engine, Ack("q", (receipt,)), now=T0 + 20).durations == {(END_TO_END, "q"): [20]}


def test_an_extended_message_is_handled_from_its_claim(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=10)
    run(engine, Extend("q", (receipt,), 1_000), now=T0 + 5)
    durations = run(engine, Ack("q", (receipt,)), now=T0 + 20).durations
    assert durations[HANDLING, "q"] == [20]


def test_a_clock_that_was_set_back_measures_nothing(engine):
    send(engine)
    assert run(engine, claim(), now=T0 - 10).durations == {(WAIT, "q"): [0]}
    (message,) = engine.open_reader().browse("q", None, 1)
    assert run(engine, AckById("q", message.id), now=T0 - 10).durations == {
        (END_TO_END, "q"): [0],
        (HANDLING, "q"): [0],
    }


def test_nothing_else_is_measured(engine):
    send(engine)
    _, receipt = receive_one(engine)
    assert run(engine, Nack("q", (receipt,), 0), Purge("q", 9)).durations == {}


def test_f3_the_first_delivery_is_remembered(engine):
    produced = send(engine)
    first, receipt = receive_one(engine, now=T0 + 5)
    assert first.first_received_at == T0 + 5
    assert nack(engine, receipt, 0, now=T0 + 6)
    again, _ = receive_one(engine, now=T0 + 7)
    assert again.first_received_at == T0 + 5
    assert engine.open_reader().message("q", produced.id).first_received_at == T0 + 5


def test_nobody_received_it_yet(engine):
    produced = send(engine)
    assert engine.open_reader().message("q", produced.id).first_received_at is None


def test_a_queue_is_woken_also_when_all_was_claimed_at_once(engine):
    assert run(engine, Produce("q", NewMessage("x")), claim()).woken == {"q"}


def test_every_queue_that_got_something_ready_is_named(engine):
    result = run(
        engine,
        Produce("a", NewMessage("x")),
        ProduceMany("b", (NewMessage("x"),)),
        Produce("c", NewMessage("x", T0 + 5)),
    )
    assert result.woken == {"a", "b"}
    assert run(engine, now=T0 + 5).woken == {"c"}


def test_what_makes_nothing_ready_wakes_nobody(engine):
    send(engine)
    assert (
        run(engine, Configure("q", SettingsChange(lease_ms=1)), Pause("q", paused=True)).woken == frozenset()
    )
    assert run(engine, Pause("q", paused=False)).woken == {"q"}
    assert run(engine, claim()).woken == frozenset()


@pytest.mark.parametrize(("delay_ms", "woken"), [(0, {"q"}), (5, set())])
def test_what_comes_back_wakes_at_once_or_later(engine, delay_ms, woken):
    for command in (Nack, Release):
        send(engine, command.__name__)
        _, receipt = receive_one(engine)
        assert run(engine, command("q", (receipt,), delay_ms)).woken == woken
        run(engine, now=T0 + 5)
        (delivery,) = receive(engine, now=T0 + 5)
        assert ack(engine, receipts([delivery])[0], now=T0 + 5)
