"""Runs the handler of one request: in place if the request allows that (in_place.py), else in a task of its own."""

from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import trio

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.services import Services
from forq_trio.in_place import Awaited, TaskRequired, run_until_paused


class RunningHandler:
    """The handler of one request while it runs.

    ended: called once, unless `start` has returned a response: with the response, or with None if the handler was
    cancelled. It must not wait.
    """

    __slots__ = (
        "_awaited",
        "_context",
        "_ended",
        "_is_cancelled",
        "_request",
        "_running",
        "_scope",
        "_services",
    )

    def __init__(
        self, services: Services, request: Request, ended: Callable[[Response | None], None]
    ) -> None:
        self._services = services
        self._request = request
        self._ended = ended
        self._is_cancelled = False
        self._running: Coroutine[Any, Any, Response] | None = None  # in place
        self._context: Context | None = None  # the variables that it sets
        self._awaited: Awaited | None = None  # what it waits for
        self._scope: trio.CancelScope | None = None  # of its task

    def start(self) -> Response | None:
        """Begin; returns the response if the handler did not have to wait."""
        if not self._request.in_place:
            self._start_task()
            return None
        self._running = self._services.handler(self._request)
        self._context = copy_context()
        return self._run_in_place()

    def cancel(self) -> None:
        """End the handler where it waits. A call that the writer has taken is executed nevertheless."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()
        elif self._awaited is not None:
            self._awaited.abandon()
            self._awaited = None
            self._close()
            self._end(None)

    def _run_in_place(self) -> Response | None:
        """Run the handler until it waits or has a response, which is returned."""
        assert self._running is not None
        assert self._context is not None
        try:
            awaited = self._context.run(run_until_paused, self._running)
        except StopIteration as end:
            return self._guarded(end.value)
        except TaskRequired:
            self._start_task()
            return None
        except Exception as error:
            return self._failed(error)
        self._awaited = awaited
        awaited.on_resolved = self._resume
        if self._is_cancelled:
            self.cancel()
        return None

    def _resume(self) -> None:
        """What the handler has waited for is there. The writer calls this behind a commit, so it raises nothing."""
        self._awaited = None
        try:
            response = self._run_in_place()
        except Exception as error:  # the server has stopped, and starts no task any more
            self._services.on_error(error)
            self._end(None)
        else:
            if response is not None:
                self._end(response)

    def _end(self, response: Response | None) -> None:
        try:
            self._ended(response)
        except Exception as error:
            self._services.on_error(error)

    def _close(self) -> None:
        assert self._running is not None
        assert self._context is not None
        try:
            self._context.run(self._running.close)
        except Exception as error:
            self._services.on_error(error)

    def _start_task(self) -> None:
        self._running = None
        scope = trio.CancelScope()
        if self._is_cancelled:
            scope.cancel()
        self._services.start_task(self._run)
        self._scope = scope

    async def _run(self) -> None:
        response = None
        try:
            assert self._scope is not None
            with self._scope:
                response = self._guarded(await self._services.handler(self._request))
        except Exception as error:  # also one beside a cancellation
            response = self._failed(error)
        finally:
            self._end(response)

    def _failed(self, error: Exception) -> Response:
        self._services.on_error(error)
        request = self._request
        return self._services.refuse(500, request.method, request.path, request.headers)

    def _guarded(self, response: Response) -> Response:
        """The response, with an `on_unsent` that raises nothing."""
        if response.on_unsent is not None:
            response.on_unsent = partial(self._services.undo, response.on_unsent)
        return response
