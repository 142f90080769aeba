"""Repeats a call only if it certainly did nothing before, and for a bounded time.

A call did nothing when the connection could not be made, and when the server answered 503 with Retry-After: it refused
before doing anything. After a connection that breaks later, the message may be stored.
"""

import time

from forq_trio.client.http1 import HttpAnswer

_FIRST_DELAY_SECONDS = 0.1
_DELAY_SECONDS_MAX = 5.0


class Retries:
    """The repetitions of one call. budget_seconds: of all waits together; 0 for none."""

    def __init__(self, budget_seconds: float) -> None:
        self._deadline = time.monotonic() + budget_seconds
        self._next_delay = _FIRST_DELAY_SECONDS

    def next_pause(self) -> float | None:
        """Seconds to wait before the next try, doubling each time; None when the budget is used up."""
        delay = self._next_delay
        self._next_delay = min(2 * delay, _DELAY_SECONDS_MAX)
        return self._within_budget(delay)

    def after_answer(self, answer: HttpAnswer) -> float | None:
        """Seconds to wait before the next try; None when the call is not to be repeated."""
        after = answer.header("Retry-After") or ""
        if answer.status != 503 or not (after.isascii() and after.isdigit()):
            return None
        # Zero would be a busy loop; the caller is not made to wait longer than our bound.
        delay = max(float(after), self._next_delay)
        return self._within_budget(delay) if delay <= _DELAY_SECONDS_MAX else None

    def _within_budget(self, delay: float) -> float | None:
        return delay if time.monotonic() + delay <= self._deadline else None
