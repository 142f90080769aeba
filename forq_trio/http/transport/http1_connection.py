"""HTTP/1.1 on one connection, without I/O: parse, answer in order, again.

          a whole request             the response             all of it is sent
    READS ───────────────▶ WORKS ───────────────▶ SENDS ───────────────────────▶ READS, or ENDED
      │                                                                          if it was the last
      │ refused or too late: the answer is sent, and what still comes thrown away
      └──────────────────▶ LINGERS ─────────────▶ ENDED

A close, an error or a client that hangs up leads from every state to ENDED. Bytes that have arrived but are not parsed
yet wait in `_unparsed`; while there are any, or a handler works, nothing is received.

A request whose body is not there with its head is admitted first: one without a right key is answered at once, and
its body is not stored.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import IntEnum
from functools import partial
from math import inf
from types import TracebackType
from typing import Self

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.h1 import BODY, HEAD, IDLE, REQUEST_BYTES_MIN, RequestParser
from forq_trio.http.transport.poller import Later
from forq_trio.http.transport.response_bytes import CLOSE, CONTINUE
from forq_trio.http.transport.running_handler import RunningHandler
from forq_trio.http.transport.services import Services
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class State(IntEnum):
    """See the drawing above."""

    READS = 0
    WORKS = 1
    SENDS = 2
    LINGERS = 3
    ENDED = 4


class Exchange:
    """The request that is worked on or answered."""

    __slots__ = ("answer_bytes", "ending", "handler", "on_unsent", "request")

    def __init__(self, request: Request, ending: bytes) -> None:
        self.request = request
        self.ending = ending  # the Connection line of its answer
        self.handler: RunningHandler | None = None
        self.answer_bytes = 0  # how much of the budget the answer uses
        self.on_unsent: Callable[[], None] | None = None  # see `Response`


class Http1Connection(AbstractAsyncContextManager[None]):
    """A `ClientProtocol`. As a context manager it is `Request.cancelled_on_disconnect`."""

    __slots__ = (
        "_admitted",
        "_body_holder",
        "_closing",
        "_counted_body_bytes",
        "_exchange",
        "_holder",
        "_parser",
        "_services",
        "_socket",
        "_stalls",
        "_state",
        "_timed_phase",
        "_unparsed",
        "_unsent_bytes",
    )

    def __init__(self, services: Services, client_socket: ClientSocket, client: str) -> None:
        self._services = services
        self._socket = client_socket
        self._state = State.READS
        self._timed_phase = IDLE  # the phase of the parser for which the deadline is set
        self._unparsed = b""
        self._closing = False  # after the next answer
        self._stalls = False  # nothing has come since the last call of `finish_idle`
        self._holder: Holder | None = None  # whose connection it is
        self._admitted: Request | None = None  # whose body is arriving or being worked on
        self._body_holder: Holder | None = None  # whose share it uses until it is answered
        self._counted_body_bytes = 0  # of that body
        self._exchange: Exchange | None = None
        self._unsent_bytes = 0
        self._parser = RequestParser(services.config, client, self._watch)

    # Called by the socket.

    @property
    def wants_bytes(self) -> bool:
        if self._state is State.READS:
            return not (self._unparsed or self._unsent_bytes or self._parser.complete)
        return self._state is State.LINGERS and not self._unsent_bytes

    @property
    def works(self) -> bool:
        return self._exchange is not None and self._exchange.handler is not None

    def feed(self, data: bytes) -> None:
        if not data:
            self._socket.close()
        elif self._state is State.READS:
            self._stalls = False
            self._parse(data)

    def sent(self, sent_bytes: int) -> None:
        self._unsent_bytes -= sent_bytes
        if self._unsent_bytes:
            return
        if self._state is State.SENDS:
            assert self._exchange is not None
            self._end_answer(self._exchange)
            self._after_answer()
        elif self._state is State.LINGERS:
            self._linger()
        else:  # it was 100 Continue
            self._read_more()

    def expire(self) -> None:
        self._socket.deadline = inf
        if self._state is State.READS and self._parser.phase != IDLE and not self._unsent_bytes:
            self._refuse(408)
        else:
            self._socket.close()

    def finish(self) -> None:
        self._closing = True

    def finish_idle(self) -> None:
        if self._state is State.LINGERS and self._socket.deadline <= self._services.now():
            self._socket.close()
        if self._state is not State.READS or self._unsent_bytes or self._unparsed or self._parser.complete:
            return
        if self._parser.phase == IDLE:
            self._socket.close()
        elif self._stalls:
            self.expire()
        self._stalls = True

    def end(self) -> None:
        was, self._state = self._state, State.ENDED
        self._unparsed = b""
        self._uncount_body()
        self._parser.close()
        if was is State.SENDS:
            self._release_answer(unsent=True)
        self.cancel()

    def cancel(self) -> None:
        if self._exchange is not None and self._exchange.handler is not None:
            self._exchange.handler.cancel()

    # Requests

    def _parse(self, data: bytes) -> None:
        portion_bytes = self._services.config.pipelined_requests_max * REQUEST_BYTES_MIN
        if len(data) > portion_bytes:
            data = self._first_portion(data, portion_bytes)
        self._parser.feed(data)
        self._answer_complete()

    def _first_portion(self, data: bytes, portion_bytes: int) -> bytes:
        """The part of `data` that has at most as many requests as may be parsed ahead; the rest goes to `_unparsed`."""
        taken_bytes = max(portion_bytes, self._parser.body_bytes_left)
        self._unparsed = data[taken_bytes:]
        return data[:taken_bytes]

    def _answer_complete(self) -> None:
        """Work on some of the requests that are whole, until one has to wait."""
        complete = self._parser.complete
        for _ in range(limits.REQUESTS_AT_ONCE_MAX):
            if not complete:
                break
            self._begin(*complete.pop(0))
            if self._state is not State.READS:
                return
        self._after_answer()

    def _after_answer(self) -> None:
        """An answer has been sent: what came behind its request is for a later pass of the loop."""
        if self._state is not State.READS:
            return
        if self._parser.complete:
            self._socket.later(Later.PORTION, self._answer_complete)
        else:
            self._read_more()

    def _read_more(self) -> None:
        """The requests that were whole are answered: see what has come of the next one."""
        parser = self._parser
        if parser.refused:
            self._refuse(parser.refused)
            return
        if parser.phase == BODY:
            refused = self._take_body()
            if refused is not None:
                parser.discard_body()
                self._uncount_body()
                self._end_with(refused)
                return
        config, now = self._services.config, self._services.now()
        if parser.asks_continue:
            parser.asks_continue = False
            self._unsent_bytes = len(CONTINUE)
            self._socket.deadline = now + config.send_seconds
            self._unsent_bytes -= self._socket.send(CONTINUE)
            if self._unsent_bytes:
                return
        if parser.phase == IDLE:
            self._socket.deadline = now + config.idle_seconds
        elif parser.phase != self._timed_phase:
            self._socket.deadline = now + (
                config.header_seconds if parser.phase == HEAD else config.body_seconds
            )
        self._timed_phase = parser.phase
        if self._unparsed:
            self._socket.later(Later.PORTION, self._parse_rest)
        else:
            self._socket.receive_more()

    def _parse_rest(self) -> None:
        data, self._unparsed = self._unparsed, b""
        self._parse(data)

    def _take_body(self) -> Response | None:
        """Admit the request whose body is arriving, and count what has arrived; the answer if it is refused."""
        request = self._parser.begun()
        if request is not self._admitted:
            refused = self._admit(request)
            if refused is not None:
                return refused
            self._admitted, self._body_holder = request, request.holder
        received_bytes = self._parser.body_bytes_received
        change_bytes = received_bytes - self._counted_body_bytes
        self._counted_body_bytes = received_bytes
        assert self._body_holder is not None
        if not change_bytes or self._services.body_budget.change(self._body_holder, change_bytes):
            return None
        return self._services.refuse(503, request.method, request.path, request.headers)

    def _uncount_body(self) -> None:
        """The request that was admitted is answered or refused."""
        if self._admitted is not None:
            if self._counted_body_bytes:
                assert self._body_holder is not None
                self._services.body_budget.change(self._body_holder, -self._counted_body_bytes)
                self._counted_body_bytes = 0
            self._admitted = None

    def _admit(self, request: Request) -> Response | None:
        """The answer that refuses a request, None if it may be worked on."""
        refused = self._services.judge(request)
        if refused is None and not self._show(request):
            return self._services.refuse(503, request.method, request.path, request.headers)
        return refused

    def _show(self, request: Request) -> bool:
        """Note whose connection it is; False, and the connection ends, if the holder has too many."""
        if request.holder == self._holder:
            return True
        self._holder = request.holder
        has_share = self._socket.show(request.holder)
        if not has_share:
            self._closing = True
        return has_share

    def _begin(self, request: Request, ending: bytes) -> None:
        """Work on a whole request."""
        self._state = State.WORKS
        self._socket.deadline = inf
        exchange = self._exchange = Exchange(request, ending)
        response = None if request is self._admitted else self._admit(request)
        if response is None:
            exchange.handler = RunningHandler(self._services, request, self._worked)
            response = exchange.handler.start()
            if response is None:
                self._show(request)  # a handler that checks signatures knows now whose it is
                return
            exchange.handler = None
        self._answer(exchange, response)

    def _worked(self, response: Response | None) -> None:
        """The handler has ended: with a response, or because it was cancelled."""
        exchange = self._exchange
        assert exchange is not None
        exchange.handler = None
        if self._state is State.ENDED:
            self._exchange = None
            if response is not None and response.on_unsent is not None:
                response.on_unsent()
            self._socket.handler_ended()
        elif response is None:
            self._socket.close()
        else:
            self._socket.do(partial(self._answer, exchange, response))
            self._socket.do(self._after_answer)

    # Answers

    def _answer(self, exchange: Exchange, response: Response) -> None:
        services, request = self._services, exchange.request
        self._show(request)
        if self._closing:
            exchange.ending = CLOSE
        asked = request.method, request.path, request.headers
        response = services.answer_budget.admit(request.holder, *asked, response, services.refuse)
        self._state = State.SENDS
        exchange.answer_bytes, exchange.on_unsent = len(response.body), response.on_unsent
        # A write to a socket that the peer has closed succeeds, so that has to be checked before.
        if exchange.on_unsent is not None and self._socket.peer_closed():
            self._socket.close()
            return
        omits_body = request.method == "HEAD"
        long_body = b""  # sent after the head; joined, both would be in memory twice
        if exchange.answer_bytes > limits.SEND_PORTION_BYTES and not omits_body:
            omits_body, long_body = True, response.body
        data = services.response_encoder.encode(response, exchange.ending, omit_body=omits_body)
        del response
        self._unsent_bytes = len(data) + len(long_body)
        self._unsent_bytes -= self._socket.send(data, long_body)
        if self._state is not State.SENDS:  # the client is gone
            return
        if self._unsent_bytes:
            self._socket.deadline = services.now() + services.config.send_seconds
        else:
            self._end_answer(exchange)

    def _end_answer(self, exchange: Exchange) -> None:
        """The answer is sent."""
        self._release_answer(unsent=False)
        self._state = State.READS
        if exchange.ending is CLOSE or self._closing:
            self._socket.close()
        elif not self._parser.complete:
            self._uncount_body()
            self._timed_phase = IDLE

    def _release_answer(self, *, unsent: bool) -> None:
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        self._services.answer_budget.release(exchange.request.holder, exchange.answer_bytes)
        if unsent and exchange.on_unsent is not None:
            exchange.on_unsent()

    def _refuse(self, status: int) -> None:
        self._end_with(self._services.refuse(status, *self._parser.head))

    def _end_with(self, response: Response) -> None:
        """Answer and close. A close with unread bytes would reset the connection, and the client lose the answer, so
        they are read for a while.
        """
        services = self._services
        self._state = State.LINGERS
        self._unparsed = b""
        self._socket.deadline = services.now() + services.linger_seconds(is_closing=self._closing)
        omits_body = self._parser.head[0] == "HEAD"
        data = services.response_encoder.encode(response, CLOSE, omit_body=omits_body)
        self._unsent_bytes = len(data)
        self._unsent_bytes -= self._socket.send(data)
        if not self._unsent_bytes:
            self._linger()

    def _linger(self) -> None:
        if self._socket.deadline <= self._services.now():
            self._socket.close()
            return
        self._socket.send_eof()
        self._socket.receive_more()

    # The wait of a request

    def _watch(self) -> Self:
        return self

    async def __aenter__(self) -> None:
        self._socket.watch()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.unwatch()
