"""When a call is made again: only if it certainly did nothing the first time, and for a bounded time.

That is so when the connection could not be made, and when the server answered 503 with Retry-After, with
which it says that it refused before doing anything. A connection that breaks later proves nothing: the
message may be stored.
"""

import time

import httpx

_FIRST_DELAY_SECONDS = 0.1
_DELAY_SECONDS_MAX = 5.0


class Retries:
    """The repetitions of one call. `budget_seconds`: how long all waiting together may take; 0 means none."""

    def __init__(self, budget_seconds: float) -> None:
        self._deadline = time.monotonic() + budget_seconds
        self._next_delay = _FIRST_DELAY_SECONDS

    def next_pause(self) -> float | None:
        """Seconds to wait before the next try, doubling each time; None when the budget is used up."""
        delay = self._next_delay
        self._next_delay = min(2 * delay, _DELAY_SECONDS_MAX)
        return self._within_budget(delay)

    def after_answer(self, response: httpx.Response) -> float | None:
        """Seconds to wait before the next try; None when the answer is to be taken as it is."""
        after = response.headers.get("Retry-After", "")
        if response.status_code != 503 or not (after.isascii() and after.isdigit()):
            return None
        # Zero would be a busy loop; what is longer than our bound is not worth holding the caller for.
        delay = max(float(after), self._next_delay)
        return self._within_budget(delay) if delay <= _DELAY_SECONDS_MAX else None

    def _within_budget(self, delay: float) -> float | None:
        return delay if time.monotonic() + delay <= self._deadline else None
