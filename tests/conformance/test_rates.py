"""A rate: no more deliveries than it allows at any time, and the next one in the very millisecond in which it does."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Configure,
    Extend,
    LeaseMessages,
    OpenConsumer,
    Pause,
    Purge,
    RedrivePolicy,
    Release,
)
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine

from .script import (
    LEASE_MS,
    T0,
    claim,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    receipts,
    receive,
    run,
    send,
    woken_by,
)


def send_all(engine, names, *, now=T0, grouped=False):
    for name in names.split():
        send(engine, name, now=now, group=name[0] if grouped else None)


@pytest.fixture
def limited(engine):
    """A queue with six messages, of which two may be delivered at once and then one every 5 ms."""
    configure(engine, rate=Rate(2, 10))
    send_all(engine, "a b c d e f")
    return engine


def test_as_many_at_once_as_the_bucket_has_tokens(limited):
    assert contents(receive(limited, 9)) == ["a", "b"]
    assert counted(limited)["q"] == QueueCounts(ready=4, processing=2)
    assert has_no_message(limited)


def test_then_one_for_every_token(limited):
    receive(limited, 9)
    assert has_no_message(limited, now=T0 + 4)
    assert contents(receive(limited, 9, now=T0 + 5)) == ["c"]
    assert has_no_message(limited, now=T0 + 9)
    assert contents(receive(limited, 9, now=T0 + 10)) == ["d"]


def test_tokens_gather_up_to_the_count(limited):
    receive(limited, 9)
    assert contents(receive(limited, 9, now=T0 + 1_000)) == ["c", "d"]


def test_a_period_that_the_count_does_not_divide_loses_nothing(engine):
    """Three in 10 ms: after 3 1/3, 6 2/3 and 10 ms; rounded up, and never by more than that."""
    configure(engine, rate=Rate(3, 10))
    for _ in range(40):
        send(engine)
    taken = [len(receive(engine, 9, now=T0 + ms)) for ms in range(101)]
    assert taken[:11] == [3, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1]
    assert sum(taken) == 3 + 30


def test_of_several_claims_of_a_batch_the_first_ones_get_them(limited):
    outcomes = run(limited, claim(1), claim(1), claim(1)).outcomes
    assert [contents(deliveries) for deliveries in outcomes] == [["a"], ["b"], []]


def test_who_waits_is_served_when_the_next_token_is_there(limited):
    receive(limited, 9)
    result = run(limited, claim())
    assert (result.outcomes, result.next_due_ms) == ([()], T0 + 5)
    assert woken_by(limited, now=T0 + 4) == []
    assert woken_by(limited, now=T0 + 5) == ["c"]


def test_receivers_are_served_one_for_every_token(limited):
    parked = {"q": [claim()] * 4}
    served = {}
    now = T0
    run(limited, claim(2))
    while len(served) < 4:
        result = run(limited, claim() if now == T0 else Pause("other", paused=False), now=now, parked=parked)
        for _, deliveries in result.served.get("q", []):
            served[contents(deliveries)[0]] = now
        now = result.next_due_ms
    assert served == {"c": T0 + 5, "d": T0 + 10, "e": T0 + 15, "f": T0 + 20}


def test_receivers_beyond_those_offered_are_served_too(limited, monkeypatch):
    monkeypatch.setattr(limits, "RECEIVERS_OFFERED_MAX", 1)
    send_all(limited, "g")
    result = run(limited, Configure("q", SettingsChange(rate=Rate(1, 7))), parked={"q": [claim()]})
    assert (contents(result.served["q"][0][1]), result.next_due_ms) == (["a"], T0 + 7)


def test_nobody_who_waits_asks_for_no_batch(limited):
    assert run(limited, claim(2)).next_due_ms == T0 + LEASE_MS


def test_a_message_that_is_sent_while_no_token_is_there_waits_for_one(engine):
    configure(engine, rate=Rate(1, 10))
    send_all(engine, "a")
    receive(engine)
    send_all(engine, "b")
    result = run(engine, Pause("other", paused=False), parked={"q": [claim()]}, now=T0 + 1)
    assert result.served == {}
    assert woken_by(engine, Configure("q", SettingsChange(lease_ms=9)), now=T0 + 2) == []
    send_all(engine, "c", now=T0 + 3)
    assert woken_by(engine, now=T0 + 10) == []
    run(engine, claim(), now=T0 + 9)
    assert run(engine, claim(), now=T0 + 10).outcomes != [()]


def test_what_is_given_back_takes_a_token_again(limited):
    (first, _) = receive(limited, 2)
    do(limited, Release("q", receipts([first])))
    assert has_no_message(limited, now=T0 + 4)
    assert contents(receive(limited, 1, now=T0 + 5)) == ["a"]


def test_an_extension_takes_none(limited):
    deliveries = receive(limited, 2, lease_ms=3)
    run(limited, now=T0 + 3)
    assert do(limited, Extend("q", receipts(deliveries), LEASE_MS), T0 + 4) == (T0 + 4 + LEASE_MS,) * 2
    assert contents(receive(limited, 9, now=T0 + 5)) == ["c"]


def test_a_message_that_was_delivered_too_often_takes_none(limited):
    deliveries = receive(limited, 2)
    do(limited, Release("q", receipts(deliveries)))
    assert contents(do(limited, claim(9, redrive_policy=RedrivePolicy(1)), T0 + 10)) == ["a", "b"]
    do(limited, Release("q", receipts(deliveries)), T0 + 10)


def test_a_changed_rate_begins_with_all_its_tokens(limited):
    receive(limited, 2)
    assert woken_by(limited, Configure("q", SettingsChange(rate=Rate(3, 10)))) == ["c", "d", "e"]
    assert woken_by(limited, Configure("q", SettingsChange(lease_ms=5)), now=T0 + 1) == []
    assert woken_by(limited, Configure("q", SettingsChange(rate=None)), now=T0 + 1) == ["f"]


def test_a_paused_queue_waits_for_no_token(limited):
    receive(limited, 2)
    do(limited, Pause("q", paused=True))
    result = run(limited, claim())
    assert (result.outcomes, result.next_due_ms) == ([()], T0 + LEASE_MS)
    assert woken_by(limited, Pause("q", paused=False), now=T0 + 5) == ["c"]


def test_a_consumers_lease_obeys_and_takes_tokens(limited):
    consumer = do(limited, OpenConsumer("q", "c", 60_000))
    leased = do(limited, LeaseMessages("q", "c", consumer.generation, 1, 9, 10_000))
    assert leased.open.messages == 2
    assert has_no_message(limited, now=T0 + 4)
    assert contents(receive(limited, 9, now=T0 + 5)) == ["c"]


def test_both_bounds_of_a_queue_hold(limited):
    configure(limited, in_flight_max=1)
    (first,) = receive(limited, 9)
    assert woken_by(limited, Ack("q", receipts([first]))) == ["b"]
    assert woken_by(limited, Purge("q"), now=T0 + 1) == []


@pytest.fixture
def grouped(engine):
    """Of each group one message may be delivered every 10 ms; nothing was delivered yet."""
    configure(engine, rate=Rate(1, 10, RatePer.GROUP))
    send_all(engine, "a1 a2 a3 b1 b2", grouped=True)
    return engine


def test_each_group_has_a_bucket_of_its_own(grouped):
    send(grouped, "none")
    send(grouped, "none")
    assert sorted(contents(receive(grouped, 9))) == ["a1", "b1", "none", "none"]
    assert counted(grouped)["q"] == QueueCounts(processing=4, held=3)


def test_held_messages_are_let_go_in_order_when_there_is_a_token(grouped):
    assert contents(receive(grouped, 9)) == ["a1", "b1"]
    result = run(grouped, claim(), now=T0 + 1)
    assert result.next_due_ms == T0 + 10
    assert woken_by(grouped, now=T0 + 9) == []
    assert woken_by(grouped, now=T0 + 10) == ["a2", "b2"]
    assert woken_by(grouped, now=T0 + 19) == []
    assert woken_by(grouped, now=T0 + 20) == ["a3"]


def test_tokens_that_gathered_are_used_at_once(engine):
    configure(engine, rate=Rate(3, 30, RatePer.GROUP))
    send_all(engine, "a1 a2 a3 a4 a5 a6 a7 a8", grouped=True)
    assert contents(receive(engine, 9)) == ["a1", "a2", "a3"]
    run(engine, now=T0 + 10)  # a4 is ready; the next tokens come while nobody asks for it
    assert contents(receive(engine, 9, now=T0 + 30)) == ["a4"]
    assert woken_by(engine, now=T0 + 30) == ["a5", "a6"]
    assert counted(engine)["q"] == QueueCounts(processing=6, held=2)


def test_a_group_that_is_full_and_has_tokens_waits_for_an_ack(engine):
    configure(engine, rate=Rate(2, 10, RatePer.GROUP), group_in_flight_max=1)
    send_all(engine, "a1 a2 a3", grouped=True)
    (first,) = receive(engine, 9)
    assert run(engine, claim()).next_due_ms > T0 + 10
    (second,) = (woken_by(engine, Ack("q", receipts([first]))),)
    assert second == ["a2"]
    assert counted(engine)["q"] == QueueCounts(processing=1, held=1)


def test_an_ack_without_a_token_waits_for_the_token(engine):
    configure(engine, rate=Rate(1, 10, RatePer.GROUP), group_in_flight_max=1)
    send_all(engine, "a1 a2", grouped=True)
    (first,) = receive(engine, 9)
    assert woken_by(engine, Ack("q", receipts([first])), now=T0 + 3) == []
    assert woken_by(engine, now=T0 + 10) == ["a2"]


def test_a_rate_that_is_taken_away_lets_everything_go(grouped):
    receive(grouped, 9)
    assert woken_by(grouped, Configure("q", SettingsChange(rate=None))) == ["a2", "b2", "a3"]


def test_a_new_message_of_a_group_does_not_overtake_held_ones(grouped):
    assert contents(receive(grouped, 9)) == ["a1", "b1"]
    send(grouped, "a4", group="a", now=T0 + 5)
    assert contents(receive(grouped, 9, now=T0 + 10)) == ["a2", "b2"]


RATES = st.builds(Rate, st.integers(1, 7), st.integers(1, 40))


@settings(deadline=None, max_examples=30)
@given(rate=RATES, steps=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=15))
def test_in_any_time_no_more_than_the_bucket_and_what_came_into_it(rate, steps):
    """The promise of docs/rates.md, over every pair of moments; and that nothing less is delivered than it allows."""
    engine = MemoryEngine(EngineSettings())
    configure(engine, rate=rate)
    for _ in range(75):
        send(engine)
    now, delivered = T0, []
    tokens = Fraction(rate.count)
    for later_ms, most in steps:
        now += later_ms
        tokens = min(tokens + Fraction(later_ms * rate.count, rate.period_ms), Fraction(rate.count))
        got = len(do(engine, claim(most), now))
        assert got == min(most, int(tokens))
        tokens -= got
        delivered.append((now, got))
    for first in range(len(delivered)):
        total = 0
        for at, got in delivered[first:]:
            total += got
            elapsed_ms = at - delivered[first][0]
            assert total <= rate.count + elapsed_ms * rate.count // rate.period_ms
    assert all(earlier <= later for (earlier, _), (later, _) in pairwise(delivered))


def test_a_new_message_does_not_overtake_held_ones_whose_tokens_gathered(engine):
    configure(engine, rate=Rate(3, 30, RatePer.GROUP))
    send_all(engine, "a1 a2 a3 a4 a5 a6", grouped=True)
    assert contents(receive(engine, 9)) == ["a1", "a2", "a3"]
    run(engine, now=T0 + 10)  # a4 is ready
    send(engine, "a7", group="a", now=T0 + 15)
    assert contents(receive(engine, 9, now=T0 + 30)) == ["a4", "a5"]
    assert woken_by(engine, now=T0 + 30) == ["a6"]
    assert woken_by(engine, now=T0 + 40) == ["a7"]


def test_a_new_message_does_not_overtake_held_ones_of_a_group_that_is_left_to_the_next_batch(
    engine, monkeypatch
):
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 1)
    configure(engine, group_in_flight_max=1)
    send_all(engine, "a1 b1 a2 b2", grouped=True)
    deliveries = receive(engine, 9)
    assert contents(deliveries) == ["a1", "b1"]
    assert counted(engine)["q"].held == 2
    send_all(engine, "a3 b3", grouped=True)
    assert woken_by(engine, Ack("q", receipts(deliveries))) == ["a2", "b2"]


@pytest.mark.parametrize("group_in_flight_max", [None, 5])
def test_a_new_message_does_not_overtake_held_ones_while_they_become_ready_again(
    engine, monkeypatch, group_in_flight_max
):
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 1)
    configure(engine, group_in_flight_max=1)
    send_all(engine, "a1 a2 a3", grouped=True)
    assert contents(receive(engine, 9)) == ["a1"]
    send(engine, "a4", group="a")
    change = SettingsChange(group_in_flight_max=group_in_flight_max)
    delivered = woken_by(engine, Configure("q", change))
    while counted(engine)["q"].processing < 4:
        delivered += woken_by(engine)
    assert delivered == ["a2", "a3", "a4"]
