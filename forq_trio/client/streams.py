"""What the byte streams of both clients do without waiting: sockets that do not block."""

import socket
from abc import ABC, abstractmethod
from typing import TypeVar

from forq_trio.model.bounds.client import CLIENT_RECEIVE_BYTES

CONNECT_SECONDS = 5.0
HANDSHAKE_SECONDS = 10.0
PROXY_SECONDS = 30.0

Sockets = set[socket.socket]


class BaseStream(ABC):
    """What streams have in common."""

    @abstractmethod
    def receive_now(self) -> bytes | None:
        """What is there; b"" at the end, None if nothing is there."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket."""

    def is_usable(self) -> bool:
        """True if another request may be sent: the server neither closed it nor sent anything."""
        try:
            return self.receive_now() is None
        except OSError:
            return False


StreamT = TypeVar("StreamT", bound=BaseStream)


class TcpSocket(BaseStream):
    """A TCP connection. sockets: all that are open, with this one as long as it is."""

    def __init__(self, sock: socket.socket, sockets: Sockets) -> None:
        self._socket = sock
        self._sockets = sockets
        sockets.add(sock)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive_now(self) -> bytes | None:
        """What is there; b"" at the end, None if nothing is there."""
        try:
            return self._socket.recv(CLIENT_RECEIVE_BYTES)
        except BlockingIOError:
            return None

    def close(self) -> None:
        self._sockets.discard(self._socket)
        self._socket.close()
