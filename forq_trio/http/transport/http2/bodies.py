"""What is kept of requests: DATA is counted against the client's windows, the bound of a body and the budget of all
bodies; heads only against the budget. No I/O.

What a client sends is never left unread, so no window is ever used up, and none has to be enforced: bodies have bounds
of their own.
"""

from forq_trio.http.transport.body_budget import BodyBudget
from forq_trio.http.transport.http2.frames import WINDOW_BYTES_DEFAULT, window_update_frame
from forq_trio.http.transport.http2.output import Output
from forq_trio.http.transport.http2.stream import Stream
from forq_trio.model import limits


class Bodies:
    """The bodies of the requests of one connection. body_bytes_max: of each of them; budget: of all connections."""

    __slots__ = ("_body_bytes_max", "_budget", "_output", "_window")

    def __init__(self, body_bytes_max: int, budget: BodyBudget, output: Output) -> None:
        self._body_bytes_max = body_bytes_max
        self._budget = budget
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

    def open_window(self, stream: Stream) -> None:
        """Open the window of a stream again, on which more is to come."""
        if stream.receive_window < limits.HTTP2_STREAM_WINDOW_BYTES // 2:
            more = limits.HTTP2_STREAM_WINDOW_BYTES - stream.receive_window
            stream.receive_window += more
            self._output.add(window_update_frame(stream.id, more))

    def add_head(self, stream: Stream) -> int:
        """Keep the head of a stream; returns 0, or the status to refuse its request with."""
        stream.head_bytes = stream.head.size
        return 0 if self._budget.change(stream.head_bytes) else 503

    def add(self, stream: Stream, content: bytes) -> int:
        """Add to the body of a stream; returns 0, or the status to refuse its request with."""
        is_within = self._budget.change(len(content))
        if not stream.body:
            stream.body = content
        else:
            if type(stream.body) is bytes:
                stream.body = bytearray(stream.body)
            stream.body += content
        if len(stream.body) > self._body_bytes_max:
            return 413
        return 0 if is_within else 503

    def release(self, stream: Stream) -> None:
        """The request of a stream is not needed any more."""
        self._budget.change(-len(stream.body) - stream.head_bytes)
        stream.body = b""
        stream.head_bytes = 0
        stream.head.headers = {}
