"""Calls of a handler: through the middleware, on the event loop or in a thread."""

import inspect
import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from forq_trio.worker.handlers import Handler, Middleware
from forq_trio.worker.jobs import Run
from forq_trio.worker.threads import HandlerThreads

if TYPE_CHECKING:
    from forq_trio.worker.processes import ProcessPool

R = TypeVar("R")

logger = logging.getLogger("forq_trio.worker")

STOP_SECONDS = 2.0
"""How long a thread whose handler calls `Job.check` is waited for, once handlers are cancelled."""


class HandlerCalls:
    """Calls a handler, in at most as many threads as its concurrency if it is a plain function.

    state: `state` of its jobs. pool: the processes of a handler with `pool`.
    """

    def __init__(
        self,
        handler: Handler[Any, ..., Any],
        middleware: Sequence[Middleware],
        state: Any = None,
        pool: "ProcessPool | None" = None,
    ) -> None:
        self.overlapped = True  # whether a call has begun beside another one, since somebody set it to False
        self._under_way = 0
        self._handler = handler
        self._middleware = tuple(middleware)
        self._state = state
        self._pool = pool
        self._threads = HandlerThreads(handler.options.concurrency)
        self._thread_scopes: dict[anyio.CancelScope, Run] = {}  # of calls that run in threads

    async def prepare(self) -> None:
        """Wait until the handler can be called. Raises ProgramEnds if its processes cannot import it."""
        if self._pool is not None:
            await self._pool.prepare()

    def abandon_threads(self) -> None:
        """Stop waiting for handlers that run in threads; at the first call soon, for those that have called `check`."""
        for scope, run in tuple(self._thread_scopes.items()):
            if math.isinf(scope.deadline) and any(job.lease.checked for job in run.jobs):
                scope.deadline = anyio.current_time() + STOP_SECONDS
                for job in run.jobs:
                    job.lease.stops = True
            else:
                scope.cancel()

    def close(self) -> None:
        """End the threads, each when its handler returns."""
        self._threads.close()

    async def call(self, run: Run, payloads: list[Any]) -> object:
        """What the handler returned for the jobs of a run. Raises what it raises."""
        self.overlapped = self.overlapped or self._under_way > 0
        self._under_way += 1
        for job in run.jobs:
            job.state = self._state
        try:
            return await self._through_middleware(run, payloads)
        finally:
            self._under_way -= 1

    async def _through_middleware(self, run: Run, payloads: list[Any]) -> object:
        if not self._middleware:
            return await self._call_function(run, payloads)
        first = run.jobs[0]

        async def call_next(index: int) -> object:
            if index == len(self._middleware):
                return await self._call_function(run, payloads)
            return await self._middleware[index](first, lambda: call_next(index + 1))

        return await call_next(0)

    async def _call_function(self, run: Run, payloads: list[Any]) -> object:
        handler = self._handler
        given: list[Any] = [payloads, run.jobs] if handler.options.batch else [payloads[0], run.jobs[0]]
        arguments = given if handler.takes_job else given[:1]
        if self._pool is not None:
            return await self._pool.call(arguments, run)
        if not handler.in_thread:
            return await handler.function(*arguments)
        for result in await self._call_in_thread(run, arguments):
            return (
                await result if inspect.isawaitable(result) else result
            )  # a plain function around an async one
        return None

    async def _call_in_thread(self, run: Run, arguments: list[Any]) -> list[object]:
        """The result in a list; an empty list if the worker no longer waits for the thread. Raises the handler's error.

        Nothing but its own `Job.check` can stop a thread, so its slot stays busy until it ends: a lost lease only
        refuses its result.
        """
        run.in_thread = True

        def call() -> tuple[list[object], BaseException | None]:
            """Its error is returned, so that it does not get the frames of the libraries that run the thread."""
            failure = None
            results = []
            try:
                results = [self._handler.function(*arguments)]
            except BaseException as error:  # noqa: ASYNC103  it is raised where the thread was waited for
                failure = error
            return results, failure

        with anyio.CancelScope(shield=True) as scope:
            self._thread_scopes[scope] = run
            try:
                results, error = await self._run_in_time(run, call)
            finally:
                del self._thread_scopes[scope]
            if error is None:
                return results
            try:
                raise error
            finally:
                del error  # its traceback has this frame: no cycle is left for the garbage collector
        for job in run.jobs:  # their thread goes on: nobody else gets them before the lease ends
            logger.error("%s: %s is left to its thread, until its lease ends", self._handler.queue, job.id)
            job.lease.lost = True
        return []

    async def _run_in_time(self, run: Run, call: Callable[[], R]) -> R:
        """The result of a call in a thread, which is told when its time is over."""
        if math.isinf(run.timeout_at):
            return await self._threads.run(call)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.tell_of_timeout)
            result = await self._threads.run(call)
            tasks.cancel_scope.cancel()
        return result
