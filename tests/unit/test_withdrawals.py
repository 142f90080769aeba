"""The latest withdrawn messages in memory: how many are kept, and what is answered to whom."""

import pytest

from forq_trio.model import limits
from forq_trio.model.workers.withdrawn import Withdrawal, Withdrawals, WithdrawnMessage, WithdrawnMessages

BATCHES = (
    (Withdrawal(10, "q", "a", "cancelled"), Withdrawal(10, "r", "b", "deleted")),
    (Withdrawal(11, "q", "", "deleted"),),
    (Withdrawal(15, "r", "c", "expired"),),
)


def latest(batches=BATCHES) -> Withdrawals:
    found = Withdrawals()
    for each in batches:
        found = found.with_new(each)
    return found


def test_one_hears_of_those_of_his_queues_since_the_position() -> None:
    a, any_of_q = WithdrawnMessage("q", "a", "cancelled"), WithdrawnMessage("q", None, "deleted")
    b, c = WithdrawnMessage("r", "b", "deleted"), WithdrawnMessage("r", "c", "expired")
    found = latest()
    assert found.answer({"q", "r"}, 0) == WithdrawnMessages([a, b, any_of_q, c], 15)
    assert found.answer({"q"}, 9) == WithdrawnMessages([a, any_of_q], 15)
    assert found.answer({"r"}, 10) == WithdrawnMessages([c], 15)
    assert found.answer({"r"}, 15) == WithdrawnMessages([], 15)
    assert found.answer({"s"}, 0) == WithdrawnMessages([], 15)


def test_a_position_of_another_life_is_not_lowered() -> None:
    """A server that starts again knows of none; the next one has the time of its batch."""
    assert Withdrawals().answer({"q"}, 15) == WithdrawnMessages([], 15)


def test_who_is_too_far_behind_is_told_that_it_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 2)
    found = latest()
    assert [each.position for each in found.entries] == [11, 15]
    assert found.answer({"r"}, 9) == WithdrawnMessages([WithdrawnMessage("r", None, None)], 15)
    assert found.answer({"r"}, 10) == WithdrawnMessages([WithdrawnMessage("r", "c", "expired")], 15)


def test_a_batch_comes_after_the_one_before_whatever_its_clock_says() -> None:
    assert [latest().next_position(now) for now in (20, 15, 3)] == [20, 16, 16]
