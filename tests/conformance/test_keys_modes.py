"""Debounce, and once more after the message in process."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Ack, DropKeys, Purge, RescheduleKey
from forq_trio.model.errors import KeyExists, QueueFull

from .keyed import ack_revision, drop, offer, pending, read, reschedule
from .script import (
    DAY_MS,
    T0,
    ack,
    claim,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    look,
    nack,
    receive,
    receive_one,
    run,
    woken_by,
)

QUIET = {"mode": "debounce", "delay_ms": 5_000}
"""Delivered when no other offer came for five seconds."""


def test_debounce_moves_the_due_time_with_each_offer(engine):
    first = offer(engine, content="1", **QUIET)
    assert (first.outcome, first.process_after) == ("created", T0 + 5_000)
    second = offer(engine, content="2", now=T0 + 4_999, **QUIET)
    assert (second.outcome, second.id, second.process_after) == ("updated", first.id, T0 + 9_999)
    assert has_no_message(engine, now=T0 + 9_998)
    assert contents(receive(engine, now=T0 + 9_999)) == ["2"]


def test_debounce_of_the_same_content_moves_it_too(engine):
    offer(engine, **QUIET)
    again = offer(engine, now=T0 + 1, **QUIET)
    assert (again.outcome, again.process_after) == ("updated", T0 + 5_001)
    assert offer(engine, now=T0 + 1, **QUIET).outcome == "ignored"


def test_debounce_waits_no_longer_than_it_may(engine):
    offer(engine, max_wait_ms=7_000, **QUIET)
    again = offer(engine, content="2", max_wait_ms=7_000, now=T0 + 4_000, **QUIET)
    assert again.process_after == T0 + 7_000
    assert pending(engine).message.keyed.max_wait_until == T0 + 7_000
    last = offer(engine, content="3", max_wait_ms=7_000, now=T0 + 6_999, **QUIET)
    assert last.process_after == T0 + 7_000
    assert contents(receive(engine, now=T0 + 7_000)) == ["3"]


@pytest.mark.parametrize("max_wait_ms", [1, 4_999, 5_000])
def test_debounce_is_bounded_from_the_first_offer_on(engine, max_wait_ms):
    assert offer(engine, max_wait_ms=max_wait_ms, **QUIET).process_after == T0 + max_wait_ms


def test_debounce_bounded_by_a_time_that_is_over_is_delivered_at_once(engine):
    """An offer that comes late gets no due time so long ago that the message has expired."""
    offer(engine, delay_ms=2 * DAY_MS)
    late = T0 + DAY_MS + DAY_MS // 2
    offer(engine, content="new", max_wait_ms=1_000, now=late, **QUIET)
    run(engine, now=late)
    assert contents(receive(engine, now=late)) == ["new"]


def test_debounce_leaves_one_that_is_due_so(engine):
    offer(engine, content="1", **QUIET)
    run(engine, now=T0 + 5_000)
    assert offer(engine, content="2", now=T0 + 6_000, **QUIET).outcome == "updated"
    assert contents(receive(engine, now=T0 + 6_000)) == ["2"]


def test_debounce_of_the_same_content_that_is_due_changes_nothing(engine):
    first = offer(engine, content="1", **QUIET)
    run(engine, now=T0 + 5_000)
    again = offer(engine, content="1", now=T0 + 6_000, **QUIET)
    assert (again.outcome, again.revision) == ("ignored", first.revision)


def test_debounce_behind_one_in_process_comes_after_it(engine):
    offer(engine, content="1", **QUIET)
    _, receipt = receive_one(engine, now=T0 + 5_000)
    waiting = offer(engine, content="2", max_wait_ms=6_000, now=T0 + 6_000, **QUIET)
    assert (waiting.outcome, waiting.once_more, waiting.process_after) == ("created", True, T0 + 11_000)
    waiting = offer(engine, content="3", max_wait_ms=6_000, now=T0 + 10_000, **QUIET)
    assert (waiting.outcome, waiting.process_after) == ("updated", T0 + 12_000)
    assert ack(engine, receipt, now=T0 + 11_000)
    assert has_no_message(engine, now=T0 + 11_999)
    assert contents(receive(engine, now=T0 + 12_000)) == ["3"]


def test_once_more_comes_after_the_ack(engine):
    first = offer(engine, content="1")
    _, receipt = receive_one(engine)
    waiting = offer(engine, content="2", mode="onceMore", attributes={"k": "v"}, now=T0 + 5)
    assert (waiting.outcome, waiting.id, waiting.once_more) == ("created", first.id, True)
    assert has_no_message(engine, now=T0 + 5)
    found = pending(engine)
    assert (found.message.content, found.once_more.content) == ("1", "2")
    assert (found.once_more.attributes, found.once_more.offers) == ({"k": "v"}, 1)
    assert (found.once_more.process_after, found.once_more.offered_at) == (T0 + 5, T0 + 5)
    assert ack(engine, receipt, now=T0 + 6)
    (delivery,) = receive(engine, now=T0 + 6)
    assert (delivery.content, delivery.attempts, delivery.key) == ("2", 1, "k")
    assert delivery.id != first.id
    message = look(engine, delivery.id)
    assert (message.keyed.revision, message.keyed.offers, message.keyed.mode) == (
        waiting.revision,
        1,
        "onceMore",
    )
    assert pending(engine).once_more is None


def test_once_more_in_the_batch_of_the_ack(engine):
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert woken_by(engine, Ack("q", (receipt,))) == ["2"]


def test_once_more_not_before_it_is_due(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore", delay_ms=5_000)
    assert ack(engine, receipt)
    assert has_no_message(engine, now=T0 + 4_999)
    assert contents(receive(engine, now=T0 + 5_000)) == ["2"]


def test_once_more_a_further_offer_takes_its_place(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    first = offer(engine, content="2", mode="onceMore")
    again = offer(engine, content="2", mode="onceMore", now=T0 + 5)
    other = offer(engine, content="3", mode="onceMore", now=T0 + 6)
    assert [each.outcome for each in (first, again, other)] == ["created", "ignored", "updated"]
    assert again.revision == first.revision < other.revision
    assert pending(engine).once_more.offers == 3
    assert ack(engine, receipt, now=T0 + 7)
    assert contents(receive(engine, 2, now=T0 + 7)) == ["3"]


def test_once_more_of_one_that_is_not_in_process_changes_it(engine):
    offer(engine)
    assert offer(engine, content="2", mode="onceMore").once_more is False
    assert contents(receive(engine, 2)) == ["2"]


def test_once_more_waits_while_the_first_is_tried_again(engine):
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert nack(engine, receipt, 0)
    assert contents(receive(engine, 2, lease_ms=10)) == ["1"]
    assert contents(receive(engine, 2, now=T0 + 10)) == ["1"]
    assert pending(engine).once_more.content == "2"


@pytest.mark.parametrize("dead_letter_queue", [None, "", "other"])
def test_once_more_goes_on_alone_when_the_first_one_dies(engine, dead_letter_queue):
    offer(engine, content="1", max_attempts=1, dead_letter_queue=dead_letter_queue)
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert nack(engine, receipt, 0)
    assert contents(receive(engine, 2)) == ["2"]
    assert counted(engine)["q"].total == 1


def test_once_more_goes_on_when_the_first_one_expires(engine):
    offer(engine, content="1", ttl_ms=100)
    receive_one(engine, lease_ms=200)
    offer(engine, content="2", mode="onceMore")
    run(engine, now=T0 + 200)
    assert contents(receive(engine, 2, now=T0 + 200)) == ["2"]


def test_once_more_goes_on_behind_one_that_is_acknowledged_by_its_revision(engine):
    first = offer(engine, content="1")
    receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert ack_revision(engine, first.revision)
    assert contents(receive(engine, 2)) == ["2"]


def test_once_more_lives_from_when_it_is_due(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore", delay_ms=100, ttl_ms=1_000)
    assert ack(engine, receipt, now=T0 + 50)
    assert pending(engine).message.expires_after == T0 + 1_100


def test_once_more_a_change_of_the_first_one_takes_its_place(engine):
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert offer(engine, content="3").outcome == "updated"
    assert pending(engine).once_more is None
    assert not ack(engine, receipt)
    assert contents(receive(engine, 2)) == ["3"]
    assert engine.snapshot().counts["q"].bytes == 1


def test_once_more_is_gone_when_the_first_one_is_offered_again_as_it_is(engine):
    """The newest offer wins, whatever it says."""
    offer(engine, content="1", process_after=T0)
    receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert offer(engine, content="1", process_after=T0).outcome == "updated"
    assert pending(engine).once_more is None


def test_once_more_stays_where_others_may_not_change_it(engine):
    offer(engine)
    receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert offer(engine, content="3", mode="createIfAbsent").outcome == "ignored"
    with pytest.raises(KeyExists):
        offer(engine, content="3", mode="create")
    assert pending(engine).once_more.content == "2"


def test_once_more_gets_a_new_due_time(engine):
    offer(engine)
    assert reschedule(engine, T0, once_more=True) is None
    _, receipt = receive_one(engine)
    assert reschedule(engine, T0, once_more=True) is None
    waiting = offer(engine, content="2", mode="onceMore")
    moved = reschedule(engine, T0 + 5_000, once_more=True)
    assert (moved.process_after, moved.once_more) == (T0 + 5_000, True)
    assert moved.revision > waiting.revision
    assert ack(engine, receipt)
    assert has_no_message(engine, now=T0 + 4_999)
    assert contents(receive(engine, now=T0 + 5_000)) == ["2"]


def test_an_offer_that_is_not_there_takes_nothing_from_others_of_its_batch(engine, monkeypatch):
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 1)
    offer(engine, content="long")
    late = RescheduleKey("q", "k", "", T0 + 5_000, True)
    *_, moved = run(engine, late, late, RescheduleKey("q", "k", "", T0 + 5_000, False)).outcomes
    assert moved.process_after == T0 + 5_000


def test_once_more_is_dropped_alone(engine):
    offer(engine)
    _, receipt = receive_one(engine)
    assert not drop(engine, once_more=True)
    offer(engine, content="22", mode="onceMore")
    assert drop(engine, once_more=True)
    assert pending(engine).once_more is None
    assert ack(engine, receipt)
    assert read(engine) is None


@pytest.mark.parametrize("how", ["drop", "drop all", "purge"])
def test_once_more_is_dropped_with_the_first_one(engine, how):
    offer(engine)
    receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    if how == "drop":
        assert drop(engine)
    else:
        do(engine, Purge("q") if how == "purge" else DropKeys("q", ""))
    assert read(engine) is None
    assert (engine.snapshot().counts["q"].total, engine.snapshot().counts["q"].bytes) == (0, 0)


def test_once_more_counts_with_the_bytes_of_its_queue(engine):
    configure(engine, max_bytes=5)
    offer(engine, content="11")
    _, receipt = receive_one(engine)
    offer(engine, content="222", mode="onceMore")
    assert engine.snapshot().counts["q"].bytes == 5
    assert pending(engine).message.bytes == 2
    with pytest.raises(QueueFull):
        offer(engine, content="3333", mode="onceMore")
    with pytest.raises(QueueFull):
        offer(engine, "other", "1")
    assert pending(engine).once_more.content == "222"
    assert ack(engine, receipt)
    assert engine.snapshot().counts["q"].bytes == 3


def test_once_more_needs_no_space_when_it_goes_on(engine):
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    configure(engine, max_messages=1, max_bytes=1)
    assert ack(engine, receipt)
    assert contents(receive(engine, 2)) == ["2"]


def test_once_more_behind_a_message_that_a_claim_moves_away(engine):
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    assert nack(engine, receipt, 0)
    configure(engine, max_attempts=1)
    result = run(engine, claim(2))
    assert result.outcomes == [()]
    assert result.next_due_ms == T0
    assert woken_by(engine) == ["2"]
    assert counted(engine)["q-dlq"].ready == 1
