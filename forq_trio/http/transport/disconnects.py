"""Notices that a client disconnects while its request waits: `Request.cancelled_on_disconnect`.

Most long polls are answered at once, so a watch that is opened is only registered. The sockets of those that still wait
SETTLE_SECONDS later are put into an epoll set, which reports a close also behind unread bytes; so a wait
costs no task and reads nothing. On systems without epoll the sockets are checked every LOOK_SECONDS.

Ending a wait takes a tenth of a millisecond, and thousands of clients may leave at once: each pass of the loop ends
WAITS_ENDED_MAX of them.
"""

import select
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

import trio

from forq_trio.http.transport.wire import Wire
from forq_trio.model import limits

SETTLE_SECONDS = 0.01
LOOK_SECONDS = 1.0
_CLOSED = getattr(select, "EPOLLRDHUP", 0)


class DisconnectWatchers:
    """The watches of one server. They work only while `run` runs."""

    def __init__(self) -> None:
        self._registered: dict[DisconnectWatch, None] = {}
        self._any_registered = trio.Event()
        self._waiting: dict[int, DisconnectWatch] = {}
        self._ending: deque[Callable[[], None]] = deque()
        self._any_ending = trio.Event()
        self._epoll = select.epoll() if hasattr(select, "epoll") else None

    def register(self, watch: "DisconnectWatch") -> None:
        """Notice the disconnect of a watch from SETTLE_SECONDS on, until `unregister`."""
        self._registered[watch] = None
        self._any_registered.set()

    def unregister(self, watch: "DisconnectWatch") -> None:
        """The wait has ended."""
        if watch in self._registered:
            del self._registered[watch]
        elif self._waiting.get(watch.file_number) is watch:
            del self._waiting[watch.file_number]
            if self._epoll is not None:
                self._epoll.unregister(watch.file_number)

    def end_soon(self, end: Callable[[], None]) -> None:
        """Call `end`, which ends a wait, in this pass of the loop or a later one."""
        self._ending.append(end)
        self._any_ending.set()

    async def run(self) -> None:
        """Notice disconnects until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_waits)
                if self._epoll is not None:
                    nursery.start_soon(self._wait_for_ends)
                else:
                    nursery.start_soon(self._look_for_ends)
                while True:
                    await self._any_registered.wait()
                    self._any_registered = trio.Event()
                    await trio.sleep(SETTLE_SECONDS)
                    self._take_registered()
        finally:
            if self._epoll is not None:
                self._epoll.close()
                self._epoll = None

    def _take_registered(self) -> None:
        registered, self._registered = self._registered, {}
        for watch in registered:
            watch.file_number = watch.wire.file_number
            self._waiting[watch.file_number] = watch
            if self._epoll is not None:
                self._epoll.register(watch.file_number, _CLOSED)

    async def _wait_for_ends(self) -> None:
        """Wait for clients to close their side, and have their waits ended."""
        epoll = self._epoll
        assert epoll is not None
        while True:
            await trio.lowlevel.wait_readable(epoll.fileno())
            self._end_all(file_number for file_number, _ in epoll.poll(0, limits.WAITS_ENDED_MAX))

    async def _look_for_ends(self) -> None:
        while True:
            await trio.sleep(LOOK_SECONDS)
            self._end_all([number for number, watch in self._waiting.items() if watch.wire.peer_closed()])

    def _end_all(self, file_numbers: Iterable[int]) -> None:
        for file_number in file_numbers:
            watch = self._waiting.pop(file_number)
            if self._epoll is not None:
                self._epoll.unregister(file_number)
            self.end_soon(watch.on_left)

    async def _end_waits(self) -> None:
        while True:
            await self._any_ending.wait()
            await trio.lowlevel.checkpoint()
            for _ in range(min(limits.WAITS_ENDED_MAX, len(self._ending))):
                self._ending.popleft()()
            if not self._ending:
                self._any_ending = trio.Event()


class DisconnectWatch(AbstractAsyncContextManager[None]):
    """The watch of one connection, used again for each of its requests; not to be nested.

    on_left: ends the connection, whose client has left; may be called a moment after the wait.
    """

    __slots__ = ("_watchers", "file_number", "on_left", "wire")

    def __init__(self, watchers: DisconnectWatchers, wire: Wire, on_left: Callable[[], None]) -> None:
        self._watchers = watchers
        self.wire = wire
        self.on_left = on_left
        self.file_number = -1

    def open(self) -> Self:
        return self

    async def __aenter__(self) -> None:
        self._watchers.register(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watchers.unregister(self)
