"""One client's connection: detect its protocol; for HTTP/1.1 receive, parse, answer in order, again (HTTP/2: `http2`).

One task does it all; a request costs no task, channel, cancel scope or timer of its own. Time-outs: the connection sets
`deadline`, a plain number (inf while a handler works), and when it has passed the server's reaper calls `expire`. Bytes
that have arrived but are not parsed yet wait in `_unparsed`; while there are any nothing is received.
"""

import ssl
from math import inf

import trio

from forq_trio.http.message import Request
from forq_trio.http.transport.disconnects import DisconnectWatch
from forq_trio.http.transport.h1 import BODY, HEAD, IDLE, REQUEST_BYTES_MIN, RequestParser
from forq_trio.http.transport.http2.connection import Http2Connection
from forq_trio.http.transport.http2.frames import PREFACE
from forq_trio.http.transport.response_bytes import CLOSE, CONTINUE
from forq_trio.http.transport.services import Services
from forq_trio.http.transport.wire import ConnectionLost, SocketWire, StreamWire


class Connection:
    """Serves one client until it leaves, misbehaves, times out or is told to stop."""

    __slots__ = (
        "_client",
        "_client_left",
        "_closing",
        "_counted_body_bytes",
        "_expired",
        "_http2",
        "_parser",
        "_scope",
        "_sending",
        "_services",
        "_unparsed",
        "_wire",
        "deadline",
    )

    def __init__(self, services: Services, wire: SocketWire, client: str) -> None:
        self._services = services
        self._wire: SocketWire | StreamWire = wire
        self._scope = trio.CancelScope()
        self._unparsed = b""
        self._closing = False
        self._expired = False
        self._client_left = False
        self._sending = False
        self._counted_body_bytes = 0
        self._http2: Http2Connection | None = None
        watch = DisconnectWatch(services.watchers, self._watch_client)
        self._parser = RequestParser(services.config, client, watch.open)
        self._client = client
        self.deadline = services.now() + services.config.idle_seconds

    # Called by the server. These methods do not wait.

    def expire(self) -> None:
        """The deadline has passed."""
        self.deadline = inf
        if self._http2 is not None:
            self._http2.expire()
            return
        self._expired = True
        self._scope.cancel()

    def finish(self) -> None:
        """Close after the next answer, whether its request is running or still to come."""
        self._closing = True
        if self._http2 is not None:
            self._http2.finish()

    def finish_idle(self) -> None:
        """Close at once if no request is running."""
        if self._http2 is not None:
            self._http2.finish_idle()
            return
        answering = self.deadline == inf or self._sending
        if not answering and self._parser.phase == IDLE and not self._unparsed:
            self._scope.cancel()

    def cut(self) -> None:
        """Cancel the connection's task."""
        self._scope.cancel()

    # The connection's own task.

    async def run(self) -> None:
        """Serve until the end, then close. Cancelled, a running request is cancelled, too."""
        try:
            with self._scope:
                if await self._speaks_http1():
                    await self._serve()
            if self._expired and self._parser.phase != IDLE and not self._sending:
                await self._refuse(408)
        except ConnectionLost:
            return
        finally:
            self._services.budget.change(-self._counted_body_bytes)
            self._parser.close()
            self._http2 = None
            with trio.CancelScope(shield=True):
                await self._wire.close()

    async def _speaks_http1(self) -> bool:
        """Read the start of the connection, serve HTTP/2 to its end; returns False when the connection has ended."""
        config = self._services.config
        if self._services.ssl_context is not None:
            chosen = await self._secure(self._services.ssl_context)
            if chosen != "h2":
                return chosen is not None
        elif not config.http2:
            return True
        start = b""
        while len(start) < len(PREFACE) and start == PREFACE[: len(start)]:
            received = await self._wire.receive(config.receive_chunk_bytes)
            if not received:
                return False
            if not start:
                self.deadline = self._services.now() + config.header_seconds
            start += received
        if start.startswith(PREFACE):
            self._http2 = Http2Connection(self._services, self._wire, self._client, self)
            await self._http2.run(start[len(PREFACE) :])
            return False
        self._unparsed = start
        return self._services.ssl_context is None

    async def _secure(self, ssl_context: ssl.SSLContext) -> str | None:
        """Do the handshake of TLS; returns the protocol that was chosen, None when the connection has ended."""
        assert isinstance(self._wire, SocketWire)
        stream = trio.SSLStream(self._wire.stream(), ssl_context, server_side=True, https_compatible=True)
        self._wire = StreamWire(stream)
        self.deadline = self._services.now() + self._services.config.header_seconds
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError:
            return None
        self.deadline = self._services.now() + self._services.config.idle_seconds
        return stream.selected_alpn_protocol() or "http/1.1"

    async def _serve(self) -> None:
        config = self._services.config
        wire = self._wire
        parser = self._parser
        portion_bytes = config.pipelined_requests_max * REQUEST_BYTES_MIN
        while True:
            data = self._unparsed
            if data:
                self._unparsed = b""
                await trio.lowlevel.checkpoint()
            else:
                data = await wire.receive(config.receive_chunk_bytes)
                if not data:
                    return
            if len(data) > portion_bytes:
                data = self._first_portion(data, portion_bytes)
            phase = parser.phase
            parser.feed(data)
            if parser.complete:
                for request, connection in parser.complete:
                    await self._answer(request, connection)
                    if connection is CLOSE or self._closing:
                        return
                parser.complete.clear()
                phase = IDLE
            if (parser.phase == BODY or self._counted_body_bytes) and not self._count_body():
                parser.discard_body()
                self._count_body()
                await self._refuse(503)
                return
            if parser.refused:
                await self._refuse(parser.refused)
                return
            if parser.asks_continue:
                parser.asks_continue = False
                await self._send(CONTINUE)
            if parser.phase == IDLE:
                self.deadline = self._services.now() + config.idle_seconds
            elif parser.phase != phase:
                seconds = config.header_seconds if parser.phase == HEAD else config.body_seconds
                self.deadline = self._services.now() + seconds

    def _count_body(self) -> bool:
        """Count the bytes received of the present body, 0 without one; False when the budget is exceeded."""
        received_bytes = self._parser.body_bytes_received
        change = received_bytes - self._counted_body_bytes
        self._counted_body_bytes = received_bytes
        return self._services.budget.change(change) or change <= 0

    def _first_portion(self, data: bytes, portion_bytes: int) -> bytes:
        """The part of `data` that has at most as many requests as may be parsed ahead; the rest goes to `_unparsed`."""
        taken_bytes = max(portion_bytes, self._parser.body_bytes_left)
        self._unparsed = data[taken_bytes:]
        return data[:taken_bytes]

    async def _answer(self, request: Request, connection: bytes) -> None:
        services = self._services
        self.deadline = inf
        try:
            response = await services.handler(request)
        except Exception as error:
            services.on_error(error)
            response = services.refuse(500, request.method, request.path)
        if self._closing:
            connection = CLOSE
        response = services.answers.admit(request.method, request.path, response, services.refuse)
        body_bytes, on_unsent = len(response.body), response.on_unsent
        try:
            # A write to a socket that the peer has closed succeeds, so that has to be checked before.
            if self._client_left or (on_unsent is not None and self._wire.peer_closed()):
                raise ConnectionLost
            data = services.encoder.encode(response, connection, omit_body=request.method == "HEAD")
            del response  # `data` has its body: it must not be there twice while a slow client reads
            sent_bytes = self._wire.send_now(data)
            if sent_bytes != len(data):
                await self._send(memoryview(data)[sent_bytes:])
        except BaseException:
            if on_unsent is not None:
                on_unsent()
            raise
        finally:
            services.answers.end(body_bytes)

    async def _send(self, data: bytes | memoryview) -> None:
        self._sending = True
        self.deadline = self._services.now() + self._services.config.send_seconds
        await self._wire.send_all(data)
        self._sending = False

    async def _refuse(self, status: int) -> None:
        """Answer and close. A close with unread bytes would reset the connection, and the client lose the answer, so
        they are read for a while.
        """
        services = self._services
        response = services.refuse(status, *self._parser.target)
        self._sending = True
        self.deadline = inf
        with trio.move_on_after(services.config.linger_seconds):
            await self._wire.send_all(services.encoder.encode(response, CLOSE))
            self._wire.send_eof()
            while await self._wire.receive(services.config.receive_chunk_bytes):
                continue

    async def _watch_client(self) -> None:
        """Receive until the client disconnects, which ends this connection, or has sent as much as is read ahead."""
        ahead_bytes_max = self._services.config.receive_chunk_bytes
        while len(self._unparsed) < ahead_bytes_max:
            received = await self._wire.receive(ahead_bytes_max - len(self._unparsed))
            if not received:
                break
            self._unparsed += received
        else:
            if not self._wire.peer_closed():
                return
        self._client_left = True
        self._scope.cancel()
