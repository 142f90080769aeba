"""The connections of the asynchronous client to its server: how many there are, and when each is used and closed.

- A request has a connection for itself; there are at most CLIENT_CONNECTIONS_MAX. Requests that wait for one are served
  in the order in which they came.
- A connection is used again after a whole answer with nothing behind it, and only if the server has neither closed it
  nor sent anything since. Any other end of a request, even a cancellation, closes the connection.
- Nothing takes a lock: a signal handler may close the client at any moment. Operations of `deque` and `set` are atomic.
- After a fork the child closes its copies of the sockets, without sending anything, and makes new connections.

`sync_pool.py` is generated from this file by script/blocking_client.py.
"""

import os
import socket
import weakref
from collections import deque
from contextlib import suppress

from forq_trio.client import aio_waits
from forq_trio.client.address import address_of
from forq_trio.client.aio_routes import open_stream, read_answer
from forq_trio.client.aio_streams import AsyncStream
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import CannotSend, NoAnswer, TransportError
from forq_trio.client.http1 import AnswerReader, ClientRequest, HttpAnswer
from forq_trio.client.idle import Encoder, IdleStreams
from forq_trio.client.proxies import proxy_before
from forq_trio.client.routes import ServerRoute, route_to
from forq_trio.client.streams import Sockets
from forq_trio.model.bounds.client import CLIENT_CONNECTIONS_MAX
from forq_trio.model.errors import ClientClosed, InvalidServerUrl


class _Slots:
    """Bounds how many requests run at a time; first come, first served."""

    def __init__(self, number: int) -> None:
        self._free: deque[None] = deque([None] * number)
        self._waiting: deque[aio_waits.Signal] = deque()

    async def take(self, seconds: float) -> None:
        """Wait until a slot is free. Raises CannotSend if none is within `seconds`."""
        if not self._waiting:
            try:
                self._free.pop()
                return
            except IndexError:
                pass
        signal = aio_waits.Signal()
        self._waiting.append(signal)
        self._serve()  # a slot may have been released meanwhile
        try:
            served = await signal.wait(seconds)
        except BaseException:
            if not self._withdraw(signal):
                self.release()
            raise
        if not served and self._withdraw(signal):
            raise CannotSend(f"all {CLIENT_CONNECTIONS_MAX} connections of the client are in use")

    def release(self) -> None:
        """Release a slot."""
        self._free.append(None)
        self._serve()

    def wake_all(self) -> None:
        """End all waiting."""
        for signal in tuple(self._waiting):
            signal.set()

    def _serve(self) -> None:
        while self._waiting:
            try:
                self._free.pop()
            except IndexError:
                return
            try:
                signal = self._waiting.popleft()
            except IndexError:
                self._free.append(None)
            else:
                signal.set()

    def _withdraw(self, signal: aio_waits.Signal) -> bool:
        """Stop waiting; False if the slot was given already."""
        try:
            self._waiting.remove(signal)
        except ValueError:
            return False
        return True


class AsyncPool:
    """The connections to the server at `url`.

    authorities: the certificates to trust, in PEM; None: those of the environment. Raises OSError and ValueError for
    certificates and proxies that cannot be used, and InvalidServerUrl.
    """

    def __init__(self, url: str, authorities: str | None = None) -> None:
        try:
            address = address_of(url)
        except ValueError as problem:
            raise InvalidServerUrl(str(problem)) from None
        self._route = route_to(address, proxy_before(url), authorities)
        self._encoder = Encoder()
        self._closed = False
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        self._slots = _Slots(CLIENT_CONNECTIONS_MAX)
        self._sockets: Sockets = set()
        self._idle: IdleStreams[AsyncStream] = IdleStreams()

    def begin_in_child(self) -> None:
        """Start anew in a forked child, because the connections are those of its parent."""
        sockets = self._sockets
        self._begin()
        for sock in sockets:
            sock.close()

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        """Send a request and return its answer. Raises TransportError, and ClientClosed."""
        data = self._encoder.encode(request, self._route)
        await aio_waits.checkpoint_if_cancelled()
        slots = self._slots
        await slots.take(request.answer_seconds)
        try:
            return await self._exchange(data, request.answer_seconds, self._route)
        except (OSError, TransportError) as problem:
            if self._closed:
                raise ClientClosed from problem
            if isinstance(problem, TransportError):
                raise
            raise NoAnswer(str(problem)) from problem
        finally:
            slots.release()

    def close(self) -> None:
        """Close all connections, even those in use: requests that wait for an answer end with ClientClosed."""
        self._closed = True
        self._idle.close()
        for sock in tuple(self._sockets):
            with suppress(OSError):  # it is not connected, or closed meanwhile
                sock.shutdown(socket.SHUT_RDWR)
        self._slots.wake_all()

    async def _exchange(self, data: bytes, seconds: float, route: ServerRoute) -> HttpAnswer:
        if self._closed:
            raise ClientClosed
        stream = self._idle.take() or await open_stream(route, self._sockets)
        try:
            if self._closed:
                raise ClientClosed
            reader = AnswerReader()
            broken = None
            try:
                await stream.send(data, Deadline(seconds, aio_waits.now))
            except ConnectionError as problem:
                broken = problem  # the server may have refused a long request before it has read everything
            try:
                answer = await read_answer(stream, reader, seconds)
            except (OSError, NoAnswer) as problem:
                if broken is None:
                    raise
                raise broken from problem
        except BaseException:
            stream.close()
            raise
        if reader.reusable and broken is None:
            self._idle.keep(stream)
            if self._closed:
                self._idle.close()
        else:
            stream.close()
        return answer


_pools: "weakref.WeakSet[AsyncPool]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for pool in tuple(_pools):
        pool.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
