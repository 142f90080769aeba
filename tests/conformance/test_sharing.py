"""Sharing among the claims of one batch, and parked receivers: one message wakes one receiver, and none starves."""

import pytest

from forq_trio.model.commands import Ack, Nack, Produce, ProduceMany, Sweep, SweepKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts

from .script import HOUR_MS, T0, claim, contents, counted, fail, receipts, receive, run, send


def fill(engine, count):
    for number in range(count):
        send(engine, str(number))


def many(count, queue="q"):
    return ProduceMany(queue, tuple(NewMessage(str(number)) for number in range(count)))


def served(result, queue="q"):
    return [(place, contents(deliveries)) for place, deliveries in result.served.get(queue, [])]


def test_every_claim_gets_one_before_any_gets_two(engine):
    fill(engine, 4)
    outcomes = run(engine, claim(10), claim(10), claim(10)).outcomes
    assert [contents(outcome) for outcome in outcomes] == [["0", "1"], ["2"], ["3"]]


def test_first_come_first_served_when_there_are_too_few(engine):
    fill(engine, 2)
    outcomes = run(engine, claim(5), claim(1), claim(5)).outcomes
    assert [contents(outcome) for outcome in outcomes] == [["0"], ["1"], []]


def test_what_is_left_fills_the_earliest_up_to_their_most(engine):
    fill(engine, 9)
    outcomes = run(engine, claim(3), claim(4), claim(5)).outcomes
    assert [contents(outcome) for outcome in outcomes] == [["0", "1", "2"], ["3", "4", "5", "6"], ["7", "8"]]


def test_claims_of_other_queues_do_not_count(engine):
    fill(engine, 1)
    send(engine, "other", queue="other")
    outcomes = run(engine, claim(), claim(queue="other"), claim(queue="none"), claim()).outcomes
    assert [contents(outcome) for outcome in outcomes] == [["0"], ["other"], [], []]


def test_each_claim_has_its_own_lease(engine):
    fill(engine, 4)
    outcomes = run(engine, claim(2, lease_ms=10), claim(lease_ms=20), claim(lease_ms=10)).outcomes
    assert [[each.lease_until - T0 for each in outcome] for outcome in outcomes] == [[10, 10], [20], [10]]


def test_a_parked_receiver_is_served_by_the_batch_that_sends(engine):
    result = run(engine, Produce("q", NewMessage("x")), parked={"q": [claim()]})
    assert served(result) == [(0, ["x"])]
    assert counted(engine) == {"q": QueueCounts(processing=1)}


def test_n_messages_wake_n_receivers_and_no_more(engine):
    result = run(engine, many(2), parked={"q": [claim(5), claim(5), claim(5)]})
    assert served(result) == [(0, ["0"]), (1, ["1"])]


def test_parked_receivers_go_before_the_claims_of_the_batch(engine):
    result = run(engine, claim(9), many(2), parked={"q": [claim(), claim()]})
    assert served(result) == [(0, ["0"]), (1, ["1"])]
    assert result.outcomes[0] == ()


def test_a_claim_of_the_batch_gets_its_one_before_a_parked_receiver_gets_two(engine):
    result = run(engine, claim(9), many(3), parked={"q": [claim(9)]})
    assert served(result) == [(0, ["0", "1"])]
    assert contents(result.outcomes[0]) == ["2"]


def test_parked_receivers_of_other_queues_stay_parked(engine):
    result = run(engine, many(1, "a"), parked={"a": [claim(queue="a")], "b": [claim(queue="b")]})
    assert served(result, "a") == [(0, ["0"])]
    assert "b" not in result.served


def test_nothing_ready_serves_nobody(engine):
    result = run(engine, Produce("q", NewMessage("x", T0 + 1)), parked={"q": [claim()]})
    assert result.served == {}


def test_a_message_that_falls_due_wakes_a_receiver(engine):
    send(engine, "later", process_after=T0 + 5)
    assert served(run(engine, now=T0 + 4, parked={"q": [claim()]})) == []
    assert served(run(engine, now=T0 + 5, parked={"q": [claim()]})) == [(0, ["later"])]


def test_a_lease_that_ends_wakes_a_receiver(engine):
    fill(engine, 1)
    receive(engine, lease_ms=5)
    assert served(run(engine, now=T0 + 5, parked={"q": [claim()]})) == [(0, ["0"])]


def test_a_nack_without_delay_wakes_a_receiver(engine):
    fill(engine, 1)
    command = Nack("q", receipts(receive(engine)), delay_ms=0)
    assert served(run(engine, command, parked={"q": [claim()]})) == [(0, ["0"])]


@pytest.mark.usefixtures("failed_stay")
def test_a_dead_letter_wakes_a_receiver_of_its_queue(engine):
    fill(engine, 1)
    fail(engine)
    result = run(engine, Sweep(SweepKind.FAILED), parked={"q-dlq": [claim(queue="q-dlq")]})
    assert served(result, "q-dlq") == [(0, ["0"])]


def test_an_expired_message_wakes_a_receiver_of_the_dead_letter_queue(engine):
    fill(engine, 1)
    parked = {"q-dlq": [claim(queue="q-dlq")], "q": [claim()]}
    result = run(engine, now=T0 + 24 * HOUR_MS, parked=parked)
    assert list(result.served) == ["q-dlq"]


def test_an_acknowledged_message_wakes_nobody(engine):
    fill(engine, 1)
    command = Ack("q", receipts(receive(engine)))
    assert run(engine, command, parked={"q": [claim()]}).served == {}
