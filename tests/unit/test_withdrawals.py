"""The latest withdrawn messages in memory: how many are kept, and what is answered to whom."""

import pytest

from forq_trio.model import limits
from forq_trio.model.workers.withdrawn import Withdrawal, Withdrawals, WithdrawnMessage, WithdrawnMessages

BEGAN = 5
BATCHES = (
    (Withdrawal(10, "q", "a", "cancelled"), Withdrawal(10, "r", "b", "deleted")),
    (Withdrawal(11, "q", "", "deleted"),),
    (Withdrawal(15, "r", "c", "cancelled"),),
)


def latest(batches=BATCHES) -> Withdrawals:
    found = Withdrawals()
    for each in batches:
        found = found.with_new(each)
    return found


def any_of(queue: str) -> WithdrawnMessage:
    return WithdrawnMessage(queue, None, None)


def test_one_hears_of_those_of_his_queues_since_the_position() -> None:
    a, any_of_q = WithdrawnMessage("q", "a", "cancelled"), WithdrawnMessage("q", None, "deleted")
    b, c = WithdrawnMessage("r", "b", "deleted"), WithdrawnMessage("r", "c", "cancelled")
    found = latest()
    assert found.answer({"q", "r"}, 4, BEGAN) == WithdrawnMessages([a, b, any_of_q, c], 15)
    assert found.answer({"q"}, 9, BEGAN) == WithdrawnMessages([a, any_of_q], 15)
    assert found.answer({"r"}, 10, BEGAN) == WithdrawnMessages([c], 15)
    assert found.answer({"r"}, 15, BEGAN) == WithdrawnMessages([], 15)
    assert found.answer({"s"}, 4, BEGAN) == WithdrawnMessages([], 15)


def test_a_position_of_another_life_is_not_lowered() -> None:
    """A server that starts again knows of none; the next one has the time of its batch."""
    assert Withdrawals().answer({"q"}, 15, BEGAN) == WithdrawnMessages([], 15)


def test_who_asks_for_the_time_before_the_process_began_is_told_that_it_may_be_any() -> None:
    assert Withdrawals().answer({"q"}, 3, BEGAN) == WithdrawnMessages([any_of("q")], 4)
    assert Withdrawals().answer({"q"}, 4, BEGAN) == WithdrawnMessages([], 4)
    assert latest().answer(["r", "s"], 3, BEGAN) == WithdrawnMessages([any_of("r"), any_of("s")], 15)


def test_a_process_that_took_over_from_others_knows_of_the_time_before_it_began() -> None:
    found = Withdrawals.unknown_until(2).with_new(BATCHES[0])
    assert found.answer({"r"}, 2, BEGAN) == WithdrawnMessages([WithdrawnMessage("r", "b", "deleted")], 10)
    assert found.answer({"r"}, 1, BEGAN) == WithdrawnMessages([any_of("r")], 10)


def test_who_is_too_far_behind_is_told_that_it_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 2)
    found = latest()
    assert [each.position for each in found.entries] == [11, 15]
    assert found.answer({"r"}, 9, BEGAN) == WithdrawnMessages([any_of("r")], 15)
    c = WithdrawnMessage("r", "c", "cancelled")
    assert found.answer({"r"}, 10, BEGAN) == WithdrawnMessages([c], 15)


def test_those_of_one_queue_make_nobody_else_miss_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 2)
    many = [[Withdrawal(20 + number, "many", "x", "cancelled")] for number in range(9)]
    found = latest(many)
    assert found.answer(["few"], 10, BEGAN) == WithdrawnMessages([], 28)
    assert found.answer(["few", "many"], 10, BEGAN) == WithdrawnMessages([any_of("many")], 28)
    named = found.with_new([Withdrawal(29, "few", "y", "deleted")])
    y = WithdrawnMessage("few", "y", "deleted")
    assert named.answer(["few"], 10, BEGAN) == WithdrawnMessages([y], 29)


def test_of_very_many_queues_the_oldest_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 2)
    found = latest([[Withdrawal(20 + number, f"q{number}", "x", "cancelled")] for number in range(6)])
    assert (found.dropped, found.dropped_in) == (21, {"q2": 22, "q3": 23})
    assert found.answer(["other"], 20, BEGAN) == WithdrawnMessages([any_of("other")], 25)
    assert found.answer(["other"], 21, BEGAN) == WithdrawnMessages([], 25)
    assert found.answer(["q3"], 22, BEGAN) == WithdrawnMessages([any_of("q3")], 25)


def test_a_batch_comes_after_the_one_before_whatever_its_clock_says() -> None:
    assert [latest().next_position(now) for now in (20, 15, 3)] == [20, 16, 16]


def test_the_queue_of_one_that_was_pushed_out_at_once_is_woken_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have withdrawn more between two batches of this process than it can name."""
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 2)
    many = [[Withdrawal(20 + number, "many", "x", "cancelled")] for number in range(9)]
    found = latest([[Withdrawal(15, "few", "a", "cancelled")], *many])
    assert found.dropped == 0
    assert found.queues_after(14) == {"few", "many"}
    assert found.queues_after(15) == {"many"}
