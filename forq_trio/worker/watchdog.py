"""Logs when a handler blocks the event loop, with the line where it is."""

import logging
import sys
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

logger = logging.getLogger("forq_trio.worker")

BEAT_SECONDS = 0.5
BLOCKED_LOOKS = 4


class Watchdog:
    """A thread that checks whether the event loop of `thread` still runs.

    It counts its own checks, not seconds: if other programs leave this process no processor time, the checks are late,
    too.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._looks = 0
        self._ended = threading.Event()

    def beat(self) -> None:
        """Note that the event loop runs."""
        self._looks = 0

    def end(self) -> None:
        self._ended.set()

    def watch(self) -> None:
        """Check until `end` is called."""
        while not self._ended.wait(BEAT_SECONDS):
            self.check_loop()

    def check_loop(self) -> None:
        """Log each time that the loop is blocked, once."""
        self._looks += 1
        if self._looks != BLOCKED_LOOKS:
            return
        frame = sys._current_frames().get(self._thread)
        where = "".join(traceback.format_stack(frame)[-3:]) if frame is not None else ""
        logger.error(
            "a handler has blocked the event loop for %g s: no heartbeat is sent meanwhile. Make it a plain `def`,"
            " which runs in a thread, or await what takes long. It is here:\n%s",
            BEAT_SECONDS * BLOCKED_LOOKS,
            where,
        )


@asynccontextmanager
async def watched(name: str, *, enabled: bool) -> AsyncIterator[None]:
    """Watch this thread's event loop while the body runs. enabled: False if the loop may run on a simulated clock."""
    if not enabled:
        yield
        return
    watchdog = Watchdog(threading.get_ident())
    thread = threading.Thread(target=watchdog.watch, name=f"{name} watchdog", daemon=True)
    thread.start()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_beat, watchdog)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
    finally:
        watchdog.end()


async def _beat(watchdog: Watchdog) -> None:
    while True:
        watchdog.beat()
        await anyio.sleep(BEAT_SECONDS)
