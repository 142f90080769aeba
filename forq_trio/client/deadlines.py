"""How long a client waits in an exchange: bounded as a whole, also for a peer that sends a byte now and then.

- Nothing may come, or be taken, for so many seconds: that ends each wait.
- The head of an answer has those seconds in all, whatever comes before it is whole.
- Content has them once more, and one second for each CLIENT_BYTES_PER_SECOND_MIN that came. So a page of an export may
  take as long as its length needs on a slow line, and an answer of one byte a second ends.
"""

from collections.abc import Callable

from forq_trio.wire.limits import CLIENT_BYTES_PER_SECOND_MIN


class Deadline:
    """How long one part of an exchange may still take. now: seconds of a clock that never goes back."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._began_at = now()
        self._ends_at = self._began_at + seconds

    def left(self) -> float:
        """How many seconds a wait may take now. Raises TimeoutError where there are none."""
        seconds = min(self._seconds, self._ends_at - self._now())
        if seconds <= 0:
            raise self.timed_out()
        return seconds

    def extend_for(self, byte_count: int) -> None:
        """So many bytes of content came, or were taken."""
        self._ends_at += byte_count / CLIENT_BYTES_PER_SECOND_MIN

    def renew(self) -> None:
        """The next part begins."""
        self._ends_at = self._now() + self._seconds

    def timed_out(self) -> TimeoutError:
        """The error of a wait that took all that was left."""
        return TimeoutError(f"timed out after {self._now() - self._began_at:.3g} s")
