"""Sends one request on one connection, to an address that was checked: the part of HTTP that `posting` needs.

All addresses of the host are looked up once. Those that are not allowed are left out, and connections are made to the
numbers of the rest. TLS checks the certificate for the name. Of a long answer only the start is read.
"""

import ssl
import time
from typing import NamedTuple

from forq_trio.client import aio_waits
from forq_trio.client.address import ServerAddress
from forq_trio.client.aio_routes import connect_to
from forq_trio.client.aio_streams import AsyncStream, AsyncTcpStream
from forq_trio.client.aio_tls import AsyncTlsStream
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import ConnectFailed, NoAnswer
from forq_trio.client.http1 import AnswerReader, HttpAnswer
from forq_trio.client.streams import CONNECT_SECONDS, Sockets
from forq_trio.worker.public_addresses import is_public

ANSWER_BYTES_MAX = 64 * 1_024
ADDRESSES_MAX = 4
_IDLE_SECONDS = 3_600.0  # the caller's cancel scope is the bound


class PrivateAddress(Exception):
    """The host has no public address, and others are not allowed"""


class Target(NamedTuple):
    """Where requests go. context: of TLS, None without it."""

    address: ServerAddress
    context: ssl.SSLContext | None
    allow_private: bool


async def post(target: Target, request: bytes) -> HttpAnswer:
    """Send a request and read its answer, whose body may be cut at ANSWER_BYTES_MAX.

    Raises PrivateAddress, TransportError, OSError. Bounded in time by the caller. Cancelled: the connection is closed.
    """
    sockets: Sockets = set()
    try:
        stream: AsyncStream = await _connect(target, sockets)
        if target.context is not None:
            tls = AsyncTlsStream(stream, target.context, target.address.host)
            await tls.handshake()
            stream = tls
        broken = None
        try:
            await stream.send(request, Deadline(_IDLE_SECONDS, aio_waits.now))
        except ConnectionError as problem:
            broken = problem  # the server may have answered before it had read everything
        try:
            return await _read(stream)
        except (OSError, NoAnswer):
            if broken is None:
                raise
            raise broken from None
    finally:
        for sock in tuple(sockets):
            sock.close()


async def _read(stream: AsyncStream) -> HttpAnswer:
    reader = AnswerReader()
    deadline = Deadline(_IDLE_SECONDS, aio_waits.now)
    received = 0
    while not reader.complete:
        data = await stream.receive(deadline)
        received += len(data)
        if not data:
            reader.end()
            break
        reader.feed(data)
        if received >= ANSWER_BYTES_MAX and reader.head_ended:
            break
    return reader.answer


async def _connect(target: Target, sockets: Sockets) -> AsyncTcpStream:
    address = target.address
    places = await aio_waits.resolve(address.host, address.port)
    allowed = [place for place in places if target.allow_private or is_public(place[4][0])]
    if not allowed:
        raise PrivateAddress(f"{address.host} is not at a public address, and private ones are not allowed")
    try:
        return await connect_to(allowed[:ADDRESSES_MAX], time.monotonic() + CONNECT_SECONDS, sockets)
    except OSError as refused:
        words = refused.strerror or refused
        raise ConnectFailed(f"cannot connect to {address.authority}: {words}") from refused
