"""The threads of handlers that are plain functions.

They never keep the process: a worker that has stopped waiting for a handler has done all it can. Those of trio are
daemons. Those of anyio under asyncio are not, and Python waits for them at its end, so there we have our own.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

R = TypeVar("R")


class _Task(NamedTuple):
    call: Callable[[], Any]
    context: Context
    answer: "asyncio.Future[Any]"


_Inbox = SimpleQueue[_Task | None]  # None ends the thread


class HandlerThreads:
    """Threads for one event loop, at most `most` at once beside those that were left alone."""

    def __init__(self, most: int) -> None:
        self._limiter = anyio.CapacityLimiter(most)
        self._idle: list[_Inbox] = []  # of threads that have nothing to do; under asyncio
        self._closed = False

    async def run(self, call: Callable[[], R]) -> R:
        """What `call` returns, in a thread; it must not raise. Cancelled, it leaves the thread alone."""
        if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
            return await anyio.to_thread.run_sync(call, limiter=self._limiter, abandon_on_cancel=True)
        async with self._limiter:
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[R] = loop.create_future()
            inbox = self._idle.pop() if self._idle else self._start(loop)
            inbox.put(_Task(call, copy_context(), answer))
            return await answer

    def close(self) -> None:
        """End the threads that have nothing to do now, and each other one when its call returns."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _start(self, loop: asyncio.AbstractEventLoop) -> _Inbox:
        inbox: _Inbox = SimpleQueue()
        threading.Thread(target=self._work, args=(inbox, loop), name="forq handler", daemon=True).start()
        return inbox

    def _work(self, inbox: _Inbox, loop: asyncio.AbstractEventLoop) -> None:
        with _known_to_anyio(loop):
            while (task := inbox.get()) is not None:
                task.context.run(_leave_loop)
                result = task.context.run(task.call)
                try:
                    loop.call_soon_threadsafe(self._end, inbox, task.answer, result)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    return
                del task, result  # they would live until the next call

    def _end(self, inbox: _Inbox, answer: "asyncio.Future[Any]", result: Any) -> None:
        if self._closed:
            inbox.put(None)
        else:
            self._idle.append(inbox)
        if not answer.done():
            answer.set_result(result)


def _known_to_anyio(loop: asyncio.AbstractEventLoop) -> AbstractContextManager[object]:
    """In the body, anyio.from_thread calls functions in `loop`, as in a thread of anyio's own.

    No public function offers that. Should anyio no longer have this one, handlers do without anyio.from_thread.
    """
    try:
        from anyio._core._eventloop import claim_worker_thread, get_async_backend
    except ImportError:
        return nullcontext()
    return claim_worker_thread(get_async_backend("asyncio"), loop)


def _leave_loop() -> None:
    """Note, in the context of a call, that no event loop runs in its thread; the context is a copy of the caller's."""
    if (sniffio := sys.modules.get("sniffio")) is not None:
        sniffio.current_async_library_cvar.set(None)
