"""What the pools of both clients do without waiting: idle connections, and requests as bytes."""

import time
from collections import deque
from contextlib import suppress
from typing import Generic

from forq_trio.client.http1 import ClientRequest, Headers, basic, encode_headers, encode_request
from forq_trio.client.routes import ServerRoute, proxy_headers
from forq_trio.client.streams import StreamT
from forq_trio.model.bounds.client import CLIENT_CONNECTIONS_IDLE_MAX, CLIENT_IDLE_SECONDS_MAX

_HEADS_MAX = 16


class Encoder:
    """Makes the bytes of requests; the heads that they share are made once."""

    def __init__(self) -> None:
        self._heads: dict[Headers, bytes] = {}

    def encode(self, request: ClientRequest, route: ServerRoute) -> bytes:
        """The bytes of a request."""
        head = self._heads.get(request.headers)
        if head is None:
            head = encode_headers((("Host", route.address.authority), *_more(route), *request.headers))
            if len(self._heads) < _HEADS_MAX:
                self._heads[request.headers] = head
        target = route.address.path + request.path
        if route.proxy is not None and not route.address.tls:
            target = f"http://{route.address.authority}{target}"
        return encode_request(request.method, target, head, request.content)


class IdleStreams(Generic[StreamT]):
    """The connections that no request uses."""

    def __init__(self) -> None:
        self._streams: deque[tuple[StreamT, float]] = deque()

    def take(self) -> StreamT | None:
        """The connection that was used last of those that can be used again."""
        while self._streams:
            try:
                stream, since = self._streams.pop()
            except IndexError:
                break
            if time.monotonic() - since < CLIENT_IDLE_SECONDS_MAX and stream.is_usable():
                return stream
            stream.close()
        return None

    def keep(self, stream: StreamT) -> None:
        """Leave a connection to the next request."""
        now = time.monotonic()
        self._streams.append((stream, now))
        with suppress(IndexError):  # of two threads, the other one was first
            while (
                len(self._streams) > CLIENT_CONNECTIONS_IDLE_MAX
                or now - self._streams[0][1] > CLIENT_IDLE_SECONDS_MAX
            ):
                self._streams.popleft()[0].close()

    def close(self) -> None:
        """Close all of them."""
        with suppress(IndexError):
            while True:
                self._streams.pop()[0].close()


def _more(route: ServerRoute) -> Headers:
    """The headers that come of the URL and of the proxy."""
    shown: Headers = (("Authorization", basic(route.address)),) if route.address.credentials else ()
    return shown if route.proxy is None or route.address.tls else (*shown, *proxy_headers(route.proxy))
