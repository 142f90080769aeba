"""A router: handlers that are written in a module of their own, and included by a Worker, which is one itself."""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from forq_trio.model.durations import Duration
from forq_trio.model.errors import CallerError
from forq_trio.model.messages.where import Wanted
from forq_trio.worker.handlers import (
    BatchHandler,
    Handler,
    HandlerOptions,
    Middleware,
    OnOptions,
    OnUnreadable,
    Pool,
    SendingWorker,
    WorkerSetupError,
)
from forq_trio.worker.retries import RetryOption

PayloadT = TypeVar("PayloadT")
P = ParamSpec("P")
R = TypeVar("R")


class Router:
    """Handlers and their middleware, without a source: `app.include(router, prefix="shop.")` makes them the Worker's.

    They send once they are included: until then `later` raises RuntimeError.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler[Any, ..., Any]] = {}  # by queue
        self._middleware: list[Middleware] = []
        self._included = False

    @overload
    def on(
        self, queue: str, *, batch: None = None, **options: Unpack[OnOptions]
    ) -> Callable[
        [Callable[Concatenate[PayloadT, P], R]], Handler[PayloadT, Concatenate[PayloadT, P], R]
    ]: ...

    @overload
    def on(
        self, queue: str, *, batch: int, **options: Unpack[OnOptions]
    ) -> Callable[
        [Callable[Concatenate[list[PayloadT], P], R]],
        BatchHandler[PayloadT, Concatenate[list[PayloadT], P], R],
    ]: ...

    def on(
        self,
        queue: str,
        *,
        concurrency: int = 10,
        retry: RetryOption = None,
        dead: type[Exception] | tuple[type[Exception], ...] = (),
        lease: Duration | None = None,
        timeout: Duration | None = None,
        batch: int | None = None,
        where: Wanted | None = None,
        weight: float = 1,
        pool: Pool | None = None,
        on_unreadable: OnUnreadable = "dead",
        keep_result: Duration | None = None,
    ) -> Callable[[Callable[..., Any]], Handler[Any, ..., Any]]:
        """Make the function below the handler of a queue: `async def f(mail: Mail, job: Job) -> None`.

        The annotation of its first parameter says how contents are read. A plain `def` runs in a thread.

        concurrency: how many run at once (1-1,000). retry: a `Backoff`; or the delays after each failed attempt, of
        which the failure after the last one is final; or a function of the attempt (from 1) and its error, which
        returns a delay, or None for no more attempts; or one of these for each exception type (the nearest class of an
        error counts), None for types that are final. It says how many attempts a message gets, whatever its queue says.
        None, or a type without one: the queue's back-off and attempts. dead: exceptions that are final at once. lease:
        None for the queue's; it is extended while the handler runs. timeout: how long until the handler is cancelled
        and the attempt has failed. (A duration is a timedelta, a text such as "5 min", or seconds.) batch: the handler
        takes a list of at most this many payloads (1-100), and a list of jobs. where: it gets only messages whose
        attributes have these values, as in `Broker.receive`. weight: the queue's share of the worker's `concurrency`.
        pool: "process" runs a plain `def` in processes, at most `concurrency` of them, which are killed where a handler
        is cancelled. on_unreadable: a message whose content does not fit becomes a dead letter at once, or has failed
        an attempt with `UnreadableContent`. keep_result: what the function returns is stored for so long, 7 days at
        most, for `Handler.result`; of a batch, what the list has for each message.

        Raises WorkerSetupError, with the handler's file and line, for an invalid option or function, for a second
        handler of the queue, and below an `include` of this router.
        """
        if not isinstance(queue, str):
            raise TypeError('write @app.on with the name of a queue: @app.on("emails")')
        options = HandlerOptions(
            concurrency=concurrency,
            retry=retry,
            dead=dead if isinstance(dead, tuple) else (dead,),
            lease=lease,
            timeout=timeout,
            batch=batch,
            where=where,
            weight=weight,
            pool=pool,
            on_unreadable=on_unreadable,
            keep_result=keep_result,
        )

        def register(function: Callable[..., Any]) -> Handler[Any, ..., Any]:
            kind: type[Handler[Any, ..., Any]] = Handler if batch is None else BatchHandler
            handler = kind(function, queue, options, self._sends(), self.check_queue)
            if self._included:
                raise handler.refuse("its router is included already: include it below its handlers")
            self._check_free(queue, handler)
            handler.around.append(self._middleware)
            self.handlers[queue] = handler
            return handler

        return register

    def middleware(self, function: Middleware) -> Middleware:
        """Call `function(job, call_next)` around every call of a handler; `await call_next()` goes on.

        It returns what `call_next` returned, or another outcome; what it raises fails the attempt. For a batch it gets
        the first job. The middleware that was registered first is the outermost; that of a router is inside that of
        the Worker, and only around the router's handlers.
        """
        if not inspect.iscoroutinefunction(function):
            raise TypeError("a middleware is an async function with a job and call_next")
        self._middleware.append(function)
        return function

    def include(self, router: "Router", *, prefix: str = "") -> None:
        """Take over the handlers of a router, with `prefix` before the names of their queues.

        Raises WorkerSetupError, with the handler's file and line, where a queue has a handler already or cannot have
        that name, then nothing is included; and if the router was included before.
        """
        if router is self or router._included or router._sends() is not None:
            raise WorkerSetupError("a router is included once, and a Worker is no router to include")
        if self._included:
            raise WorkerSetupError("this router is included already: include others in it before that")
        moved = {prefix + queue: handler for queue, handler in router.handlers.items()}
        for queue, handler in moved.items():
            try:
                self.check_queue(queue)
            except CallerError as error:
                raise handler.refuse(f"{queue!r}: {error}") from None
            self._check_free(queue, handler)
        router._included = True
        for queue, handler in moved.items():
            handler.queue = queue
            handler.sends = self._sends()
            handler.around.insert(0, self._middleware)
        self.handlers.update(moved)

    @staticmethod
    def check_queue(name: str) -> object:
        """Raise a CallerError if `name` cannot be the name of a queue: only a Worker knows, and the whole name."""
        return name

    def _sends(self) -> SendingWorker | None:
        """What handlers send with; None for a router that no Worker has included."""
        return None

    def _check_free(self, queue: str, handler: Handler[Any, ..., Any]) -> None:
        first = self.handlers.get(queue)
        if first is not None:
            raise handler.refuse(f"the queue {queue!r} has a handler: {first.name} at {first.place}")
