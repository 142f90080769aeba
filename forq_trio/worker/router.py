"""A router: handlers that are written in a module of their own, and included by a Worker, which is one itself."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from forq_trio.model.errors import CallerError
from forq_trio.model.messages.where import Wanted
from forq_trio.worker.handlers import (
    Delays,
    Handler,
    HandlerOptions,
    Middleware,
    Pool,
    SendingWorker,
    WorkerSetupError,
)
from forq_trio.worker.kept_results import KeepFor

P = ParamSpec("P")
R = TypeVar("R")


class Router:
    """Handlers and their middleware, without a source: `app.include(router, prefix="shop.")` makes them the Worker's.

    They send once they are included: until then `later` raises RuntimeError.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler[..., Any]] = {}  # by queue
        self._middleware: list[Middleware] = []
        self._included = False

    def on(
        self,
        queue: str,
        *,
        concurrency: int = 10,
        retry: Delays | Mapping[type[Exception], Delays] | None = None,
        dead: type[Exception] | tuple[type[Exception], ...] = (),
        lease: float | None = None,
        timeout: float | None = None,
        batch: int | None = None,
        where: Wanted | None = None,
        weight: float = 1,
        pool: Pool | None = None,
        keep_result: KeepFor | None = None,
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Make the function below the handler of a queue: `async def f(mail: Mail, job: Job) -> None`.

        The annotation of its first parameter says how contents are read; a message whose content does not fit becomes a
        dead letter at once. A plain `def` runs in a thread.

        concurrency: how many run at once (1-1,000). retry: the seconds to wait after each failed attempt; the failure
        after the last wait is final. It may also be such a list for each exception type. None, or a type without a
        list: the queue's back-off and attempts. The queue's bound on attempts holds in any case. dead: exceptions that
        are final at once. lease: seconds, None for the queue's lease; it is extended while the handler runs. timeout:
        seconds after which the handler is cancelled and the attempt has failed. batch: the handler takes a list of at
        most this many payloads (1-100), and a list of jobs. where: it gets only messages whose attributes have these
        values, as in `Broker.receive`. weight: the queue's share of the worker's `concurrency`. pool: "process" runs a
        plain `def` in processes, at most `concurrency` of them, which are killed where a handler is cancelled.
        keep_result: what the function returns is kept for so long (seconds, "1h", a timedelta; 7 days at most), for
        `Handler.result`; of a batch, what the list has for each message.

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
            keep_result=keep_result,
        )

        def register(function: Callable[P, R]) -> Handler[P, R]:
            handler = Handler(function, queue, options, self._sends(), self.check_queue)
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

    def _check_free(self, queue: str, handler: Handler[..., Any]) -> None:
        first = self.handlers.get(queue)
        if first is not None:
            raise handler.refuse(f"the queue {queue!r} has a handler: {first.name} at {first.place}")
