"""A job that works at an interval, and earlier when it is nudged."""

from collections.abc import Awaitable, Callable

import trio

from forq_trio.jobs.runs import Runs


class Periodic:
    """Calls `work` every `interval_seconds`; `nudge` makes the next call happen at once.

    name: of the job in logs. title: for people. work: returns its result in words, None for nothing to do.
    nudged: start with a call instead of a wait.
    """

    def __init__(
        self,
        name: str,
        interval_seconds: float,
        work: Callable[[], Awaitable[str | None]],
        *,
        title: str = "",
        nudged: bool = False,
    ) -> None:
        self.name = name
        self.interval_seconds = interval_seconds
        self.runs = Runs(name, title or name)
        self._work = work
        self._nudged = trio.Event()
        self._asked = trio.Event()
        if nudged:
            self._nudged.set()

    def nudge(self) -> None:
        """Call `work` now instead of after the interval. Several nudges before a call count as one."""
        self._nudged.set()

    async def run_now(self) -> None:
        """Nudge, and return when a call that begins from now on has ended, also if it failed. Raises Stopping."""
        self._asked.set()
        self.nudge()
        await self.runs.wait_for_next()

    async def run(self) -> None:
        while True:
            self.runs.next_at = trio.current_time() + self.interval_seconds
            with trio.move_on_after(self.interval_seconds):
                await self._nudged.wait()
            # New events before the work: a nudge that comes during the work is not lost.
            self._nudged, self._asked = trio.Event(), trio.Event()
            try:
                with self.runs.run() as outcome:
                    outcome.result = await self._work() or outcome.result
            except Exception:
                # The work is still to be done: a restarted job does it at once.
                self._nudged.set()
                raise

    async def pause(self, seconds: float) -> None:
        """Wait before a restart; `run_now` ends that."""
        self.runs.next_at = trio.current_time() + seconds
        with trio.move_on_after(seconds):
            await self._asked.wait()
