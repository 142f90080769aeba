"""The byte streams of the asynchronous client: what they have in common, and TCP.

Sockets do not block; `aio_waits` waits for them.

`sync_streams.py` is generated from this file by script/blocking_client.py.
"""

import errno
import os
import socket
from abc import abstractmethod
from typing import Any

from forq_trio.client import aio_waits
from forq_trio.client.deadlines import Deadline
from forq_trio.client.streams import BaseStream, TcpSocket


class AsyncStream(BaseStream):
    """A stream that is open."""

    @abstractmethod
    async def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Send all of it. Raises OSError; TimeoutError when it is not taken in time."""
        ...

    @abstractmethod
    async def receive(self, deadline: Deadline) -> bytes:
        """What came; b"" at the end. Raises OSError; TimeoutError when nothing comes in time."""
        ...


class AsyncTcpStream(TcpSocket, AsyncStream):
    """A TCP connection."""

    async def connect(self, place: Any, seconds: float) -> None:
        """Connect to an address of `socket.getaddrinfo`. Raises OSError; TimeoutError after `seconds`."""
        error = self._socket.connect_ex(place)
        if error == errno.EINPROGRESS:
            await aio_waits.wait_writable(self._socket, Deadline(seconds, aio_waits.now))
            error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))

    async def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Send all of it. Raises OSError; TimeoutError when it is not taken in time."""
        while True:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
            deadline.extend_for(sent)
            await aio_waits.wait_writable(self._socket, deadline)

    async def receive(self, deadline: Deadline) -> bytes:
        """What came; b"" at the end. Raises OSError; TimeoutError when nothing comes in time."""
        while True:
            await aio_waits.wait_readable(self._socket, deadline)
            data = self.receive_now()
            if data is not None:
                return data
