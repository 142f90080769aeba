"""Wakes the writer without a call: at the next due time, at the deadline of a parked receiver, or to try again.

There is one timer, which is only ever moved to an earlier time. If it fires too early, the writer finds nothing to do
and sets it again.
"""

from collections.abc import Callable
from math import inf

import trio

from forq_trio.model import limits
from forq_trio.model.clock import Clock


class DueTimer:
    """The writer's timer, and what is known about work without calls. `run` is its task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # As of the last commit; None if nothing will be due.
        self._next_due_ms: int | None = clock.now_ms()
        self._retry_at = inf  # on trio's clock; finite after a batch that the database refused
        self.is_forced = False  # run a batch although nothing is known to be due
        self._scope = trio.CancelScope()

    async def run(self, wake: Callable[[], None]) -> None:
        """Sleep until the time that was `set`, call `wake`, and start over. Runs until cancelled."""
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
            # The wall clock may be set while we sleep, so it is read again now and then. That runs no query.
            wake_at = min(wake_at, trio.current_time() + min(due_seconds, limits.CLOCK_CHECK_SECONDS_MAX))
        if wake_at < self._scope.deadline:
            self._scope.deadline = wake_at

    def is_due(self) -> bool:
        """Whether there is work without calls: expired timers, or a batch to try again."""
        if self._retry_at < inf:
            return trio.current_time() >= self._retry_at
        return self.is_forced or (self._next_due_ms is not None and self._next_due_ms <= self._clock.now_ms())

    @property
    def retries(self) -> bool:
        """Whether the database refused the last batch, so that the next one has to wait."""
        return self._retry_at < inf

    def note_commit(self, next_due_ms: int | None) -> None:
        """Note that a batch was committed. next_due_ms: of its result."""
        self._next_due_ms = next_due_ms
        self._retry_at = inf

    def note_refusal(self) -> None:
        """Note that the database refused a batch: try again in STORAGE_RETRY_SECONDS."""
        self._retry_at = trio.current_time() + limits.STORAGE_RETRY_SECONDS
