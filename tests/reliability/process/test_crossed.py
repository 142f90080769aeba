"""The checker of crossed histories can fail: histories of one strict group, each with one fault."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from reliability.process.crossed import STRICT, History, Line, Violation

GROUP = Line(STRICT, 0)


def told(*commits: str) -> Iterator[dict[str, Any]]:
    """The events of these commits, as a server tells them."""
    attempts: Counter[int] = Counter()
    steps = [(at, *step.split()) for at, commit in enumerate(commits) for step in commit.split(", ")]
    for number, (at, kind, name) in enumerate(steps, 1):
        sequence = int(name)
        attempts[sequence] += kind == "delivered"
        yield {
            "id": number,
            "at": at,
            "kind": kind,
            "queue": STRICT,
            "bytes": 4 + GROUP.number,
            "sequence": sequence,
            "messageId": name,
            "attempt": attempts[sequence],
        }


def played(*commits: str) -> History:
    history = History()
    history.read(told(*commits))
    return history


SENT = "produced 1, produced 2, produced 3"


def test_a_history_without_a_fault() -> None:
    history = played(
        *(SENT, "delivered 1, delivered 2", "acked 1", "nacked 2", "delivered 2, delivered 3"),
        *("lease_expired 3", "acked 2", "delivered 3", "acked 3"),
    )
    history.check_end()
    assert history.seen["several of a group"] == 2


@pytest.mark.parametrize(
    ("commits", "fault"),
    [
        ((SENT, "delivered 1", "delivered 2"), "in process since"),
        ((SENT, "delivered 1, delivered 2", "nacked 1", "delivered 1"), "in process since"),
        ((SENT, "delivered 1, delivered 2", "acked 1", "delivered 3"), "in process since"),
        ((SENT, "delivered 1", "nacked 1, delivered 2"), "waits, and is before"),
        ((SENT, "delivered 1", "lease_expired 1", "delivered 2"), "waits, and is before"),
        ((SENT, "delivered 2, delivered 1"), "waits, and is before"),
        ((SENT, "delivered 1", "delivered 1"), "has it"),
        ((SENT, "delivered 1", "acked 1", "acked 1"), "it is gone"),
        ((SENT, "produced 1"), "stored twice"),
    ],
)
def test_a_history_with_a_fault(commits, fault) -> None:
    with pytest.raises(Violation, match=fault):
        played(*commits)


def received(*sequences: int) -> list[dict[str, Any]]:
    return [
        {"sequence": each, "attempts": 1, "content": str(each), "leaseUntil": 2**50} for each in sequences
    ]


BOTH_GIVEN = "produced 1, produced 2", "delivered 1, delivered 2", "acked 1, acked 2"


def test_one_receive_may_get_several_of_a_group() -> None:
    history = played(*BOTH_GIVEN)
    history.answered(received(1, 2))
    history.check_end()


def test_two_receives_of_one_commit_may_not() -> None:
    history = played(*BOTH_GIVEN)
    history.answered(received(1))
    history.answered(received(2))
    with pytest.raises(Violation, match="to the receives"):
        history.check_end()


def test_what_was_acknowledged_is_received_again_only_by_an_answer_that_comes_after_its_lease() -> None:
    history = played("produced 1", "delivered 1", "lease_expired 1", "delivered 1")
    (first,) = received(1)
    second = first | {"attempts": 2}
    history.answered([second])
    history.settling(second)
    history.acked(second)
    history.answered([first | {"leaseUntil": 0}])
    with pytest.raises(Violation, match="acknowledged, and here again"):
        history.answered([first])


def test_a_message_is_acknowledged_once_and_none_is_lost() -> None:
    history = played(*BOTH_GIVEN)
    (message, _) = received(1, 2)
    history.acked(message)
    with pytest.raises(Violation, match="acknowledged twice"):
        history.acked(message)
    history.sent(0, ["3"], [3])
    with pytest.raises(Violation, match="not stored"):
        history.check_end()
