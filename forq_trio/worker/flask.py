"""A Worker that is an extension of Flask: `FlaskWorker`. Needs the extra `flask` (docs/frameworks.md)."""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import isawaitable
from typing import Any

from forq_trio.model.extras import needing
from forq_trio.worker.app import Worker
from forq_trio.worker.handlers import Handler, WorkerSetupError

with needing("flask", "forq_trio.worker.flask"):
    from flask import Flask


class FlaskWorker(Worker):
    """A Worker that an application of Flask configures, and whose handlers run in the application's context.

    app: see `init_app`; None where a factory calls that later. options: those of `Worker` but source and secret.
    """

    def __init__(self, app: Flask | None = None, **options: Any) -> None:
        super().__init__(None, secret=None, **options)
        self._app: Flask | None = None
        self._in_context: set[Handler[Any, ..., Any]] = set()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Take FORQ_URL and FORQ_AUTH_SECRET from the application's configuration, else as `Worker` does.

        Opens nothing. The latest application counts: a factory may make several. Raises RuntimeError if the Worker is
        open, and TypeError for anything else than an application.
        """
        if not isinstance(app, Flask):
            raise TypeError(f"an application of Flask, whose configuration has FORQ_URL, not {app!r}")
        self._source.give(app.config.get("FORQ_URL"), app.config.get("FORQ_AUTH_SECRET"))
        self._app = app
        app.extensions["forq"] = self

    def _check(self) -> None:
        """Also put the handlers into the context: of those that a router brought, too, and before any is called."""
        super()._check()
        if self._app is None:
            raise WorkerSetupError("the worker has no application of Flask: call init_app")
        for handler in self.handlers.values():
            if handler not in self._in_context:
                self._in_context.add(handler)
                handler.function = self._entering(handler)

    def _entering(self, handler: Handler[Any, ..., Any]) -> Callable[..., Any]:
        """The handler's function inside of the context, which is left in the same thread: so may be what it closes."""
        function = handler.function
        if handler.in_thread:

            async def awaited(result: Awaitable[Any]) -> Any:
                with self._context():
                    return await result

            @wraps(function)
            def call(*given: Any) -> Any:
                with self._context():
                    result = function(*given)
                return awaited(result) if isawaitable(result) else result  # it runs on the event loop

            return call

        @wraps(function)
        async def call_async(*given: Any) -> Any:
            with self._context():
                return await function(*given)

        return call_async

    def _context(self) -> Any:
        assert self._app is not None
        return self._app.app_context()
