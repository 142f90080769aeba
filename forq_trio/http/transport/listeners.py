"""Opens the sockets on which a server listens."""

import socket

import trio

from forq_trio.model import limits


def listening_socket(listener: trio.SocketListener) -> socket.socket:
    """Take the plain socket out of a trio listener."""
    taken = socket.socket(fileno=listener.socket.detach())
    taken.setblocking(False)
    return taken


async def open_listeners(host: str, port: int) -> list[socket.socket]:
    """Bind and listen on every address of `host`; raises OSError if one of them fails.

    host "": every interface of the machine.
    port 0: the system chooses, and only the first address is used, so that there is one port.
    """
    listeners = await trio.open_tcp_listeners(port, host=host or None, backlog=limits.ACCEPT_BACKLOG)
    if port == 0:
        for extra in listeners[1:]:
            await extra.aclose()
        listeners = listeners[:1]
    return [listening_socket(listener) for listener in listeners]
