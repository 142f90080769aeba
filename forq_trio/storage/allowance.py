"""Bounds how many messages, and how many bytes of content, each step of a batch may process.

A step whose length does not follow from the batch's commands has an allowance. It stops once its allowance is used up,
and the next batch continues. The last item is never split, so it may exceed the allowance. No request and no setting
can therefore make a batch long, however much is stored, and all engines stop at the same message. No batch makes more
than COMMIT_CHANGES_MAX changes of messages.

- There are steps for due messages, evictions, failed messages, held messages that become ready, messages that claims
  deliver, messages that claims hold, move or delete, messages named by settling and moving commands (a step for each
  kind of command), messages that consumers lease, messages that they settle, and stages that publications name.
- A command that did not run has the outcome DEFERRED. So has a claim or a lease that got nothing although messages
  are ready. A settlement by receipts may stop at any receipt, and a series of offers that replace contents at any
  offer; `Deferred.done` then has the outcomes of those before.
- Claims are served queue by queue, sorted by name, starting with the queue at which the previous batch ran out of an
  allowance.
"""

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from forq_trio.model import limits


class Step:
    """The steps of a batch that have an allowance; each kind of settling or moving command has one, too.

    EVICT starts afresh for each kind of command that sends, so that none of them starves another. These are plain
    strings because the members of an enumeration take longer to hash.
    """

    DUE = "due"
    EVICT = "evict"
    UNHOLD_GROUP = "unhold_group"
    UNHOLD_QUEUE = "unhold_queue"
    FAILED = "failed"
    FILTER = "filter"
    SCAN = "scan"
    SET_ASIDE = "set_aside"
    DELIVER = "deliver"
    LEASE = "lease"
    SETTLE_LEASE = "settle_lease"
    MOVE_BACK = "move_back"
    DROP = "drop"
    PUBLISH = "publish"
    RUNS = "runs"


_MESSAGES_MAX: dict[object, str] = {
    Step.DUE: "DUE_BATCH_MAX",
    Step.UNHOLD_GROUP: "DUE_BATCH_MAX",
    Step.UNHOLD_QUEUE: "DUE_BATCH_MAX",
    Step.EVICT: "EVICTED_MAX",
    Step.FAILED: "FAILED_MOVED_MAX",
    Step.FILTER: "CLAIM_FILTERED_MAX",
    Step.SCAN: "CLAIM_SCAN_MAX",
    Step.SET_ASIDE: "CLAIM_FILTERED_MAX",
    Step.LEASE: "CONSUMER_STEP_MESSAGES_MAX",
    Step.SETTLE_LEASE: "CONSUMER_STEP_MESSAGES_MAX",
    Step.MOVE_BACK: "CONSUMER_MOVED_BACK_MESSAGES_MAX",
    Step.DROP: "CONSUMER_STEP_DROPPED_MAX",
    Step.PUBLISH: "PUBLISH_STAGES_MAX",
    Step.RUNS: "RUNS_STEP_MAX",
}
"""The most messages of each step (DROP: pages; PUBLISH: stages; RUNS: runs). All others: COMMIT_MESSAGES_MAX."""
_BYTES_MAX: dict[object, str] = {
    Step.DUE: "REWRITE_BYTES_MAX",
    Step.EVICT: "STEP_BYTES_MAX",
    Step.UNHOLD_GROUP: "REWRITE_BYTES_MAX",
    Step.UNHOLD_QUEUE: "REWRITE_BYTES_MAX",
    Step.FAILED: "REWRITE_BYTES_MAX",
    Step.FILTER: "STEP_BYTES_MAX",
    Step.SCAN: "CLAIM_SCAN_BYTES_MAX",
    Step.SET_ASIDE: "STEP_BYTES_MAX",
    Step.DELIVER: "STEP_BYTES_MAX",
    Step.LEASE: "CONSUMER_STEP_BYTES_MAX",
    Step.SETTLE_LEASE: "STEP_BYTES_MAX",
    Step.MOVE_BACK: "CONSUMER_MOVED_BACK_BYTES_MAX",
    Step.DROP: "STEP_BYTES_MAX",
    Step.PUBLISH: "STEP_BYTES_MAX",
    Step.RUNS: "REWRITE_BYTES_MAX",
}
"""The most bytes of each step. For a kind of command: REWRITE_BYTES_MAX."""
_OF_LONG_WORK = frozenset({Step.LEASE, Step.SETTLE_LEASE, Step.RUNS})


def _messages_max(step: object) -> int:
    messages_max: int = getattr(limits, _MESSAGES_MAX.get(step, "COMMIT_MESSAGES_MAX"))
    return messages_max


class Allowance:
    """How many messages and bytes a step has left; it is used up once either is gone."""

    __slots__ = ("bytes", "messages")

    def __init__(self, messages: int, size: int | None = None) -> None:
        self.messages = messages
        self.bytes = limits.STEP_BYTES_MAX if size is None else size

    @property
    def used_up(self) -> bool:
        return self.messages <= 0 or self.bytes <= 0

    def charge(self, messages: int, size: int) -> None:
        self.messages -= messages
        self.bytes -= size


MessageT = TypeVar("MessageT", bound=Any)


def within(allowance: Allowance, messages: Sequence[MessageT]) -> Sequence[MessageT]:
    """Charge these messages to the allowance, in order, until it is used up; returns those that were charged.

    Each message has `bytes`. A damaged one, whose size is not a number, is charged as 0 bytes; it fails later, when it
    is settled.
    """
    for index, message in enumerate(messages):
        if allowance.used_up:
            return messages[:index]
        allowance.charge(1, message.bytes if isinstance(message.bytes, int) else 0)
    return messages


def part(most: int) -> int:
    """The size of a step of long work while other calls are waiting. most: its size when none are."""
    return max(most // limits.STEP_SHARE, 1)


class Allowances:
    """The allowances of one batch, by step or kind of command.

    shared: other calls are waiting, so the steps of long work are shorter.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared
        self._by_step: dict[object, Allowance] = {}

    def copy(self) -> Self:
        """A copy to charge for work that is tried and may be undone."""
        same = type(self)(shared=self.shared)
        same._by_step = {step: Allowance(each.messages, each.bytes) for step, each in self._by_step.items()}
        return same

    def step(self, most: int) -> int:
        """The size of a step of long work. most: its size when no other calls are waiting."""
        return part(most) if self.shared else most

    def renew(self, step: object) -> None:
        """Give a step its whole allowance again."""
        self._by_step.pop(step, None)

    def used_up(self, *steps: object) -> bool:
        """Whether any of these steps has used up its allowance. A step that has not begun has not."""
        for step in steps:
            allowance = self._by_step.get(step)
            if allowance is not None and allowance.used_up:
                return True
        return False

    def of(self, step: object) -> Allowance:
        allowance = self._by_step.get(step)
        if allowance is None:
            messages_max = _messages_max(step)
            bytes_max = getattr(limits, _BYTES_MAX.get(step, "REWRITE_BYTES_MAX"))
            if step in _OF_LONG_WORK:
                messages_max, bytes_max = self.step(messages_max), self.step(bytes_max)
            allowance = self._by_step[step] = Allowance(messages_max, bytes_max)
        return allowance
