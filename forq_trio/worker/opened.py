"""What a worker has while it is open, and how threads reach it there."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from forq_trio.worker.source import Source

IN_LOOP = "this would block the event loop that runs here: use `await` with "
SENDS = "`send` or `later`"

Call: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


class Opened:
    """An open source, and the event loop in which it was opened."""

    def __init__(self, asking: Source, sending: Source) -> None:
        self.asking = asking  # the source as the worker asks it, which repeats its calls itself
        self.sending = sending  # the same as handlers send to it
        self.state: Any = None  # what the lifespan yields
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._run = _calls_here()

    def call(self, function: Call) -> Any:
        """The result of an async function, which is called in the event loop. For other threads.

        Raises RuntimeError in the event loop's own thread.
        """
        if threading.get_ident() == self._thread:
            raise RuntimeError(IN_LOOP + SENDS)
        return self._run(function)

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
    loop = asyncio.get_running_loop()
    return lambda function: asyncio.run_coroutine_threadsafe(function(), loop).result()


def _trio_here() -> Any:
    """The module, if this is a task of trio: then it is imported. Else None."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
