"""A job that works at an interval, and earlier when it is nudged."""

from collections.abc import Awaitable, Callable

import trio


class Periodic:
    """Calls `work` every `interval_seconds`; `nudge` makes the next call happen at once.

    name: of the job in logs. nudged: start with a call instead of a wait.
    """

    def __init__(
        self, name: str, interval_seconds: float, work: Callable[[], Awaitable[None]], *, nudged: bool = False
    ) -> None:
        self.name = name
        self.interval_seconds = interval_seconds
        self._work = work
        self._nudged = trio.Event()
        if nudged:
            self._nudged.set()

    def nudge(self) -> None:
        """Call `work` now instead of after the interval. Several nudges before a call count as one."""
        self._nudged.set()

    async def run(self) -> None:
        while True:
            with trio.move_on_after(self.interval_seconds):
                await self._nudged.wait()
            # A new event before the work: a nudge that comes during the work is not lost.
            self._nudged = trio.Event()
            try:
                await self._work()
            except Exception:
                # The work is still to be done: a restarted job does it at once.
                self._nudged.set()
                raise
