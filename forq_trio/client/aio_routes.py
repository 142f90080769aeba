"""How the asynchronous client connects to its server, perhaps through a proxy or with TLS, and reads answers.

`sync_routes.py` is generated from this file by script/blocking_client.py.
"""

import errno
import os
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forq_trio.client import aio_waits
from forq_trio.client.address import ServerAddress
from forq_trio.client.aio_streams import AsyncStream, AsyncTcpStream
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import CannotSend, ConnectFailed, ProxyRefused, TransportError
from forq_trio.client.http1 import AnswerReader, HttpAnswer, encode_headers, encode_request
from forq_trio.client.proxies import Proxy
from forq_trio.client.routes import ServerRoute, proxy_headers
from forq_trio.client.streams import CONNECT_SECONDS, PROXY_SECONDS, Sockets

if TYPE_CHECKING:
    from ssl import SSLContext


async def open_stream(route: ServerRoute, sockets: Sockets) -> AsyncStream:
    """Connect to the server. Raises ConnectFailed, ProxyRefused, and CannotSend for an invalid host."""
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
        raise _failure(problem, route) from problem
    except BaseException:
        stream.close()
        raise
    return stream


async def _connect(address: ServerAddress, sockets: Sockets) -> AsyncTcpStream:
    deadline = time.monotonic() + CONNECT_SECONDS
    return await connect_to(await _places(address.host, address.port), deadline, sockets)


async def connect_to(places: Sequence[Any], deadline: float, sockets: Sockets) -> AsyncTcpStream:
    """Connect to the first of a host's addresses that accepts. Each address gets its share of the time that is left.

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
        except socket.gaierror:  # the host is a name, not a number
            return await aio_waits.resolve(host, port)
    except UnicodeError as problem:
        raise CannotSend(str(problem)) from problem


async def _through(stream: AsyncStream, proxy: Proxy, address: ServerAddress) -> None:
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


async def _encrypted(below: AsyncStream, context: "SSLContext | None", host: str) -> AsyncStream:
    from forq_trio.client.aio_tls import AsyncTlsStream  # see tls

    assert context is not None
    stream = AsyncTlsStream(below, context, host)
    await stream.handshake()
    return stream


async def read_answer(stream: AsyncStream, reader: AnswerReader, seconds: float) -> HttpAnswer:
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


def _failure(problem: OSError, route: ServerRoute) -> ConnectFailed:
    """The error if the exchange with the first host failed after the connection to it was made."""
    if route.context is not None:
        from forq_trio.client.tls import failure_of

        if (failure := failure_of(problem)) is not None:
            return failure
    return ConnectFailed(_words(problem))


def _words(problem: OSError) -> str:
    return problem.strerror or str(problem)
