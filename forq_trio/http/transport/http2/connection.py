"""HTTP/2 on one connection, without I/O: gives the protocol its bytes, runs the handlers, sends the output.

Bytes to send gather in the protocol's output until a later pass of the loop, so the answers of one pass leave in one
system call. While more than HTTP2_UNSENT_BYTES_MAX wait for a client that does not read, nothing is received from it.
"""

from functools import partial
from math import inf

from forq_trio.http.message import Response
from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.http2.frames import ENHANCE_YOUR_CALM, INTERNAL_ERROR, ConnectionFault
from forq_trio.http.transport.http2.protocol import Http2Protocol
from forq_trio.http.transport.http2.stream import Http2Stream
from forq_trio.http.transport.poller import Later
from forq_trio.http.transport.running_handler import RunningHandler
from forq_trio.http.transport.services import Services
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class Http2Connection:
    """A `ClientProtocol`, from behind the client's preface on."""

    __slots__ = (
        "_has_failed",
        "_has_more",
        "_holder",
        "_is_finishing",
        "_is_flushing",
        "_is_parsing",
        "_lingers",
        "_protocol",
        "_sending_since",
        "_services",
        "_socket",
        "_unsent_bytes",
        "_working",
    )

    def __init__(self, services: Services, client_socket: ClientSocket, client: str) -> None:
        self._services = services
        self._socket = client_socket
        self._protocol = Http2Protocol(services, client, services.now())
        self._holder: Holder | None = None
        self._working: dict[Http2Stream, None] = {}  # those with a handler that runs
        self._has_more = False  # whole frames that are not parsed yet
        self._is_flushing = False  # what was made will be sent in a later pass of the loop
        self._is_parsing = False  # a portion will be parsed in a later pass
        self._unsent_bytes = 0  # of the portion that is being sent
        self._sending_since = inf
        self._is_finishing = False
        self._lingers = False  # everything is sent; what still comes is thrown away
        self._has_failed = False  # the client broke a rule: nothing more is received
        client_socket.deadline = self._protocol.deadline
        self._wake()

    # Called by the socket.

    @property
    def wants_bytes(self) -> bool:
        return self._lingers or (self._takes_more() and not self._has_more)

    @property
    def works(self) -> bool:
        return bool(self._working)

    def feed(self, data: bytes) -> None:
        if not data:
            self._socket.close()
        elif not self._lingers:
            self._protocol.feed(data)
            self._parse(full_portion=False)

    def sent(self, sent_bytes: int) -> None:
        self._protocol.output.note_sent(sent_bytes)
        self._unsent_bytes -= sent_bytes
        if not self._unsent_bytes:
            self._sending_since = inf
            self._flush()
        else:
            self._read_more()

    def expire(self) -> None:
        now = self._services.now()
        if self._lingers or now >= self._sending_since + self._services.config.send_seconds:
            self._socket.cut()
            return
        try:
            if self._protocol.end_overdue(now):
                self._socket.cut()
                return
        except ConnectionFault as fault:
            self._fail(fault)
        self._socket.deadline = min(
            self._protocol.deadline, self._sending_since + self._services.config.send_seconds
        )
        self._wake()

    def finish(self) -> None:
        """Close as soon as no request is unanswered; GOAWAY tells the client which requests were not served."""
        self._is_finishing = True
        self._protocol.end_when_idle()
        self._wake()

    def finish_idle(self) -> None:
        """Close when the running requests are answered, and serve no others; those that are not whole and have not come
        further since the last call are given up.
        """
        if self._lingers and self._socket.deadline <= self._services.now():
            self._socket.close()
            return
        self._protocol.end()
        self._protocol.end_stalled()
        self._wake()

    def end(self) -> None:
        self._protocol.lose_all()

    def cancel(self) -> None:
        for stream in list(self._working):
            if stream.handler is not None:
                stream.handler.cancel()

    # Requests

    def _parse(self, *, full_portion: bool) -> None:
        """Parse a portion and start its requests; what is left is parsed in a later pass."""
        protocol, now = self._protocol, self._services.now()
        try:
            self._has_more = protocol.parse(now, full_portion=full_portion)
            self._show(protocol.bodies.latest)
        except ConnectionFault as fault:
            self._fail(fault)
        for stream in protocol.complete:
            if stream.is_lost:  # reset in the same portion
                protocol.end_handler(stream, now)
            else:
                self._work(stream)
        protocol.complete.clear()
        self._wake()
        self._read_more()

    def _read_more(self) -> None:
        """Parse or receive more, unless too much waits to be sent."""
        if self._takes_more():
            if not self._has_more:
                self._socket.receive_more()
            elif not self._is_parsing:
                self._is_parsing = True
                self._socket.later(Later.HTTP2_FRAMES, self._parse_rest)

    def _takes_more(self) -> bool:
        if self._has_failed or self._protocol.is_done:
            return False
        return self._protocol.output.unsent_bytes <= limits.HTTP2_UNSENT_BYTES_MAX

    def _parse_rest(self) -> None:
        self._is_parsing = False
        self._parse(full_portion=True)

    def _fail(self, fault: ConnectionFault) -> None:
        self._has_more, self._has_failed = False, True
        self._protocol.fail(fault.code)

    def _show(self, holder: Holder) -> None:
        """Note whose connection it is. Raises ConnectionFault if the holder has too many."""
        if holder != self._holder:
            self._holder = holder
            if not self._socket.show(holder):
                raise ConnectionFault(ENHANCE_YOUR_CALM)

    def _work(self, stream: Http2Stream) -> None:
        request = stream.request
        assert request is not None
        request.body = bytes(stream.body)
        self._working[stream] = None
        stream.handler = RunningHandler(self._services, request, partial(self._worked, stream))
        response = stream.handler.start()
        try:
            self._show(request.holder)  # a handler that checks signatures knows now whose it is
        except ConnectionFault as fault:
            self._fail(fault)
        if response is not None:
            self._worked(stream, response)

    def _worked(self, stream: Http2Stream, response: Response | None) -> None:
        """The handler has ended: with a response, or because it was cancelled."""
        stream.handler = None
        del self._working[stream]
        now = self._services.now()
        try:
            if response is not None:
                self._protocol.answer(stream, response, now)
        except Exception as error:
            self._services.on_error(error)
            self._protocol.reset(stream, INTERNAL_ERROR)
        self._protocol.end_handler(stream, now)
        self._wake()
        self._socket.handler_ended()

    # Output

    def _wake(self) -> None:
        """Send what was made, in a later pass of the loop, and tell the socket the new deadline."""
        if self._protocol.deadline < self._socket.deadline and not self._lingers:
            self._socket.deadline = self._protocol.deadline
        if not self._is_flushing:
            self._is_flushing = True
            self._socket.later(Later.PORTION, self._flush)

    def _flush(self) -> None:
        """Send the output as far as the socket takes it. When nothing is left, and nothing will come, linger."""
        self._is_flushing = False
        if self._unsent_bytes or self._lingers:
            return
        protocol, output = self._protocol, self._protocol.output
        flushed_bytes = 0
        while data := protocol.take():
            # A write to a socket that the peer has closed succeeds, so that has to be checked before.
            if output.has_undoable and self._socket.peer_closed():
                self._socket.close()
                return
            sent_bytes = self._socket.send(data)
            if self._socket.is_closed:
                return
            output.note_sent(sent_bytes)
            if sent_bytes < len(data):
                self._unsent_bytes = len(data) - sent_bytes
                self._sending_since = self._services.now()
                deadline = self._sending_since + self._services.config.send_seconds
                self._socket.deadline = min(self._socket.deadline, deadline)
                return
            flushed_bytes += sent_bytes
            if flushed_bytes >= limits.SEND_NOW_BYTES_MAX:  # the rest in a later pass
                self._wake()
                return
        if protocol.is_done:
            self._linger()
        else:
            self._read_more()

    def _linger(self) -> None:
        """A close with unread bytes would reset the connection, and the client lose the last frames, so they are read
        for a while.
        """
        seconds = self._services.linger_seconds(is_closing=self._is_finishing)
        if seconds <= 0:
            self._socket.close()
            return
        self._lingers = True
        self._socket.deadline = self._services.now() + seconds
        self._socket.send_eof()
        self._socket.receive_more()
