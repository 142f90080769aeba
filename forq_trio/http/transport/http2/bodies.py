"""The memory that requests take: heads that were admitted, and bodies. No I/O.

A head is checked when it ends: a request without a right key takes no memory. All other memory counts against the
connection's share and the budget of all connections; DATA also counts against the client's windows and the bound of a
body.

Whatever a client sends is read, so no window is ever used up and none has to be enforced: bodies have their own bounds.
"""

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.http2.frames import WINDOW_BYTES_DEFAULT, window_update_frame
from forq_trio.http.transport.http2.output import Output
from forq_trio.http.transport.http2.stream import Http2Stream
from forq_trio.http.transport.services import Services
from forq_trio.model import limits
from forq_trio.model.budget import Share
from forq_trio.model.holders import at_address


class Bodies:
    """The memory of one connection's requests. holder: of those without a right key. latest: of the last admitted."""

    __slots__ = ("_bytes", "_bytes_max", "_client", "_output", "_services", "_window", "holder", "latest")

    def __init__(self, services: Services, client: str, output: Output) -> None:
        config = services.config
        share_bytes = config.bodies_bytes_max // limits.BODIES_CONNECTION_PART
        self._bytes_max = max(share_bytes, config.body_bytes_max + config.header_bytes_max)
        self._bytes = 0
        self._services = services
        self._client = client
        self.holder = self.latest = at_address(client)
        self._output = output
        self._window = WINDOW_BYTES_DEFAULT
        self.count(0)

    def count(self, received_bytes: int) -> None:
        """Count a frame against the window of the connection, whatever its stream, and open the window again."""
        self._window -= received_bytes
        if self._window < limits.HTTP2_CONNECTION_WINDOW_BYTES // 2:
            more = limits.HTTP2_CONNECTION_WINDOW_BYTES - self._window
            self._window += more
            self._output.add(window_update_frame(0, more))

    def open_window(self, stream: Http2Stream) -> None:
        """Open the window of a stream again, on which more is to come."""
        if stream.receive_window < limits.HTTP2_STREAM_WINDOW_BYTES // 2:
            more = limits.HTTP2_STREAM_WINDOW_BYTES - stream.receive_window
            stream.receive_window += more
            self._output.add(window_update_frame(stream.id, more))

    def admit(self, stream: Http2Stream) -> Response | None:
        """Count the head of a stream, or return the answer that refuses its request."""
        services, head = self._services, stream.head
        status = head.refused
        if not status:
            request = Request(
                *(head.method, head.path, head.query, head.headers, b""),
                *(self._client, stream.watch, self.holder),
            )
            refused = services.judge(request)
            stream.holder = request.holder
            if refused is not None:
                return refused
            stream.request, self.latest = request, request.holder
            stream.head_bytes = head.size
            status = self._keep(stream, head.size)
        return services.refuse(status, head.method, head.path, head.headers) if status else None

    def add(self, stream: Http2Stream, content: bytes) -> int:
        """Add to the body of a stream; returns 0, or the status to refuse its request with."""
        refused = self._keep(stream, len(content))
        if not stream.body:
            stream.body = content
        else:
            if type(stream.body) is bytes:
                stream.body = bytearray(stream.body)
            stream.body += content
        if len(stream.body) > self._services.config.body_bytes_max:
            return 413
        return refused

    def _keep(self, stream: Http2Stream, more_bytes: int) -> int:
        self._bytes += more_bytes
        if not self._services.body_budget.change(stream.holder, more_bytes):
            return 503
        if self._bytes > self._bytes_max:
            self._services.body_budget.refuse(Share.CONNECTION)
            return 503
        return 0

    def release(self, stream: Http2Stream) -> None:
        """Free the memory of a stream's request, which is no longer needed."""
        kept_bytes = len(stream.body) + stream.head_bytes
        self._bytes -= kept_bytes
        self._services.body_budget.change(stream.holder, -kept_bytes)
        stream.request = None
        stream.body = b""
        stream.head_bytes = 0
        stream.head.headers = {}
