"""When the writer wakes up without a call: at the next due time, at the deadline of a parked receiver, or to try again.

There is one timer, which is only ever moved to an earlier time; one that fires too early finds nothing and is set anew.
"""

from collections.abc import Callable
from math import inf

import trio

from forq_trio.model import limits
from forq_trio.model.clock import Clock


class DueTimer:
    """The writer's timer, and what it knows of work without calls. `run` is its task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # As of the last commit; None where nothing is to come due.
        self._next_due_ms: int | None = clock.now_ms()
        self._retry_at = inf  # on trio's clock; finite after a batch that the database refused
        self.looks = False  # a batch is to run although nothing is known to be due
        self._scope = trio.CancelScope()

    async def run(self, wake: Callable[[], None]) -> None:
        """Sleep until the time that `set` sets, then call `wake`, and again."""
        while True:
            with self._scope:
                await trio.sleep_forever()
            self._scope = trio.CancelScope()
            wake()

    def set(self, next_deadline: float) -> None:
        """Wake the writer at the next due time, or at the next deadline of a parked receiver, whichever is earlier."""
        wake_at = min(next_deadline, self._retry_at)
        if self._next_due_ms is not None and self._retry_at == inf:
            due_seconds = (self._next_due_ms - self._clock.now_ms()) / 1_000
            # The wall clock can be set while we sleep: read it again now and then. That runs no query.
            wake_at = min(wake_at, trio.current_time() + min(due_seconds, limits.CLOCK_CHECK_SECONDS_MAX))
        if wake_at < self._scope.deadline:
            self._scope.deadline = wake_at

    def is_due(self) -> bool:
        """True if there is work without calls: expired timers, or a batch to try again."""
        if self._retry_at < inf:
            return trio.current_time() >= self._retry_at
        return self.looks or (self._next_due_ms is not None and self._next_due_ms <= self._clock.now_ms())

    @property
    def retries(self) -> bool:
        """The database refused the last batch: the next one waits."""
        return self._retry_at < inf

    def note_commit(self, next_due_ms: int | None) -> None:
        """A batch was committed. next_due_ms: of its result."""
        self._next_due_ms = next_due_ms
        self._retry_at = inf

    def note_refusal(self) -> None:
        """The database refused a batch: try again in STORAGE_RETRY_SECONDS."""
        self._retry_at = trio.current_time() + limits.STORAGE_RETRY_SECONDS
