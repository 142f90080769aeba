"""HTTP/1.1 on one connection: receive, parse, answer in order, again.

A request whose body is not there with its head is admitted first: one without a right key is answered at once, and
its body is not stored.

One task does it all; a request costs no task, channel, cancel scope or timer of its own. Bytes that have arrived but
are not parsed yet wait in `_unparsed`; while there are any nothing is received. Time-outs are the owner's: it calls
`expire` when its `deadline` has passed, which is inf while a handler works.
"""

from math import inf

import trio

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.disconnects import DisconnectWatch
from forq_trio.http.transport.h1 import BODY, HEAD, IDLE, REQUEST_BYTES_MIN, RequestParser
from forq_trio.http.transport.owner import Owner
from forq_trio.http.transport.response_bytes import CLOSE, CONTINUE
from forq_trio.http.transport.services import Services
from forq_trio.http.transport.wire import ConnectionLost, Wire
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class Http1Connection:
    """Serves one client until it leaves, misbehaves, times out or is told to stop."""

    __slots__ = (
        "_admitted",
        "_client_left",
        "_closing",
        "_counted_body_bytes",
        "_owner",
        "_parser",
        "_sending",
        "_services",
        "_serving",
        "_shown",
        "_stalls",
        "_unparsed",
        "_wire",
    )

    def __init__(self, services: Services, wire: Wire, client: str, owner: Owner) -> None:
        self._services = services
        self._wire = wire
        self._owner = owner
        self._serving = trio.CancelScope()
        self._unparsed = b""
        self._closing = False
        self._client_left = False
        self._stalls = False
        self._shown: Holder | None = None
        self._sending = False
        self._counted_body_bytes = 0
        self._admitted: Request | None = None  # whose body is arriving or being worked on
        watch = DisconnectWatch(services.watchers, wire, self._lose_client)
        self._parser = RequestParser(services.config, client, watch.open)

    # Called by the owner. These methods do not wait.

    def expire(self) -> None:
        """The deadline has passed."""
        self._owner.deadline = inf
        self._serving.cancel()

    def finish(self) -> None:
        """Close after the next answer, whether its request is running or still to come."""
        self._closing = True

    def finish_idle(self) -> None:
        """Close if no request is running, or if an incomplete one has received nothing more since the last call."""
        if self._owner.deadline == inf or self._sending or self._unparsed:
            return
        if self._parser.phase == IDLE:
            self._owner.cut()
        elif self._stalls:
            self.expire()
        self._stalls = True

    # The connection's own task.

    async def run(self, received: bytes) -> None:
        """Serve until the end, beginning with the bytes in `received`. Cancelled, a running request is cancelled, too.

        Raises ConnectionLost.
        """
        self._unparsed = received
        del received  # or its memory would be used as long as the connection lives
        try:
            with self._serving:
                await self._serve()
            if self._serving.cancelled_caught and self._parser.phase != IDLE and not self._sending:
                await self._refuse(408)
        finally:
            self._uncount_body()
            self._parser.close()

    async def _serve(self) -> None:
        owner = self._owner
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
                data = await wire.receive(config.receive_chunk_bytes, limits.RECEIVE_TRIES_MAX)
                if not data:
                    return
                self._stalls = False
            if len(data) > portion_bytes:
                data = self._first_portion(data, portion_bytes)
            phase = parser.phase
            parser.feed(data)
            del data  # what the parser does not hold is not needed while a request is answered
            if parser.complete:
                for request, connection in parser.complete:
                    owner.deadline = inf
                    await self._answer(request, connection)
                    if connection is CLOSE or self._closing:
                        return
                parser.complete.clear()
                self._uncount_body()
                phase = IDLE
            if parser.refused:
                await self._refuse(parser.refused)
                return
            if parser.phase == BODY:
                refused = self._take_body()
                if refused is not None:
                    parser.discard_body()
                    self._uncount_body()
                    await self._end_with(refused)
                    return
            if parser.asks_continue:
                parser.asks_continue = False
                await self._send(CONTINUE)
            if parser.phase == IDLE:
                owner.deadline = self._services.now() + config.idle_seconds
            elif parser.phase != phase:
                seconds = config.header_seconds if parser.phase == HEAD else config.body_seconds
                owner.deadline = self._services.now() + seconds

    def _take_body(self) -> Response | None:
        """Admit the request whose body is arriving, and count what has arrived; the answer if it is refused."""
        services, request = self._services, self._parser.begun()
        if request is not self._admitted:
            refused = services.judge(request)
            if refused is None and request.holder != self._shown and not self._show(request):
                refused = services.refuse(503, request.method, request.path)
            if refused is not None:
                return refused
            self._admitted = request
        received_bytes = self._parser.body_bytes_received
        change_bytes = received_bytes - self._counted_body_bytes
        self._counted_body_bytes = received_bytes
        if not change_bytes or services.body_budget.change(request.holder, change_bytes):
            return None
        return services.refuse(503, request.method, request.path)

    def _uncount_body(self) -> None:
        """The request that was admitted is answered or refused."""
        if self._admitted is not None:
            if self._counted_body_bytes:
                self._services.body_budget.change(self._admitted.holder, -self._counted_body_bytes)
                self._counted_body_bytes = 0
            self._admitted = None

    def _first_portion(self, data: bytes, portion_bytes: int) -> bytes:
        """The part of `data` that has at most as many requests as may be parsed ahead; the rest goes to `_unparsed`."""
        taken_bytes = max(portion_bytes, self._parser.body_bytes_left)
        self._unparsed = data[taken_bytes:]
        return data[:taken_bytes]

    async def _answer(self, request: Request, connection: bytes) -> None:
        services = self._services
        try:
            response = None if request is self._admitted else services.admit(request)
            if response is None and request.holder != self._shown and not self._show(request):
                response = services.refuse(503, request.method, request.path)
            if response is None:
                response = await services.handler(request)
        except Exception as error:
            services.on_error(error)
            response = services.refuse(500, request.method, request.path)
        if self._closing:
            connection = CLOSE
        response = services.answer_budget.admit(
            request.holder, request.method, request.path, response, services.refuse
        )
        body_bytes, on_unsent = len(response.body), response.on_unsent
        try:
            # A write to a socket that the peer has closed succeeds, so that has to be checked before.
            if self._client_left or (on_unsent is not None and self._wire.peer_closed()):
                raise ConnectionLost
            omits_body = request.method == "HEAD"
            long_body = b""  # sent after `data`; joined, both would be in memory twice
            if body_bytes > limits.SEND_PORTION_BYTES and not omits_body:
                omits_body, long_body = True, response.body
            data = services.response_encoder.encode(response, connection, omit_body=omits_body)
            del response
            sent_bytes = self._wire.send_now(data)
            if sent_bytes != len(data):
                await self._send(memoryview(data)[sent_bytes:])
            if long_body:
                await self._send(long_body)
        except BaseException:
            if on_unsent is not None:
                on_unsent()
            raise
        finally:
            services.answer_budget.release(request.holder, body_bytes)

    def _show(self, request: Request) -> bool:
        self._shown = request.holder
        if self._owner.show(request.holder):
            return True
        self._closing = True
        return False

    async def _send(self, data: bytes | memoryview) -> None:
        self._sending = True
        self._owner.deadline = self._services.now() + self._services.config.send_seconds
        await self._wire.send_all(data)
        self._sending = False

    async def _refuse(self, status: int) -> None:
        await self._end_with(self._services.refuse(status, *self._parser.target))

    async def _end_with(self, response: Response) -> None:
        """Answer and close. A close with unread bytes would reset the connection, and the client lose the answer, so
        they are read for a while.
        """
        services = self._services
        self._sending = True
        self._unparsed = b""
        self._owner.deadline = inf
        with trio.move_on_after(services.linger_seconds(is_closing=self._closing)):
            omit_body = self._parser.target[0] == "HEAD"
            await self._wire.send_all(services.response_encoder.encode(response, CLOSE, omit_body=omit_body))
            self._wire.send_eof()
            while await self._wire.receive(services.config.receive_chunk_bytes):
                continue

    def _lose_client(self) -> None:
        """The client has left while its request waited: undo the request of an answer that is ready now."""
        self._client_left = True
        self._owner.cut()
