"""HTTP/2 by Hypercorn: connections that speak it are handed over with the bytes already read.

Only Hypercorn's TCPServer, which serves one connection, is used. It opens no sockets, installs no
signal handlers and writes no logs here. Five of its behaviours are corrected from outside:
- it shields its sends without a deadline, so the stream it is given has one, and can be cut;
- it may close a connection between deciding to send a frame and sending it, so closing waits for its send lock;
- it works through all that it receives at once, thousands of small frames, while everybody else waits, so it is given
  little at a time;
- it raises what it does not expect in frames, such as a method beyond ASCII or priorities of a thousand streams; that
  is the client's mistake and ends only the connection;
- it reports only to its access log whether a response reached the client, so we are its access log.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext

from forq_trio.http.message import Handler
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.asgi import EXCHANGE, HandlerApp
from forq_trio.http.transport.body_budget import BodyBudget
from forq_trio.http.transport.config import Refuse, TransportConfig
from forq_trio.http.transport.response_bytes import security_headers
from forq_trio.model import limits

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HTTP2_STREAMS_MAX = 128
HTTP2_REQUESTS_MAX = 2**31 - 1


class Http2Stream(trio.abc.Stream):
    """A stream for Hypercorn: it returns the bytes already read first, and every send has a deadline.

    It has the interface of a TLS stream, also for plain TCP: a connection whose HTTP/2 Hypercorn knows by the preface
    alone would not count as idle before its first request, and neither time out nor be closed at shutdown.

    send_lock: taken by Hypercorn while it sends; closing waits for it.
    """

    def __init__(self, stream: Any, first_bytes: bytes, send_seconds: float) -> None:
        self._stream = stream
        self._first_bytes = first_bytes
        self._send_seconds = send_seconds
        self._send_scope = trio.CancelScope()
        self._is_cut = False
        self.send_lock = trio.Lock()

    @property
    def transport_stream(self) -> trio.SocketStream:
        """The TCP stream below."""
        transport: trio.SocketStream = getattr(self._stream, "transport_stream", self._stream)
        return transport

    async def do_handshake(self) -> None:
        """Do nothing: the handshake has been done."""
        await trio.lowlevel.checkpoint()

    def selected_alpn_protocol(self) -> str:
        return "h2"

    def cut(self) -> None:
        """Make a running send, and every later one, fail."""
        self._is_cut = True
        self._send_scope.cancel()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._first_bytes:
            portion = self._first_bytes[: limits.HTTP2_PORTION_BYTES]
            self._first_bytes = self._first_bytes[limits.HTTP2_PORTION_BYTES :]
            await trio.lowlevel.checkpoint()
            return portion
        return bytes(await self._stream.receive_some(limits.HTTP2_PORTION_BYTES))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_cut:
            raise trio.BrokenResourceError("the server is stopping")
        with trio.move_on_after(self._send_seconds) as self._send_scope:
            await self._stream.send_all(data)
        if self._send_scope.cancelled_caught:
            raise trio.BrokenResourceError("the client does not read its responses")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        try:
            if not self._is_cut:
                with trio.move_on_after(self._send_seconds):
                    async with self.send_lock:
                        await self._stream.aclose()
        finally:
            await trio.aclose_forcefully(self._stream)


class _OutcomeLog(Logger):
    """Reports every request that ended without its whole response being sent; logs nothing."""

    async def access(self, request: Any, response: Any, request_time: float) -> None:
        if response is None and EXCHANGE in request:
            request[EXCHANGE].lost()


class _HypercornConfig(Config):
    """Hypercorn's configuration, in our limits; `response_headers` also reach the errors it answers by itself."""

    def __init__(self, config: TransportConfig) -> None:
        super().__init__()
        self.accesslog = None
        self.errorlog = None
        self.logger_class = _OutcomeLog
        self.include_server_header = False
        self.keep_alive_timeout = config.idle_seconds
        self.keep_alive_max_requests = HTTP2_REQUESTS_MAX
        self.h2_max_concurrent_streams = HTTP2_STREAMS_MAX
        self.h2_max_header_list_size = config.header_bytes_max
        self._security_headers = list(security_headers(hsts=config.hsts))

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        headers: list[tuple[bytes, bytes]] = super().response_headers(protocol)
        return headers + self._security_headers


class _Server(TCPServer):
    """Ends with its connection: Hypercorn's own waits until the idle limit is over, and keeps the connection's slot."""

    _ended = False

    async def _read_data(self) -> None:
        await super()._read_data()
        self._ended = True
        await self.idle_task.stop()

    async def _idle_timeout(self) -> None:
        if not self._ended:
            await super()._idle_timeout()


class Hypercorn:
    """Serves handed-over connections of one server."""

    def __init__(
        self,
        handler: Handler,
        config: TransportConfig,
        budget: BodyBudget,
        answers: AnswerBudget,
        on_error: Callable[[Exception], None],
        refuse: Refuse,
    ) -> None:
        self._app = HandlerApp(handler, config, budget, answers, on_error, refuse)
        self._config = _HypercornConfig(config)
        self._context = WorkerContext(None)

    async def serve(self, stream: Http2Stream, cut: Callable[[], None]) -> None:
        """Serve one connection until it ends. Cancelled, its requests are cancelled; call `stream.cut()` as well.

        cut: called (synchronously) to have that done, because the client does not read an answer.
        """
        as_tls: Any = stream  # The annotation is a TLS stream, but any stream with these methods works.
        app: Any = partial(self._app, cut)  # Hypercorn has a type for each ASGI event.
        server = _Server(ASGIWrapper(app), self._config, self._context, {}, as_tls)
        stream.send_lock = server.send_lock
        try:
            await server.run()
        except* Exception:
            pass  # the handler's errors do not come this way: these are frames that Hypercorn does not expect

    async def stop(self) -> None:
        """Let every connection end: idle ones now, others after their requests."""
        await self._context.terminated.set()
