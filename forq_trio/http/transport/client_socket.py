"""One client's socket: its bytes, its deadline, and the protocol that the client speaks.

The protocol is a state machine without I/O, made when the client's first bytes tell which one it is (http_socket.py).
The socket gives it the bytes that arrive, and sends what it makes. Nothing here waits: the poller calls when the
socket is ready.

Time-outs: the protocol sets `deadline`, a plain number (inf while an HTTP/1.1 handler works), and when it has passed
the server's reaper calls `expire`.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from forq_trio.http.transport.client_protocol import ClientProtocol
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.hang_ups import peer_closed
from forq_trio.http.transport.poller import READ, WRITE, Later
from forq_trio.http.transport.services import Services
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class ClientSocket(ABC):
    """A connected TCP socket. deadline: when to call `expire`, by trio's clock. is_closed: it has ended."""

    __slots__ = (
        "_client",
        "_connections",
        "_events",
        "_finishing",
        "_is_watched",
        "_protocol",
        "_services",
        "_socket",
        "_unsent",
        "deadline",
        "is_closed",
    )

    def __init__(
        self,
        services: Services,
        connected: socket.socket,
        client: str,
        connections: "OpenConnections[ClientSocket]",
    ) -> None:
        """client: the peer's IP address. It removes itself from `connections` when it has ended with its handlers."""
        self._services = services
        self._socket = connected
        self._client = client
        self._connections = connections
        self._protocol: ClientProtocol | None = None
        self._finishing = False
        self._is_watched = False
        self._unsent: list[memoryview] = []
        self._events = 0  # for which the poller waits
        self.is_closed = False
        self.deadline = services.now() + services.config.idle_seconds
        self._wait_for(READ)

    # Called by the server

    def expire(self) -> None:
        """The deadline has passed."""
        self.do(self._protocol.expire if self._protocol is not None else self.close)

    def finish(self) -> None:
        """Close after the next answer, whether its request is running or still to come."""
        self._finishing = True
        if self._protocol is not None:
            self.do(self._protocol.finish)

    def finish_idle(self) -> None:
        """Close at once if no request is running."""
        self.do(self._protocol.finish_idle if self._protocol is not None else self.close)

    def cut(self) -> None:
        """End at once, and cancel all that runs for it."""
        self.close()
        if self._protocol is not None:
            self._protocol.cancel()

    # Called by the protocol

    def show(self, holder: Holder) -> bool:
        """A request of this holder has come; False when the holder has too many connections."""
        return self._connections.show(self, holder)

    def send(self, data: bytes, more: bytes = b"") -> int:
        """Send `data`, and `more` behind it; returns how many bytes went at once, and `sent` is told of the others.

        Closes when the client turns out to be gone. Not to be called before all that was given earlier is sent.
        """
        sent_bytes = self._send_now(data)
        if sent_bytes < len(data):
            self._unsent.append(memoryview(data)[sent_bytes:])
        if more:
            self._unsent.append(memoryview(more))
        if self._unsent and not self.is_closed:
            self._wait_for(self._events | WRITE)
        return sent_bytes

    def peer_closed(self) -> bool:
        """Whether the client is known to have closed its side. Costs system calls; False if that cannot be seen."""
        return peer_closed(self._socket)

    def send_eof(self) -> None:
        """Tell the client that nothing more will be sent, where the protocol can; receiving goes on."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def receive_more(self) -> None:
        """The protocol wants bytes again."""
        self._wait_for(self._events | READ)

    def watch(self) -> None:
        """Until `unwatch`, close as soon as the client hangs up, although nothing is received."""
        self._is_watched = True
        if not self._events & READ and not self.is_closed:
            self._watch_unread()

    def unwatch(self) -> None:
        self._is_watched = False
        if not self.is_closed:
            self._services.poller.hang_ups.unwatch(self._socket)

    def later(self, kind: Later, step: Callable[[], None]) -> None:
        """Do something in a later pass of the loop."""
        self._services.poller.later(kind, partial(self.do, step))

    def do(self, step: Callable[[], None]) -> None:
        """Do something, unless the connection is closed. An unexpected exception is reported and ends it."""
        if self.is_closed:
            return
        try:
            step()
        except Exception as error:
            self._services.on_error(error)
            self.close()

    def close(self) -> None:
        """End: nothing more is sent or received. Does nothing the second time."""
        if self.is_closed:
            return
        self.is_closed = True
        self._services.poller.hang_ups.unwatch(self._socket)
        self._wait_for(0)
        self._end_stream()
        self._socket.close()
        self._unsent.clear()
        try:
            if self._protocol is not None:
                self._protocol.end()
        except Exception as error:
            self._services.on_error(error)
        finally:
            self.handler_ended()

    def handler_ended(self) -> None:
        """With the last handler of a closed connection nobody needs it any more."""
        if self.is_closed and (self._protocol is None or not self._protocol.works):
            self._protocol = None
            self._connections.remove(self)

    # The socket

    def _wait_for(self, events: int) -> None:
        if events != self._events:
            self._services.poller.wait_for(self._socket, self._events, events, self._ready)
            self._events = events

    def _ready(self, events: int) -> None:
        """The socket is ready: send one portion, receive once."""
        events &= self._events  # which may have changed since they were seen
        if events & WRITE:
            self.do(self._send_more)
        if events & READ:
            self.do(self._receive)

    def _receive(self) -> None:
        if self._protocol is not None and not self._protocol.wants_bytes:
            self._stop_receiving()
            return
        try:
            data = self._socket.recv(self._services.config.receive_chunk_bytes)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._take(data)

    def _take(self, data: bytes) -> None:
        """Give the protocol what has arrived; b"" at the end."""
        if self._protocol is not None:
            self._protocol.feed(data)
        elif data:
            self._detect(data)
        else:
            self.close()

    @abstractmethod
    def _detect(self, data: bytes) -> None:
        """Find out from its first bytes which protocol the client speaks, and call `_speak`."""
        ...

    def _speak(
        self, make: "Callable[[Services, ClientSocket, str], ClientProtocol]", received: bytes
    ) -> None:
        """The client speaks the protocol that `make` makes."""
        protocol = self._protocol = make(self._services, self, self._client)
        if self._finishing:
            protocol.finish()
        if received:
            protocol.feed(received)

    def _stop_receiving(self) -> None:
        """The client sends more than it may now, or has left. A watch goes on without reading."""
        self._wait_for(self._events & ~READ)
        if self._is_watched:
            self._watch_unread()

    def _watch_unread(self) -> None:
        if self.peer_closed():
            self.later(Later.END_OF_WAIT, self.close)
        else:
            self._services.poller.hang_ups.watch(self._socket, self.close)

    def _send_now(self, data: bytes | memoryview) -> int:
        """Send what needs no wait, at most SEND_NOW_BYTES_MAX; returns its length."""
        if len(data) > limits.SEND_NOW_BYTES_MAX:
            data = memoryview(data)[: limits.SEND_NOW_BYTES_MAX]
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close()
            return 0

    def _send_more(self) -> None:
        sent_bytes = self._send_now(self._unsent[0])
        if self.is_closed:
            return
        self._unsent[0] = self._unsent[0][sent_bytes:]
        if not self._unsent[0]:
            del self._unsent[0]
        if not self._unsent:
            self._wait_for(self._events & ~WRITE)
        assert self._protocol is not None
        self._protocol.sent(sent_bytes)

    @abstractmethod
    def _end_stream(self) -> None:
        """Say good-bye before the socket is closed, where there is something to say."""
        ...
