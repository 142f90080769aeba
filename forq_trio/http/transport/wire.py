"""The bytes of one connection: a plain socket used directly, or any trio stream (TLS).

Plain sockets have a class of their own because trio's SocketStream spends several times the cost of the system calls on
checks that a connection with one reading and one writing task does not need.
"""

import select
import socket
from typing import Protocol

import trio

from forq_trio.model import limits

# How long sending the end of a TLS connection (close_notify) may take.
CLOSE_SECONDS = 1.0
# Linux reports that the peer has closed its side even while earlier bytes are still to be read.
_HUNG_UP = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class ConnectionLost(Exception):
    """The peer cannot be written to any more."""


class Wire(Protocol):
    """The interface of both classes. One task receives at a time and one sends; they may be different tasks."""

    async def receive(self, bytes_max: int, tries: int = 1) -> bytes:
        """Wait for bytes; b"" once the peer has closed or reset the connection. Cancelled, no byte is lost.

        tries: how often to try before waiting, where that may be quicker.
        """
        ...

    def send_now(self, data: bytes | memoryview) -> int:
        """Send what needs no wait, at most SEND_NOW_BYTES_MAX; returns its length. Raises ConnectionLost."""
        ...

    async def send_some(self, data: memoryview) -> int:
        """Wait until a part of `data` is sent; returns its length. Raises ConnectionLost.

        Cancelled, an unknown part has been sent.
        """
        ...

    async def send_all(self, data: bytes | memoryview) -> None:
        """Send everything. Raises ConnectionLost; cancelled, an unknown part has been sent."""
        ...

    @property
    def file_number(self) -> int:
        """The number of the socket's file."""
        ...

    def peer_closed(self) -> bool:
        """Whether the peer is known to have closed its side. Costs a system call; False if that cannot be seen."""
        ...

    def send_eof(self) -> None:
        """Tell the peer that nothing more will be sent, where the protocol can; receiving goes on."""
        ...

    async def close(self) -> None:
        """Release the connection. Does not wait for the peer."""
        ...


class SocketWire:
    """A connected, non-blocking TCP socket.

    There are two ways to receive: wait until the socket is readable, or let the other tasks run once and then try.
    Waiting costs two system calls more. Under load a try finds the next request there already; and for a lone client,
    whose next request follows each answer, a few tries take less time than waking the process. Which way is cheaper
    depends on the load. So this tries up to `tries` times as long as one of them succeeds; else it waits, and tries
    again at every RECEIVE_TRY_EVERY_WAITS-th wait.
    """

    __slots__ = ("_eager", "_waits", "socket")

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._eager = False
        self._waits = 0

    async def receive(self, bytes_max: int, tries: int = 1) -> bytes:
        try:
            if self._eager:
                for _ in range(tries):
                    await trio.lowlevel.checkpoint()
                    try:
                        return self.socket.recv(bytes_max)
                    except BlockingIOError:
                        continue
                self._eager = False
            while True:
                await trio.lowlevel.wait_readable(self.socket)
                self._waits += 1
                self._eager = self._waits % limits.RECEIVE_TRY_EVERY_WAITS == 0
                try:
                    return self.socket.recv(bytes_max)
                except BlockingIOError:
                    continue
        except OSError:
            return b""

    def send_now(self, data: bytes | memoryview) -> int:
        if len(data) > limits.SEND_NOW_BYTES_MAX:
            data = memoryview(data)[: limits.SEND_NOW_BYTES_MAX]
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ConnectionLost from error

    async def send_some(self, data: memoryview) -> int:
        while not (sent_bytes := self.send_now(data)):
            await trio.lowlevel.wait_writable(self.socket)
        return sent_bytes

    async def send_all(self, data: bytes | memoryview) -> None:
        remaining = memoryview(data)
        while True:
            remaining = remaining[self.send_now(remaining) :]
            if not remaining:
                return
            await trio.lowlevel.wait_writable(self.socket)

    @property
    def file_number(self) -> int:
        return self.socket.fileno()

    def peer_closed(self) -> bool:
        try:
            if not self.socket.recv(1, socket.MSG_PEEK):
                return True
        except BlockingIOError:
            return False
        except OSError:
            return True
        return _hung_up(self.socket.fileno())

    def send_eof(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    async def close(self) -> None:
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()

    def stream(self) -> trio.SocketStream:
        """The same socket as a trio stream; the wire must not be used any more."""
        return trio.SocketStream(trio.socket.from_stdlib_socket(self.socket))


def _hung_up(file_number: int) -> bool:
    """Whether the peer of a socket has closed its side, also behind bytes that were not read yet."""
    poll = select.poll()
    poll.register(file_number, _HUNG_UP)
    return bool(poll.poll(0))


class StreamWire:
    """A TLS stream."""

    __slots__ = ("stream",)

    def __init__(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        self.stream = stream

    async def receive(self, bytes_max: int, tries: int = 1) -> bytes:
        try:
            return bytes(await self.stream.receive_some(bytes_max))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def send_now(self, data: bytes | memoryview) -> int:
        return 0

    async def send_some(self, data: memoryview) -> int:
        portion = data[: limits.SEND_PORTION_BYTES]  # because TLS copies what it is given
        try:
            await self.stream.send_all(portion)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ConnectionLost from error
        return len(portion)

    async def send_all(self, data: bytes | memoryview) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[await self.send_some(remaining) :]

    @property
    def file_number(self) -> int:
        return self.stream.transport_stream.socket.fileno()

    def peer_closed(self) -> bool:
        return _hung_up(self.stream.transport_stream.socket.fileno())

    def send_eof(self) -> None:
        return

    async def close(self) -> None:
        with trio.move_on_after(CLOSE_SECONDS):
            await self.stream.aclose()


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
