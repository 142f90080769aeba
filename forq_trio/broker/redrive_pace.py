"""The rate of a redrive: spreads moves evenly over time."""

import trio

from forq_trio.model import limits


class Pace:
    """Spreads moves over time: `wait` before each step of at most `step` messages, then `charge` how many it moved.

    In any span of time no more messages are moved than `rate_per_second` times its length, plus two steps.
    rate_per_second: None for no waiting. page: the largest step.
    """

    def __init__(self, rate_per_second: int | None, page: int) -> None:
        self._rate = rate_per_second
        self.step = page
        if rate_per_second is not None:
            self.step = min(page, max(1, rate_per_second // limits.REDRIVE_STEPS_PER_SECOND))
        self._free_at = trio.current_time()

    async def wait(self) -> None:
        """Return when the next step may be taken; always a checkpoint."""
        await trio.sleep_until(self._free_at)

    def charge(self, moved: int) -> None:
        """Set when the next step may be taken. A delay of up to one step's time is made up for, a longer one is not."""
        if self._rate is not None:
            earliest = trio.current_time() - self.step / self._rate
            self._free_at = max(self._free_at, earliest) + moved / self._rate
