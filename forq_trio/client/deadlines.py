"""Bounds the time of an exchange as a whole, even if the peer sends a byte now and then.

- Each wait ends after a number of seconds in which nothing was received or could be sent.
- The head of an answer has to be whole within that number of seconds.
- The content gets these seconds again, and one more for each CLIENT_BYTES_PER_SECOND_MIN that came. So a page of an
  export may take as long as its length needs on a slow line, but an answer of one byte a second is broken off.
"""

from collections.abc import Callable

from forq_trio.model.bounds.client import CLIENT_BYTES_PER_SECOND_MIN


class Deadline:
    """How long one part of an exchange may still take. now: seconds of a clock that never goes back."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._began_at = now()
        self._ends_at = self._began_at + seconds

    def left(self) -> float:
        """How many seconds a wait may take now. Raises TimeoutError if none are left."""
        seconds = min(self._seconds, self._ends_at - self._now())
        if seconds <= 0:
            raise self.timed_out()
        return seconds

    def extend_for(self, byte_count: int) -> None:
        """Allow more time, because this many bytes of content were received or sent."""
        self._ends_at += byte_count / CLIENT_BYTES_PER_SECOND_MIN

    def renew(self) -> None:
        """Start over for the next part of the exchange."""
        self._ends_at = self._now() + self._seconds

    def timed_out(self) -> TimeoutError:
        """The error to raise when a wait has used up the time."""
        return TimeoutError(f"timed out after {self._now() - self._began_at:.3g} s")
