"""What the byte streams of both clients do without waiting: sockets that do not block, TLS over memory, routes."""

import socket
import ssl
from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

from forq_trio.client.address import Address
from forq_trio.client.http1 import basic
from forq_trio.client.proxies import Proxy
from forq_trio.wire.limits import CLIENT_RECEIVE_BYTES

CONNECT_SECONDS = 5.0
HANDSHAKE_SECONDS = 10.0
PROXY_SECONDS = 30.0

Sockets = set[socket.socket]


class Route(NamedTuple):
    """The way to a server. context: of TLS, for the server and for a proxy."""

    address: Address
    proxy: Proxy | None
    context: ssl.SSLContext | None


class Stream(ABC):
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


class TcpSocket(Stream):
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


StreamT = TypeVar("StreamT", bound=Stream)


class TlsSession(Stream, Generic[StreamT]):
    """TLS over another stream."""

    def __init__(self, below: StreamT, context: ssl.SSLContext, host: str) -> None:
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def receive_now(self) -> bytes | None:
        """What is there; b"" at the end, None if nothing is there."""
        while (data := self._below.receive_now()) is not None:
            self._feed(data)
            if not data:
                break
        try:
            return self._tls.read(CLIENT_RECEIVE_BYTES)
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return b""

    def close(self) -> None:
        """Close the socket without TLS's close_notify: after a fork another process may use the same session."""
        self._below.close()

    def _feed(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()


def proxy_headers(proxy: Proxy) -> tuple[tuple[str, str], ...]:
    """What a proxy has to be told beside a request."""
    return (("Proxy-Authorization", basic(proxy.address)),) if proxy.address.credentials else ()
