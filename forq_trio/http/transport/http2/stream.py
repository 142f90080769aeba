"""One stream: a request while it arrives, while its handler works, and while its answer is sent."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from math import inf
from types import TracebackType
from typing import Self

import trio

from forq_trio.http.message import Request
from forq_trio.http.transport.http2.request_head import RequestHead
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class Http2Stream(AbstractAsyncContextManager[None]):
    """A request and its answer. As a context manager it is `Request.cancelled_on_disconnect`.

    request: as admitted, until it is answered. holder: whose share it uses; it changes only before anything is counted.
    head_bytes: what the head counts for. body: what has arrived. is_whole: the client has ended its side. is_answered:
    the answer is being sent. is_made: its last frame was made. is_lost: the client will not get it. is_waiting: it is
    in line to send. deadline: when the body has to be whole, or the answer sent. receive_window, send_window: how many
    bytes the client may send yet, and we. rest: the part of the answer's body for which no frame was made.
    answer_bytes: what the answer counts for. scope: of the task with the handler. stalls: no DATA came since the last
    look. end_soon: see `DisconnectWatchers`.
    """

    __slots__ = (
        "_cancel_when_lost",
        "_end_soon",
        "answer_bytes",
        "body",
        "deadline",
        "head",
        "head_bytes",
        "holder",
        "id",
        "is_answered",
        "is_lost",
        "is_made",
        "is_waiting",
        "is_whole",
        "on_unsent",
        "receive_window",
        "request",
        "rest",
        "scope",
        "send_window",
        "stalls",
    )

    def __init__(
        self,
        stream_id: int,
        head: RequestHead,
        holder: Holder,
        receive_window: int,
        send_window: int,
        end_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self.id = stream_id
        self.head = head
        self.holder = holder
        self.request: Request | None = None
        self.head_bytes = 0
        self.body: bytes | bytearray = b""
        self.is_whole = False
        self.is_answered = False
        self.is_lost = False
        self.is_made = False
        self.is_waiting = False
        self.deadline = inf
        self.receive_window = receive_window
        self.send_window = send_window
        self.rest = memoryview(b"")
        self.answer_bytes = 0
        self.on_unsent: Callable[[], None] | None = None
        self.scope = trio.CancelScope()
        self.stalls = False
        self._end_soon = end_soon
        self._cancel_when_lost = False

    def lose(self) -> None:
        """The client will not get the whole answer."""
        self.is_lost = True
        self.rest = memoryview(b"")
        on_unsent, self.on_unsent = self.on_unsent, None
        if on_unsent is not None:
            on_unsent()
        if self._cancel_when_lost:
            self._end_soon(self._cancel_wait)

    def _cancel_wait(self) -> None:
        if self._cancel_when_lost:
            self.scope.cancel()

    def watch(self) -> Self:
        """In the body of this context manager the loss of the client cancels the request, also if it was before."""
        return self

    async def __aenter__(self) -> None:
        self._cancel_when_lost = True
        if self.is_lost:
            self.scope.cancel()

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
        """by_reset: we have reset it, so ignore what the client still sends on it."""
        self.open.pop(stream_id, None)
        self._closed[stream_id] = by_reset
        if len(self._closed) > limits.HTTP2_CLOSED_STREAMS_MAX:
            self._closed.popitem(last=False)

    def is_unopened(self, stream_id: int) -> bool:
        """Nobody has opened it yet."""
        return stream_id > self.highest or stream_id % 2 == 0

    def was_closed(self, stream_id: int) -> bool:
        """It was open, and is among the last that were closed."""
        return stream_id in self._closed

    def was_reset(self, stream_id: int) -> bool:
        """It is among the last that were closed, and the server reset it."""
        return self._closed.get(stream_id, False)
