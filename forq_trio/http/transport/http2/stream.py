"""One stream: a request while it arrives, while its handler works, and while its answer is sent."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from math import inf
from types import TracebackType
from typing import Self

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.http2.request_head import RequestHead
from forq_trio.http.transport.running_handler import RunningHandler
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class StreamAnswer:
    """The answer of a stream, while it is sent."""

    __slots__ = ("bytes", "is_given", "is_made", "is_waiting", "on_unsent", "rest", "window")

    def __init__(self, window: int) -> None:
        self.is_given = False  # it is being sent
        self.is_made = False  # its last frame was made
        self.is_waiting = False  # it is in line to send
        self.rest = memoryview(b"")  # the part of the body for which no frame was made
        self.window = window  # how many more bytes of DATA the client accepts
        self.bytes = 0  # how much of the budget it uses
        self.on_unsent: Callable[[], None] | None = None  # see `Response`

    def begin(self, response: Response) -> None:
        """Start to send a response."""
        self.is_given = True
        self.bytes = len(response.body)
        self.on_unsent = response.on_unsent

    def lose(self) -> None:
        """Give the answer up, because the client will not get all of it."""
        self.rest = memoryview(b"")
        on_unsent, self.on_unsent = self.on_unsent, None
        if on_unsent is not None:
            on_unsent()


class Http2Stream(AbstractAsyncContextManager[None]):
    """A request and its answer. As a context manager it is `Request.cancelled_on_disconnect`."""

    __slots__ = (
        "_cancel_when_lost",
        "_end_wait",
        "answer",
        "body",
        "deadline",
        "handler",
        "head",
        "head_bytes",
        "holder",
        "id",
        "is_lost",
        "is_whole",
        "receive_window",
        "request",
        "stalls",
    )

    def __init__(
        self,
        stream_id: int,
        head: RequestHead,
        holder: Holder,
        receive_window: int,
        send_window: int,
        end_wait: Callable[[Callable[[], None]], None],
    ) -> None:
        """end_wait: calls what it gets in a later pass of the loop."""
        self.id = stream_id
        self.head = head
        self.holder = holder  # the client whose share it uses; set before anything is counted
        self.request: Request | None = None  # as admitted, until it is answered
        self.head_bytes = 0  # how much of the budget the head uses
        self.body: bytes | bytearray = b""  # what has arrived
        self.receive_window = receive_window  # how many more bytes of DATA the client may send
        self.stalls = False  # no DATA has come since the last call of `end_stalled`
        self.is_whole = False  # the client has ended its side
        self.is_lost = False  # the client will not get the answer
        self.deadline = inf  # when the body has to be whole, or the answer sent
        self.answer = StreamAnswer(send_window)
        self.handler: RunningHandler | None = None  # while it runs
        self._end_wait = end_wait
        self._cancel_when_lost = False

    def lose(self) -> None:
        """Give the answer up, because the client will not get all of it; cancels a handler that waits."""
        self.is_lost = True
        self.answer.lose()
        if self._cancel_when_lost:
            self._end_wait(self._cancel_wait)

    def _cancel_wait(self) -> None:
        if self._cancel_when_lost and self.handler is not None:
            self.handler.cancel()

    def watch(self) -> Self:
        """A context manager in whose body a loss of the client, also an earlier one, cancels the request."""
        return self

    async def __aenter__(self) -> None:
        self._cancel_when_lost = True
        if self.is_lost and self.handler is not None:
            self.handler.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cancel_when_lost = False


class Streams:
    """The streams of one connection. open: those whose answer is not complete. highest: the last that was opened.

    Of closed streams only the last few are remembered, to tell the client's mistakes from frames that were under way
    when we reset their stream.
    """

    __slots__ = ("_closed", "highest", "open")

    def __init__(self) -> None:
        self.open: dict[int, Http2Stream] = {}
        self.highest = 0
        self._closed: OrderedDict[int, bool] = OrderedDict()

    def close(self, stream_id: int, *, by_reset: bool) -> None:
        """Remember a stream as closed. by_reset: we have reset it, so what the client still sends on it is ignored."""
        self.open.pop(stream_id, None)
        self._closed[stream_id] = by_reset
        if len(self._closed) > limits.HTTP2_CLOSED_STREAMS_MAX:
            self._closed.popitem(last=False)

    def is_unopened(self, stream_id: int) -> bool:
        """Whether the stream was never opened."""
        return stream_id > self.highest or stream_id % 2 == 0

    def was_closed(self, stream_id: int) -> bool:
        """Whether the stream is among the last that were closed."""
        return stream_id in self._closed

    def was_reset(self, stream_id: int) -> bool:
        """Whether the stream is among the last that were closed, and the server reset it."""
        return self._closed.get(stream_id, False)
