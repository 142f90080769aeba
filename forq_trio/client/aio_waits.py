"""How the asynchronous client waits. `sync_waits.py` has the same names for the blocking one, written by hand."""

import socket
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled as checkpoint_if_cancelled

from forq_trio.client.deadlines import Deadline


class Signal:
    """A flag that can be waited for."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until it is set; False if it is not set within `seconds`."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        return self._event.is_set()


async def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
    """The addresses of a host, as `socket.getaddrinfo` gives them. Raises OSError and UnicodeError."""
    return await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def now() -> float:
    """Seconds of a clock that never goes back: the event loop's."""
    return anyio.current_time()


async def wait_readable(sock: socket.socket, deadline: Deadline) -> None:
    """Wait until there is something to receive. Raises TimeoutError at the deadline."""
    with anyio.move_on_after(deadline.left()):
        await anyio.wait_readable(sock)
        return
    raise deadline.timed_out()


async def wait_writable(sock: socket.socket, deadline: Deadline) -> None:
    """Wait until something can be sent. Raises TimeoutError at the deadline."""
    with anyio.move_on_after(deadline.left()):
        await anyio.wait_writable(sock)
        return
    raise deadline.timed_out()
