"""Random messages instead of the next ones: which ones nobody can say, but all are ready, and each is had once."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Produce, ProduceMany, RedrivePolicy
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts

from .script import (
    T0,
    ack,
    claim,
    configure,
    contents,
    counted,
    do,
    fail,
    pause,
    receipts,
    receive,
    run,
    send,
)


def send_many(engine, count, **fields):
    messages = tuple(NewMessage(str(number), **fields) for number in range(count))
    do(engine, ProduceMany("q", messages))


def shuffled(engine, most=1, **terms):
    return do(engine, claim(most, shuffle=True, **terms))


@pytest.fixture(params=["exactly", "about"])
def many_ways(request, monkeypatch):
    """A long queue is shuffled in another way than a short one."""
    if request.param == "about":
        monkeypatch.setattr(limits, "SHUFFLE_EXACT_MAX", 2)


@pytest.mark.usefixtures("many_ways")
def test_s4_each_ready_message_is_had_once(engine):
    send_many(engine, 30)
    send(engine, "delayed", delay_ms=5)
    got = [text for _ in range(10) for text in contents(shuffled(engine, 3))]
    assert sorted(got, key=int) == [str(number) for number in range(30)]
    assert got != sorted(got, key=int)
    assert shuffled(engine) == ()


@pytest.mark.usefixtures("many_ways")
def test_s4_any_message_may_be_the_first(engine):
    """Of 8 messages, 200 draws miss one of them in fewer than 1 of 10 billion cases where all are equally likely."""
    send_many(engine, 8, max_attempts=1_000)
    firsts = set()
    for turn in range(200):
        (delivery,) = do(engine, claim(shuffle=True, lease_ms=1), T0 + turn)
        firsts.add(delivery.content)
    assert len(firsts) == 8


@pytest.mark.usefixtures("many_ways")
def test_priorities_do_not_matter(engine):
    for priority in range(4):
        send_many(engine, 3, priority=priority)
    assert len(shuffled(engine, 20)) == 12
    assert counted(engine)["q"] == QueueCounts(processing=12)


@pytest.mark.usefixtures("many_ways")
def test_more_than_there_are_are_all_of_them(engine):
    send_many(engine, 5)
    assert sorted(contents(shuffled(engine, 9))) == list("01234")


def test_a_delivery_is_like_any_other(engine):
    produced = send(engine, "x", attributes={"k": "v"})
    (delivery,) = shuffled(engine, lease_ms=77)
    assert (delivery.id, delivery.attempts, delivery.lease_until) == (produced.id, 1, T0 + 77)
    assert ack(engine, receipts([delivery])[0])


def test_claims_of_both_kinds_share(engine):
    send_many(engine, 4)
    in_order, at_random = run(engine, claim(2), claim(9, shuffle=True)).outcomes
    assert contents(in_order) == ["0", "1"]
    assert sorted(contents(at_random)) == ["2", "3"]


def test_a_receiver_that_waits_for_any_is_served(engine):
    result = run(engine, Produce("q", NewMessage("x")), parked={"q": [claim(shuffle=True)]})
    assert [contents(deliveries) for _, deliveries in result.served["q"]] == [["x"]]


def test_a_paused_queue_hands_out_none(engine):
    send(engine)
    pause(engine)
    assert shuffled(engine) == ()


@pytest.mark.usefixtures("many_ways")
def test_the_bound_of_a_group_holds(engine):
    configure(engine, group_in_flight_max=1)
    for name in ("a1", "a2", "a3", "b1"):
        send(engine, name, group=name[0])
    got = contents(shuffled(engine, 9))
    assert sorted(name[0] for name in got) == ["a", "b"]
    assert counted(engine)["q"] == QueueCounts(processing=2, held=2)


@pytest.mark.usefixtures("many_ways")
def test_the_rule_for_poison_holds(engine):
    for priority in range(4):
        send(engine, "bad", priority=priority)
        fail(engine, attempts=1)
    send(engine, "good")
    assert contents(shuffled(engine, 9, redrive_policy=RedrivePolicy(1, "elsewhere"))) == ["good"]
    assert counted(engine)["elsewhere"].ready == 4


@pytest.mark.usefixtures("many_ways")
def test_readers_look_at_random_ones_too(engine, reader):
    send_many(engine, 6)
    send(engine, "delayed", delay_ms=5)
    assert sorted(contents(reader.peek_shuffled("q", 9))) == list("012345")
    assert len({message.sequence for message in reader.peek_shuffled("q", 4)}) == 4
    seen = {contents(reader.peek_shuffled("q", 1))[0] for _ in range(200)}
    assert len(seen) == 6
    assert reader.peek_shuffled("other", 3) == []
    assert counted(engine)["q"] == QueueCounts(ready=6, delayed=1)
    assert len(receive(engine, 9)) == 6
