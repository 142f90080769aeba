"""Notices that a client hangs up whose bytes nobody reads meanwhile: while its request waits.

An epoll set reports that also behind unread bytes, and costs neither a task nor a read. On systems without epoll the
sockets are checked every LOOK_SECONDS.
"""

import select
import socket
from collections.abc import Callable

import trio

from forq_trio.model import limits

LOOK_SECONDS = 1.0
# Only Linux tells that the peer has closed its side behind bytes that were not read yet.
_EPOLLRDHUP = getattr(select, "EPOLLRDHUP", 0)
_ENDS = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class HangUps:
    """The watches of one server. epoll: the set to wait for; None if `look` has to run instead."""

    def __init__(self) -> None:
        self.epoll = select.epoll() if hasattr(select, "epoll") else None
        self._watched: dict[int, tuple[socket.socket, Callable[[], None]]] = {}

    def watch(self, connected: socket.socket, on_left: Callable[[], None]) -> None:
        """Call `on_left`, once, when the client has closed its side or is gone, until `unwatch`."""
        self._watched[connected.fileno()] = connected, on_left
        if self.epoll is not None:
            self.epoll.register(connected, _EPOLLRDHUP)

    def unwatch(self, connected: socket.socket) -> None:
        """The wait has ended. Does nothing for a socket that is not watched."""
        if self._watched.pop(connected.fileno(), None) is not None and self.epoll is not None:
            self.epoll.unregister(connected)

    def take(self) -> list[Callable[[], None]]:
        """Stop watching clients that are found to have left, some of them; returns what to call."""
        assert self.epoll is not None
        return [self._left(number) for number, _ in self.epoll.poll(0, limits.WAITS_ENDED_MAX)]

    async def look(self, end_wait: Callable[[Callable[[], None]], None]) -> None:
        """Look at each client every LOOK_SECONDS, until cancelled. end_wait: called with what to call."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            for number, (connected, _) in list(self._watched.items()):
                if peer_closed(connected):
                    end_wait(self._left(number))

    def _left(self, number: int) -> Callable[[], None]:
        connected, on_left = self._watched[number]
        self.unwatch(connected)
        return on_left

    def close(self) -> None:
        """Release the set."""
        if self.epoll is not None:
            self.epoll.close()


def peer_closed(connected: socket.socket) -> bool:
    """Whether the peer of a socket is known to have closed its side, also behind bytes that were not read yet.

    Mostly there are none, and one system call tells.
    """
    try:
        if not connected.recv(1, socket.MSG_PEEK):
            return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    poll = select.poll()
    poll.register(connected, _ENDS)
    return bool(poll.poll(0))
