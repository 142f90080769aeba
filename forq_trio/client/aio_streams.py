"""The byte streams of the asynchronous client: TCP, TLS over it, and the way through a proxy.

Sockets do not block; `aio_waits` waits for them.

`sync_streams.py` is generated from this file by script/blocking_client.py.
"""

import errno
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from forq_trio.client import aio_waits
from forq_trio.client.address import Address
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import CannotSend, ConnectFailed, ProxyRefused, TransportError
from forq_trio.client.http1 import Answer, AnswerReader, encode_headers, encode_request
from forq_trio.client.proxies import Proxy
from forq_trio.client.streams import (
    CONNECT_SECONDS,
    HANDSHAKE_SECONDS,
    PROXY_SECONDS,
    Route,
    Sockets,
    TcpSocket,
    TlsSession,
    proxy_headers,
)
from forq_trio.wire.limits import CLIENT_RECEIVE_BYTES

ResultT = TypeVar("ResultT")


class AsyncTcpStream(TcpSocket):
    """A TCP connection."""

    async def connect(self, place: Any, seconds: float) -> None:
        """Connect to a place, as of `socket.getaddrinfo`. Raises OSError; TimeoutError after so long."""
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


class AsyncTlsStream(TlsSession["AsyncTcpStream | AsyncTlsStream"]):
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


AsyncStream = AsyncTcpStream | AsyncTlsStream


async def open_stream(route: Route, sockets: Sockets) -> AsyncStream:
    """Connect. Raises ConnectFailed, ProxyRefused, and CannotSend for a host that cannot be one."""
    first = route.address if route.proxy is None else route.proxy.address
    try:
        stream: AsyncStream = await _connect(first, sockets)
    except OSError as problem:
        raise ConnectFailed(_words(problem)) from problem
    try:
        if first.tls:
            stream = await _encrypted(stream, route.context, first.host)
        if route.proxy is not None and route.address.tls:
            await _through(stream, route.proxy, route.address)
            stream = await _encrypted(stream, route.context, route.address.host)
    except OSError as problem:
        stream.close()
        raise ConnectFailed(_words(problem)) from problem
    except BaseException:
        stream.close()
        raise
    return stream


async def _connect(address: Address, sockets: Sockets) -> AsyncTcpStream:
    deadline = time.monotonic() + CONNECT_SECONDS
    return await connect_to(await _places(address.host, address.port), deadline, sockets)


async def connect_to(places: Sequence[Any], deadline: float, sockets: Sockets) -> AsyncTcpStream:
    """A connection to the first of a host's addresses that takes one. Each has its share of the time that is left.

    deadline: on the clock of `time.monotonic`. Raises the OSError of the last address.
    """
    refused: OSError = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    for number, (family, kind, protocol, _, place) in enumerate(places):
        seconds = (deadline - time.monotonic()) / (len(places) - number)
        try:
            stream = AsyncTcpStream(socket.socket(family, kind, protocol), sockets)
        except OSError as problem:
            refused = problem
            continue
        try:
            await stream.connect(place, seconds)
        except OSError as problem:
            refused = problem
            stream.close()
        except BaseException:
            stream.close()
            raise
        else:
            return stream
    raise refused


async def _places(host: str, port: int) -> list[tuple[Any, ...]]:
    try:
        try:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:  # a name
            return await aio_waits.resolve(host, port)
    except UnicodeError as problem:
        raise CannotSend(str(problem)) from problem


async def _through(stream: AsyncStream, proxy: Proxy, address: Address) -> None:
    """Have a proxy connect to the server."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    target = f"{host}:{address.port}"
    head = encode_headers((("Host", target), *proxy_headers(proxy)))
    await stream.send(encode_request("CONNECT", target, head, b""), Deadline(PROXY_SECONDS, aio_waits.now))
    reader = AnswerReader(tunnel=True)
    try:
        answer = await read_answer(stream, reader, PROXY_SECONDS)
    except TransportError as problem:
        raise ProxyRefused(str(problem)) from problem
    if not (answer.is_success and reader.reusable):
        raise ProxyRefused(f"{answer.status} {reader.reason}".rstrip())


async def _encrypted(below: AsyncStream, context: ssl.SSLContext | None, host: str) -> AsyncTlsStream:
    assert context is not None
    stream = AsyncTlsStream(below, context, host)
    await stream.handshake()
    return stream


async def read_answer(stream: AsyncStream, reader: AnswerReader, seconds: float) -> Answer:
    """Read an answer. Raises NoAnswer, and OSError. seconds: for each part of it, as in `deadlines`."""
    deadline = Deadline(seconds, aio_waits.now)
    while not reader.complete:
        data = await stream.receive(deadline)
        if not data:
            reader.end()
            break
        had_head, content = reader.head_ended, reader.content_bytes
        reader.feed(data)
        if reader.head_ended and not had_head:
            deadline.renew()
        deadline.extend_for(reader.content_bytes - content)
    return reader.answer


def _words(problem: OSError) -> str:
    return problem.strerror or str(problem)
