"""How the blocking client waits: the same names as in `aio_waits.py`.

A signal handler may set a signal and close sockets at any moment, also in the thread that waits for them. So there is
no lock here that a thread could hold meanwhile.
"""

import errno
import os
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from forq_trio.client.deadlines import Deadline


class Signal:
    """Something happened, or not yet."""

    def __init__(self) -> None:
        self._pending = threading.Lock()  # held until it happens
        self._pending.acquire()

    def set(self) -> None:
        with suppress(RuntimeError):  # it is set already
            self._pending.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is set; False if it is not after so long."""
        if not self._pending.acquire(timeout=max(seconds, 0.0)):
            return False
        self.set()
        return True


def checkpoint_if_cancelled() -> None:
    """Threads are not cancelled."""


def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
    """The addresses of a host, as of `socket.getaddrinfo`. Raises OSError and UnicodeError."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def now() -> float:
    """Seconds of a clock that never goes back."""
    return time.monotonic()


def wait_readable(sock: socket.socket, deadline: Deadline) -> None:
    """Raises TimeoutError if there is nothing to receive until then."""
    _wait(sock, deadline, reading=True)


def wait_writable(sock: socket.socket, deadline: Deadline) -> None:
    """Raises TimeoutError if nothing can be sent until then."""
    _wait(sock, deadline, reading=False)


def _wait(sock: socket.socket, deadline: Deadline, *, reading: bool) -> None:
    try:
        happened = _happened(sock, max(deadline.left(), 0.0), reading=reading)
    except ValueError:  # it was closed
        raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from None
    if not happened:
        raise deadline.timed_out()


def _happened(sock: socket.socket, seconds: float, *, reading: bool) -> bool:
    """Raises ValueError for a socket that was closed."""
    if not hasattr(select, "poll"):  # Windows, whose select takes sockets of any number
        sockets = [sock]
        found = select.select(sockets if reading else [], [] if reading else sockets, [], seconds)
        return bool(found[0] or found[1])
    poll = select.poll()
    poll.register(sock, select.POLLIN if reading else select.POLLOUT)
    return bool(poll.poll(seconds * 1_000))
