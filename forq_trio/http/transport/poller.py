"""The actor that waits for all sockets of a server at once, and shares the event loop fairly among them.

A socket that is ready gets one call: it receives once, or sends one portion. After SOCKETS_READY_MAX calls all other
tasks run. What is to be done without waiting for a socket, for example to parse more of its bytes, is done in a later
pass of the loop (`later`): of each kind as much as others can wait for.
"""

import selectors
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from socket import socket

import trio

from forq_trio.http.transport.hang_ups import HangUps
from forq_trio.model import limits

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

Ready = Callable[[int], None]
"""Called with the events for which a socket is ready: READ, WRITE or both."""


class Later(IntEnum):
    """What is done in a later pass of the loop."""

    PORTION = 0  # parse, decrypt or send as much as a socket gives at once
    END_OF_WAIT = 1  # end a request whose client has left, which takes 0.1 ms
    HTTP2_FRAMES = 2  # parse a full portion: a millisecond, so one connection does it in each pass
    HANDSHAKE = 3  # of TLS: the same


class Poller:
    """Works only while `run` runs. What it calls neither raises nor waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[Later, deque[Callable[[], None]]] = {kind: deque() for kind in Later}
        self._has_waiting = trio.Event()
        self.hang_ups = HangUps()
        if self.hang_ups.epoll is not None:
            self._selector.register(self.hang_ups.epoll, READ, self._end_waits)

    def wait_for(self, connected: socket, before: int, events: int, ready: Ready) -> None:
        """From now on call `ready` for these events, 0 for none. before: for which it was called so far."""
        if not before:
            self._selector.register(connected, events, ready)
        elif events:
            self._selector.modify(connected, events, ready)
        else:
            self._selector.unregister(connected)

    def later(self, kind: Later, call: Callable[[], None]) -> None:
        """Call this in a later pass of the loop, behind all others of its kind."""
        self._waiting[kind].append(call)
        self._has_waiting.set()

    def end_wait(self, call: Callable[[], None]) -> None:
        """Call this, which ends a wait, in a later pass of the loop."""
        self.later(Later.END_OF_WAIT, call)

    async def run(self) -> None:
        """Wait and call until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._call_waiting)
            if self.hang_ups.epoll is None:
                nursery.start_soon(self.hang_ups.look, self.end_wait)
            await self._wait()

    def close(self) -> None:
        """Release what the system counts. All sockets are closed."""
        self._selector.close()
        self.hang_ups.close()

    async def _wait(self) -> None:
        """Wait for sockets. While there is work, looking again right away is cheaper than waiting, and quicker."""
        tries = 0
        while True:
            if await self._call_ready():
                tries = limits.RECEIVE_TRIES_MAX
            elif tries:
                tries -= 1
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._selector.fileno())

    async def _call_ready(self) -> bool:
        """Call for each socket that is ready now; returns whether one was."""
        ready = self._selector.select(0)
        for start in range(0, len(ready), limits.SOCKETS_READY_MAX):
            for key, events in ready[start : start + limits.SOCKETS_READY_MAX]:
                key.data(events)
            await trio.lowlevel.checkpoint()
        return bool(ready)

    def _end_waits(self, _: int) -> None:
        for call in self.hang_ups.take():
            self.end_wait(call)

    async def _call_waiting(self) -> None:
        at_once = {Later.PORTION: limits.SOCKETS_READY_MAX, Later.END_OF_WAIT: limits.WAITS_ENDED_MAX}
        while True:
            await self._has_waiting.wait()
            for kind, waiting in self._waiting.items():
                for _ in range(min(at_once.get(kind, 1), len(waiting))):
                    waiting.popleft()()
            if not any(self._waiting.values()):
                self._has_waiting = trio.Event()
