"""Notices that a client disconnects while its request waits: `Request.cancelled_on_disconnect` on HTTP/1.1.

Most long polls are answered at once, so starting a task for each would cost more than the request. A watch that is
opened is only registered; one task per server starts a watcher, `SETTLE_SECONDS` later, for each request that still
waits.

A disconnect comes behind all that the client has sent. So a watcher has to receive what is sent during the wait, and
when it may receive no more, a disconnect could not be noticed: then the wait ends, as if its time were over.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

import trio

SETTLE_SECONDS = 0.01


class DisconnectWatchers:
    """The watchers of one server. Watches work only while `run` runs."""

    def __init__(self) -> None:
        self._registered: dict[DisconnectWatch, None] = {}
        self._any_registered = trio.Event()

    def register(self, watch: "DisconnectWatch") -> None:
        self._registered[watch] = None
        self._any_registered.set()

    def unregister(self, watch: "DisconnectWatch") -> None:
        self._registered.pop(watch, None)

    async def run(self) -> None:
        """Start watchers until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._any_registered.wait()
                self._any_registered = trio.Event()
                await trio.sleep(SETTLE_SECONDS)
                self._start_watchers(nursery)

    def _start_watchers(self, nursery: trio.Nursery) -> None:
        """Start the watchers. A function of its own: no local variable refers to a watch while `run` waits."""
        registered, self._registered = self._registered, {}
        for watch in registered:
            watch.start(nursery)


class DisconnectWatch(AbstractAsyncContextManager[None]):
    """The watch of one connection, used again for each of its requests; not to be nested.

    watch: cuts the connection when the client disconnects, and returns when it can no longer notice that; when it is
    cancelled, no byte may be lost.
    """

    __slots__ = ("_scope", "_stopped", "_wait", "_watch", "_watchers")

    def __init__(self, watchers: DisconnectWatchers, watch: Callable[[], Awaitable[None]]) -> None:
        self._watchers = watchers
        self._watch = watch
        self._scope: trio.CancelScope | None = None
        self._wait = trio.CancelScope()
        self._stopped = trio.Event()

    def open(self) -> Self:
        return self

    async def __aenter__(self) -> None:
        self._wait = trio.CancelScope()
        self._wait.__enter__()
        self._watchers.register(self)

    def start(self, nursery: trio.Nursery) -> None:
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()
        nursery.start_soon(self._run, self._scope, self._wait, self._stopped)

    async def _run(self, scope: trio.CancelScope, wait: trio.CancelScope, stopped: trio.Event) -> None:
        try:
            with scope:
                await self._watch()
                wait.cancel()
        finally:
            stopped.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._watchers.unregister(self)
        scope, self._scope = self._scope, None
        if scope is not None:
            # The watcher reads the same socket as the connection: it must end before the connection goes on.
            scope.cancel()
            with trio.CancelScope(shield=True):
                await self._stopped.wait()
        return self._wait.__exit__(kind, error, traceback)
