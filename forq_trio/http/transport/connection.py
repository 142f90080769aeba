"""One client's connection: the handshake of TLS and which protocol the client speaks; then that protocol serves it.

Time-outs: the protocol sets `deadline`, a plain number (inf while an HTTP/1.1 handler works), and when it has passed
the server's reaper calls `expire`.
"""

import ssl

import trio

from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http1_connection import Http1Connection
from forq_trio.http.transport.http2.connection import Http2Connection
from forq_trio.http.transport.http2.frames import PREFACE
from forq_trio.http.transport.services import Services
from forq_trio.http.transport.wire import ConnectionLost, SocketWire, StreamWire
from forq_trio.model.holders import Holder

HTTP1 = "http/1.1"
HTTP2 = "h2"
_PROTOCOLS: dict[str, type[Http1Connection] | type[Http2Connection]] = {
    HTTP1: Http1Connection,
    HTTP2: Http2Connection,
}


class HttpConnection:
    """Serves one client until it leaves, misbehaves, times out or is told to stop."""

    __slots__ = (
        "_client",
        "_connections",
        "_finishing",
        "_protocol",
        "_scope",
        "_services",
        "_wire",
        "deadline",
    )

    def __init__(
        self,
        services: Services,
        wire: SocketWire,
        client: str,
        connections: "OpenConnections[HttpConnection]",
    ) -> None:
        self._services = services
        self._connections = connections
        self._wire: SocketWire | StreamWire = wire
        self._client = client
        self._scope = trio.CancelScope()
        self._protocol: Http1Connection | Http2Connection | None = None
        self._finishing = False
        self.deadline = services.now() + services.config.idle_seconds

    # Called by the server. These methods do not wait.

    def expire(self) -> None:
        """The deadline has passed."""
        if self._protocol is not None:
            self._protocol.expire()
        else:
            self.cut()

    def finish(self) -> None:
        """Close after the next answer, whether its request is running or still to come."""
        self._finishing = True
        if self._protocol is not None:
            self._protocol.finish()

    def finish_idle(self) -> None:
        """Close at once if no request is running."""
        if self._protocol is not None:
            self._protocol.finish_idle()
        else:
            self.cut()

    def show(self, holder: Holder) -> bool:
        """See `OpenConnections.show`."""
        return self._connections.show(self, holder)

    def cut(self) -> None:
        """Cancel the connection's task."""
        self._scope.cancel()

    # The connection's own task.

    async def run(self) -> None:
        """Serve until the end, then close. Cancelled, a running request is cancelled, too."""
        try:
            with self._scope:
                detected = await self._detect()
                if detected is not None:
                    name, received = detected
                    protocol = _PROTOCOLS[name](self._services, self._wire, self._client, self)
                    self._protocol = protocol
                    if self._finishing:
                        protocol.finish()
                    serving = protocol.run(received)
                    del detected, received  # or their memory would be used as long as the connection lives
                    await serving
        except ConnectionLost:
            return
        finally:
            self._protocol = None
            with trio.CancelScope(shield=True):
                await self._wire.close()

    async def _detect(self) -> tuple[str, bytes] | None:
        """Read the start of the connection; returns the protocol that the client speaks and the bytes read (of HTTP/2
        those behind its preface), None if it has ended.
        """
        config, ssl_context = self._services.config, self._services.ssl_context
        if ssl_context is not None:
            chosen = await self._secure(ssl_context)
            if chosen != HTTP2:
                return None if chosen is None else (HTTP1, b"")
        elif not config.http2:
            return HTTP1, b""
        start = b""
        while len(start) < len(PREFACE) and start == PREFACE[: len(start)]:
            received = await self._wire.receive(config.receive_chunk_bytes)
            if not received:
                return None
            if not start:
                self.deadline = self._services.now() + config.header_seconds
            start += received
        if start.startswith(PREFACE):
            return HTTP2, start[len(PREFACE) :]
        return (HTTP1, start) if ssl_context is None else None

    async def _secure(self, ssl_context: ssl.SSLContext) -> str | None:
        """Do the handshake of TLS; returns the protocol that was chosen, None when the connection has ended.

        A handshake takes a millisecond or more of processor time. So only one begins in each pass of the loop: many in
        one pass would make all other connections wait for all of them.
        """
        assert isinstance(self._wire, SocketWire)
        connected = self._wire.socket
        stream = trio.SSLStream(self._wire.stream(), ssl_context, server_side=True, https_compatible=True)
        self._wire = StreamWire(stream)
        self.deadline = self._services.now() + self._services.config.header_seconds
        await trio.lowlevel.wait_readable(connected)
        async with self._services.tls_handshake:
            await trio.lowlevel.checkpoint()
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError:
            return None
        self.deadline = self._services.now() + self._services.config.idle_seconds
        return stream.selected_alpn_protocol() or HTTP1
