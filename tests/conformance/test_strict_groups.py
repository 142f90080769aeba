"""Strict groups: a message waits for the earlier ones of its group, and one claim may have several of them."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Claims,
    Configure,
    Delete,
    Extend,
    LeaseMessages,
    Nack,
    OpenConsumer,
    ProduceMany,
    Purge,
    Release,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.setting_values import GroupOrder, Rate, RatePer

from .keyed import offer
from .script import LEASE_MS, T0, ack, claim, configure, contents, counted, do, receipts, receive, run, send


@pytest.fixture
def strict(engine):
    """An engine whose queue has strict groups."""
    configure(engine, group_order=GroupOrder.STRICT)
    return engine


def send_all(engine, names, now=T0, queue="q", **fields):
    messages = [NewMessage(name, group=name[0], **fields) for name in names.split()]
    return do(engine, ProduceMany(queue, tuple(messages)), now)


def test_a_claim_may_have_several_of_a_group_in_their_order(strict):
    send_all(strict, "a1 a2 a3")
    assert contents(receive(strict, most=2)) == ["a1", "a2"]


def test_no_other_claim_gets_one_of_the_group_while_one_is_in_process(strict):
    send_all(strict, "a1 a2 b1")
    assert contents(receive(strict)) == ["a1"]
    assert contents(receive(strict, most=10)) == ["b1"]
    assert receive(strict, most=10) == ()


def test_claims_of_one_batch_are_different_claims(strict):
    send_all(strict, "a1 a2 b1 b2")
    first, second = run(strict, claim(most=1), claim(most=3)).outcomes
    assert [contents(first), contents(second)] == [["a1"], ["b1", "b2"]]


def test_an_ack_lets_the_next_ones_go(strict):
    send_all(strict, "a1 a2 a3 a4")
    (first,) = receive(strict)
    assert receive(strict, most=10) == ()  # holds the others
    assert ack(strict, *receipts([first]))
    assert contents(receive(strict, most=2)) == ["a2", "a3"]


def test_all_of_a_claim_have_to_be_settled(strict):
    send_all(strict, "a1 a2 a3")
    first, second = receive(strict, most=2)
    assert ack(strict, *receipts([first]))
    assert receive(strict) == ()
    assert ack(strict, *receipts([second]))
    assert contents(receive(strict)) == ["a3"]


def test_a_message_that_waits_for_its_next_attempt_holds_the_later_ones(strict):
    send_all(strict, "a1 a2")
    (first,) = receive(strict)
    do(strict, Nack("q", receipts([first]), 1_000, None))
    assert receive(strict, now=T0 + 999) == ()
    assert contents(receive(strict, most=10, now=T0 + 1_000)) == ["a1", "a2"]


def test_a_group_with_a_token_waits_for_what_is_in_process_and_for_nothing_else(engine):
    rate = Rate(count=5, period_ms=1_000, per=RatePer.GROUP)
    configure(engine, group_order=GroupOrder.STRICT, group_in_flight_max=2, rate=rate)
    send_all(engine, "a1 a2")
    (first,) = receive(engine)
    run(engine, claim(most=1), now=T0 + 1_000)  # holds a2
    assert run(engine, now=T0 + 1_000).next_due_ms == T0 + LEASE_MS
    assert ack(engine, *receipts([first]), now=T0 + 1_000)
    assert contents(receive(engine, now=T0 + 1_000)) == ["a2"]


def test_a_lease_that_ends_gives_the_same_message_again(strict):
    send_all(strict, "a1 a2")
    receive(strict)
    assert receive(strict, now=T0 + LEASE_MS - 1) == ()
    assert contents(receive(strict, now=T0 + LEASE_MS)) == ["a1"]


def test_what_is_due_together_holds_nothing_even_if_it_takes_several_batches(strict, monkeypatch):
    """The batch that ends the lease finds the later message behind a delayed one, which is due and left to the next."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 1)
    send_all(strict, "a1")
    send_all(strict, "a2", delay_ms=LEASE_MS)
    send_all(strict, "a3")
    assert contents(receive(strict)) == ["a1"]
    assert receive(strict) == ()
    assert strict.snapshot().counts["q"].held == 1
    for _ in range(4):
        run(strict, now=T0 + LEASE_MS)
    assert strict.snapshot().counts["q"].ready == 3


def test_a_release_gives_the_same_message_again(strict):
    send_all(strict, "a1 a2")
    (first,) = receive(strict)
    do(strict, Release("q", receipts([first]), 0))
    assert contents(receive(strict, most=10)) == ["a1", "a2"]


def test_a_message_that_fails_for_good_lets_the_next_one_go(strict):
    send_all(strict, "a1 a2", max_attempts=1)
    (first,) = receive(strict)
    do(strict, Nack("q", receipts([first]), None, None))
    assert contents(receive(strict)) == ["a2"]


def test_a_delayed_message_holds_only_those_that_were_sent_after_it(strict):
    send_all(strict, "a1")
    send_all(strict, "a2", delay_ms=1_000)
    send_all(strict, "a3")
    assert contents(receive(strict, most=10)) == ["a1"]
    (only,) = receive(strict, now=T0 + LEASE_MS, most=10)[:1]
    assert only.content == "a1"


def test_removing_the_delayed_message_lets_the_later_ones_go(strict):
    (delayed,) = send_all(strict, "a1", delay_ms=10_000)
    send_all(strict, "a2")
    assert receive(strict) == ()
    do(strict, Delete("q", (delayed.id,)))
    assert contents(receive(strict)) == ["a2"]


def test_an_offer_that_puts_a_delayed_message_behind_others_lets_them_go(strict):
    for_later = {"group": "a", "delay_ms": 10_000}
    offer(strict, "k", priority=1_000, **for_later)
    send_all(strict, "a2")
    assert receive(strict) == ()
    offer(strict, "k", priority=0, **for_later)
    assert contents(receive(strict)) == ["a2"]


def test_an_offer_that_puts_the_first_message_behind_others_lets_them_go(strict):
    send_all(strict, "a1")
    (first,) = receive(strict)
    offer(strict, "k", group="a", priority=1_000)
    send_all(strict, "a3")
    assert receive(strict, most=10) == ()
    assert ack(strict, *receipts([first]))
    send(strict, "x")
    offer(strict, "k", "k", group="a", priority=0)
    assert contents(receive(strict, most=3)) == ["a3", "x", "k"]


def test_a_purge_forgets_what_is_held(strict):
    send_all(strict, "a1 a2 a3")
    receive(strict)
    assert receive(strict) == ()
    do(strict, Purge("q"))
    send_all(strict, "a4")
    assert contents(receive(strict)) == ["a4"]


def test_messages_without_a_group_wait_for_nothing(strict):
    send(strict, "x")
    send(strict, "y")
    assert contents(receive(strict)) == ["x"]
    assert contents(receive(strict)) == ["y"]


def test_what_was_held_is_ready_once_groups_are_no_longer_strict(strict):
    send_all(strict, "a1 a2 a3")
    receive(strict)
    assert receive(strict, most=10) == ()
    assert counted(strict)["q"].held == 2
    configure(strict, group_order=None)
    assert contents(receive(strict, most=10)) == ["a2", "a3"]


def test_what_is_in_process_from_before_holds_its_group(engine):
    send_all(engine, "a1 a2 a3")
    first, second = receive(engine), receive(engine)
    assert [contents(first), contents(second)] == [["a1"], ["a2"]]
    configure(engine, group_order=GroupOrder.STRICT)
    for done in (first, second):
        assert receive(engine, most=10) == ()
        assert ack(engine, *receipts(done))
    assert contents(receive(engine, most=10)) == ["a3"]


def test_a_lease_that_ended_is_not_extended_while_another_has_the_group(strict):
    send_all(strict, "a1 a2")
    (first,) = receive(strict, lease_ms=1_000)
    later = T0 + 1_000
    assert contents(receive(strict, now=later)) == ["a1"]
    (end,) = do(strict, Extend("q", receipts([first]), 5_000), later)
    assert end is None


def test_an_ack_by_any_receipt_of_the_message(engine):
    send(engine, "x")
    (first,) = receive(engine, lease_ms=1_000)
    (second,) = receive(engine, now=T0 + 1_000)
    assert do(engine, Ack("q", receipts([first])), T0 + 1_000) == (False,)
    assert do(engine, Ack("q", receipts([first]), claims=Claims.ANY), T0 + 1_000) == (True,)
    assert do(engine, Ack("q", receipts([second])), T0 + 1_000) == (False,)


def test_a_made_up_receipt_acknowledges_nothing_that_nobody_received(engine):
    produced = send(engine, "x")
    made_up = Receipt(produced.sequence, 1)
    assert do(engine, Ack("q", (made_up,), claims=Claims.ANY)) == (False,)
    assert do(engine, Extend("q", (made_up,), 1_000, Claims.ANY)) == (None,)
    assert counted(engine)["q"].ready == 1


def test_a_receipt_of_another_message_with_the_same_number_settles_nothing(engine):
    """A number comes back after a restore; the message that has it then has another id."""
    send(engine, "x")
    (given,) = receipts(receive(engine))
    send(engine, "y", queue="other")
    (another,) = receipts(receive(engine, queue="other"))
    for made_up in (Receipt(given.seq, token) for token in (another.token, given.token ^ 1, 1)):
        assert do(engine, Ack("q", (made_up,), claims=Claims.ANY)) == (False,)
        assert do(engine, Extend("q", (made_up,), 1_000, Claims.ANY)) == (None,)
    assert counted(engine)["q"].processing == 1
    earlier = Receipt(given.seq, given.token ^ 1 << 61)  # as another claim of this message would give it
    assert do(engine, Ack("q", (earlier,), claims=Claims.ANY)) == (True,)


@pytest.mark.parametrize("lease_ms", [0, 1_000])
@pytest.mark.parametrize("delay_ms", [0, 1_000])
def test_a_lease_that_has_ended_is_extended_by_no_receipt_of_any_claim(engine, delay_ms, lease_ms):
    """The message is ready or delayed; a receipt of an earlier claim would still acknowledge it."""
    send(engine, "x")
    (first,) = receive(engine, lease_ms=1_000)
    (second,) = receive(engine, now=T0 + 1_000)
    assert do(engine, Nack("q", receipts([second]), delay_ms), T0 + 1_000) == (True,)
    extend = Extend("q", receipts([first]), lease_ms, Claims.ANY)
    assert do(engine, extend, T0 + 1_000) == (None,)
    assert counted(engine)["q"].processing == 0
    assert do(engine, Ack("q", receipts([first]), claims=Claims.ANY), T0 + 1_000) == (True,)


def test_a_lease_is_extended_by_any_receipt_of_the_message(engine):
    send(engine, "x")
    (first,) = receive(engine, lease_ms=1_000)
    receive(engine, now=T0 + 1_000, lease_ms=1_000)
    extend = Extend("q", receipts([first]), 5_000, Claims.ANY)
    assert do(engine, extend, T0 + 1_000) == (T0 + 6_000,)


def test_an_earlier_receipt_acks_what_a_pipeline_has_leased_since(engine):
    for name in "xyz":
        send(engine, name)
    given = receive(engine, most=3)
    do(engine, Release("q", receipts(given)))
    do(engine, OpenConsumer("q", "k", 60_000))
    do(engine, LeaseMessages("q", "k", 1, 1, 9, 10**9))
    assert counted(engine)["q"].processing == 3
    assert do(engine, Ack("q", receipts(given[:1]))) == (False,)
    assert do(engine, Ack("q", receipts(given[:2]), claims=Claims.ANY)) == (True, True)
    (end,) = do(engine, Extend("q", receipts(given[2:]), 0, claims=Claims.ANY))
    assert end == T0
    assert contents(receive(engine, most=3)) == ["z"]


def test_an_ack_only_while_the_lease_lasts(engine):
    send(engine, "x")
    (delivery,) = receive(engine, lease_ms=1_000)
    wanted = Ack("q", receipts([delivery]), claims=Claims.LEASED)
    assert do(engine, wanted, T0 + 1_000) == (False,)
    (again,) = receive(engine, now=T0 + 1_000)
    assert do(engine, Ack("q", receipts([again]), claims=Claims.LEASED), T0 + 1_001) == (True,)


def test_the_groups_of_a_queue_whose_name_ends_in_fifo_are_strict(engine):
    send_all(engine, "a1 a2 b1", queue="x.fifo")
    assert contents(receive(engine, queue="x.fifo")) == ["a1"]
    configure(engine, "x.fifo", lease_ms=1_000)
    do(engine, Configure("x.fifo", None))
    assert contents(receive(engine, most=10, queue="x.fifo")) == ["b1"]
