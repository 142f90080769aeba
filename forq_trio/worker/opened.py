"""What a worker has while it is open, and how threads reach it there."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from functools import partial
from typing import Any, TypeAlias

from forq_trio.worker.pools import Pools
from forq_trio.worker.source import Source

IN_LOOP = "this would block the event loop that runs here: use `await` with "
SENDS = "`send` or `later`"
CLOSED = "the worker was closed while a thread waited for it"
LOOK_SECONDS = 1.0
"""How often a thread that waits looks whether the event loop is closed: it does not tell those who wait."""

Call: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


class Opened:
    """An open source, and the event loop in which it was opened."""

    def __init__(self, asking: Source, sending: Source) -> None:
        self.asking = asking  # the source as the worker asks it, which repeats its calls itself
        self.sending = sending  # the same as handlers send to it
        self.state: Any = None  # what the lifespan yields
        self.pools: Pools | None = None  # for all of its runs; None if each has pools of its own
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._run = _calls_here()

    def call(self, function: Call) -> Any:
        """The result of an async function, which is called in the event loop. For other threads.

        Raises RuntimeError in an event loop, also in another one than the worker's: it would be blocked.
        """
        refuse_in_event_loop()
        if threading.get_ident() == self._thread:  # no task, but a callback of its loop
            raise RuntimeError(IN_LOOP + SENDS)
        return self._run(function)

    def check_event_loop(self, instead: str) -> None:
        """Raise RuntimeError in another event loop than that in which it was opened: a source belongs to one.

        instead: what the caller may do.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"the worker is open in another event loop: {instead}")

    @property
    def is_here(self) -> bool:
        """False in a process that was forked since: there it is not open."""
        return self._process == os.getpid()


def refuse_in_event_loop(instead: str = SENDS) -> None:
    """Raise RuntimeError in an event loop's thread. instead: what may be awaited there."""
    if _trio_here() is not None or _running_loop() is not None:
        raise RuntimeError(IN_LOOP + instead)


def _calls_here() -> Callable[[Call], Any]:
    """What runs async functions in the current event loop, for other threads, with the context of their caller."""
    if (trio := _trio_here()) is not None:
        return partial(trio.from_thread.run, trio_token=trio.lowlevel.current_trio_token())
    return partial(_call_in, asyncio.get_running_loop())


def _call_in(loop: asyncio.AbstractEventLoop, function: Call) -> Any:
    """The result of an async function, for another thread. Raises RuntimeError if the loop closes before it has run."""
    called = function()
    try:
        future = asyncio.run_coroutine_threadsafe(called, loop)
        while not wait([future], LOOK_SECONDS).done:
            if loop.is_closed() and not future.done():
                raise RuntimeError(CLOSED)
    except RuntimeError:
        called.close()  # nobody else does
        raise
    return future.result()


def _trio_here() -> Any:
    """The module, if this is a task of trio: then it is imported. Else None."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
