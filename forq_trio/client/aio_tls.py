"""TLS of the asynchronous client.

`sync_tls.py` is generated from this file by script/blocking_client.py.
"""

import ssl
from collections.abc import Callable
from typing import TypeVar

from forq_trio.client import aio_waits
from forq_trio.client.aio_streams import AsyncStream
from forq_trio.client.deadlines import Deadline
from forq_trio.client.streams import HANDSHAKE_SECONDS
from forq_trio.client.tls import TlsSession
from forq_trio.model.bounds.client import CLIENT_RECEIVE_BYTES

ResultT = TypeVar("ResultT")


class AsyncTlsStream(TlsSession[AsyncStream], AsyncStream):
    """TLS over another stream."""

    async def handshake(self) -> None:
        """Agree with the server, and check who it is. Raises OSError, of which ssl.SSLError is one."""
        await self._run(self._tls.do_handshake, Deadline(HANDSHAKE_SECONDS, aio_waits.now))

    async def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Send all of it. Raises OSError; TimeoutError when it is not taken in time."""
        await self._run(lambda: self._tls.write(data), deadline)

    async def receive(self, deadline: Deadline) -> bytes:
        """What came; b"" at the end. Raises OSError; TimeoutError when nothing comes in time."""
        try:
            return await self._run(lambda: self._tls.read(CLIENT_RECEIVE_BYTES), deadline)
        except ssl.SSLZeroReturnError:
            return b""

    async def _run(self, step: Callable[[], ResultT], deadline: Deadline) -> ResultT:
        """A step of OpenSSL, with all that it has to send and receive for it."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush(deadline)
                self._feed(await self._below.receive(deadline))
            else:
                await self._flush(deadline)
                return result

    async def _flush(self, deadline: Deadline) -> None:
        if self._outgoing.pending:
            await self._below.send(self._outgoing.read(), deadline)
