"""What the handlers of workers did, and the promises it is held against.

A violated promise is noted at the moment it shows: an assertion that a handler raised would only be a failed attempt.
"""

from collections import Counter
from dataclasses import dataclass

import trio

from forq_trio.worker import Job

OVERLAP_SECONDS_MAX = 0.002
"""Times of the queue are whole milliseconds, and who falls due at one moment runs in any order."""


@dataclass(eq=False)
class Attempt:
    """One call of a handler for one message. overlapped_at: when somebody else began with the same message."""

    worker: int
    queue: str
    job: Job
    result: str = "runs"
    overlapped_at: float | None = None


class Books:
    """running: the handlers that run and were not cancelled. bounds: how many may, by worker and queue."""

    def __init__(self) -> None:
        self.running: list[Attempt] = []
        self.busy: Counter[tuple[int, str]] = Counter()
        self.bounds: dict[tuple[int, str], int] = {}
        self.by_receipt: dict[str, Attempt] = {}
        self.violations: list[str] = []
        self.seen: Counter[str] = Counter()

    def begin(self, worker: int, queue: str, job: Job) -> Attempt:
        """A handler begins with a message: within the bounds, and whoever has it still is about to be cancelled."""
        now = trio.current_time()
        for each in self.running:
            if each.job.id == job.id and each.overlapped_at is None:
                each.overlapped_at = now
        attempt = Attempt(worker, queue, job)
        self.running.append(attempt)
        self.by_receipt[job.receipt] = attempt
        for which in ((worker, queue), (worker, "")):
            self.busy[which] += 1
            self._check(self.busy[which] <= self.bounds[which], f"{self.busy[which]} handlers run of {which}")
        return attempt

    def stopped(self, attempt: Attempt, result: str) -> None:
        """A handler returned, raised, or learned that it is cancelled."""
        self.seen[result] += 1
        attempt.result = result
        self.running.remove(attempt)
        self._check_overlap(attempt)

    def ended(self, attempt: Attempt) -> None:
        """A handler is over, its clean-up too: its slot may be used again."""
        self.busy[attempt.worker, attempt.queue] -= 1
        self.busy[attempt.worker, ""] -= 1

    def asked(self, worker: int, queue: str, most: int) -> None:
        """A worker asks for messages: for no more than it has slots free."""
        busy, bound = self.busy[worker, queue], self.bounds[worker, queue]
        self._check(busy + most <= bound, f"{most} are asked for, and {busy} of {bound} run")

    def settled(self, what: str, receipt: str) -> None:
        """The queue accepted a settlement: it is what the handler said."""
        self.seen[what] += 1
        attempt = self.by_receipt.get(receipt)
        result = "not begun" if attempt is None else attempt.result
        expected = {
            "ack": ("returned",),
            "nack": ("raised", "cancelled"),
            "release": ("not begun", "cancelled"),
        }
        self._check(result in expected[what], f"{what} was accepted, and the handler {result}")

    def check_end(self) -> None:
        """Nobody runs any more. Raises AssertionError for what was noted since the beginning."""
        self._check(not self.running, f"{len(self.running)} handlers still run")
        self._check(not any(self.busy.values()), "slots are busy for ever")
        assert not self.violations, "; ".join(self.violations)

    def _check_overlap(self, attempt: Attempt) -> None:
        if attempt.overlapped_at is not None:
            seconds = trio.current_time() - attempt.overlapped_at
            self.seen["overlapped"] += 1
            self._check(
                seconds <= OVERLAP_SECONDS_MAX, f"{attempt.job} ran on for {seconds} s without its lease"
            )

    def _check(self, holds: bool, violation: str) -> None:
        if not holds:
            self.violations.append(violation)
