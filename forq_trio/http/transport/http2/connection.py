"""The tasks of one HTTP/2 connection: one receives and parses, one sends, and each running request has its own.

Bytes to send gather in the protocol's output until the sender runs, so the answers of one pass of the loop leave
in one system call. While more than HTTP2_UNSENT_BYTES_MAX wait for a client that does not read, nothing is received
from it. Time-outs are the owner's: it calls `expire` when `deadline` has passed.
"""

from math import inf

import trio

from forq_trio.http.transport.http2.frames import ENHANCE_YOUR_CALM, INTERNAL_ERROR, ConnectionFault
from forq_trio.http.transport.http2.protocol import Http2Protocol
from forq_trio.http.transport.http2.stream import Http2Stream
from forq_trio.http.transport.owner import Owner
from forq_trio.http.transport.services import Services
from forq_trio.http.transport.wire import ConnectionLost, Wire
from forq_trio.model import limits
from forq_trio.model.holders import Holder


class Http2Connection:
    """Serves one client from behind its preface until it leaves, misbehaves, times out or is told to stop."""

    def __init__(self, services: Services, wire: Wire, client: str, owner: Owner) -> None:
        self._services = services
        self._wire = wire
        self._owner = owner
        self._protocol = Http2Protocol(services, client, services.now())
        self._receiving = trio.CancelScope()
        self._sending = trio.CancelScope()
        self._sending_since = inf
        self._is_gone = False
        self._is_finishing = False
        self._shown: Holder | None = None
        self._to_send = trio.Event()
        self._sent = trio.Event()

    # Called by the owner. These methods do not wait.

    def expire(self) -> None:
        """The deadline has passed."""
        now = self._services.now()
        if now >= self._sending_since + self._services.config.send_seconds:
            self._owner.cut()
            return
        try:
            if self._protocol.end_overdue(now):
                self._owner.cut()
        except ConnectionFault as fault:
            self._protocol.fail(fault.code)
            self._receiving.cancel()
        self._owner.deadline = min(
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
        self._protocol.end()
        self._protocol.end_stalled()
        self._wake()

    # The connection's own tasks.

    async def run(self, received: bytes) -> None:
        """Serve until the end; `received` came behind the preface. Cancelled, running requests are cancelled, too."""
        self._owner.deadline = self._protocol.deadline
        self._protocol.feed(received)
        del received  # or its memory would be used as long as the connection lives
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send)
                with self._receiving:
                    await self._serve(nursery)
                self._wake()
            if not self._is_gone:
                await self._linger()
        finally:
            self._protocol.lose_all()

    async def _serve(self, nursery: trio.Nursery) -> None:
        protocol, services = self._protocol, self._services
        has_more = False
        while not protocol.is_done:
            try:
                if has_more:
                    async with services.http2_full_portion:
                        has_more = self._parse(nursery, full_portion=True)
                else:
                    has_more = self._parse(nursery, full_portion=False)
            except ConnectionFault as fault:
                protocol.fail(fault.code)
                return
            while protocol.output.unsent_bytes > limits.HTTP2_UNSENT_BYTES_MAX:
                self._sent = trio.Event()
                await self._sent.wait()
            if not has_more:
                data = await self._wire.receive(services.config.receive_chunk_bytes)
                if not data:
                    self._lose_client()
                    return
                protocol.feed(data)
                del data

    def _parse(self, nursery: trio.Nursery, *, full_portion: bool) -> bool:
        """Parse a portion and start its requests; returns whether more is left. Raises ConnectionFault."""
        if self._is_gone:  # the client left while this waited; its requests are lost already
            return False
        protocol, now = self._protocol, self._services.now()
        has_more = protocol.parse(now, full_portion=full_portion)
        if protocol.bodies.latest != self._shown:
            self._shown = protocol.bodies.latest
            if not self._owner.show(self._shown):
                raise ConnectionFault(ENHANCE_YOUR_CALM)
        for stream in protocol.complete:
            if stream.is_lost:  # reset in the same portion
                protocol.end_handler(stream, now)
            else:
                nursery.start_soon(self._answer, stream)
        protocol.complete.clear()
        self._wake()
        return has_more

    async def _answer(self, stream: Http2Stream) -> None:
        """Handle a request and hand its answer over to the sender."""
        services = self._services
        try:
            with stream.scope:
                request = stream.request
                assert request is not None
                request.body = bytes(stream.body)
                try:
                    response = await services.handler(request)
                except Exception as error:
                    services.on_error(error)
                    response = services.refuse(500, request.method, request.path)
                self._protocol.answer(stream, response, services.now())
        except Exception as error:
            services.on_error(error)
            self._protocol.reset(stream, INTERNAL_ERROR)
        finally:
            self._protocol.end_handler(stream, services.now())
            self._wake()

    def _wake(self) -> None:
        """Wake the sender, and tell the owner the new deadline."""
        if self._protocol.deadline < self._owner.deadline:
            self._owner.deadline = self._protocol.deadline
        self._to_send.set()

    async def _send(self) -> None:
        """Send the output until the connection is done or the client is gone."""
        protocol = self._protocol
        try:
            with self._sending:
                while not protocol.is_done or protocol.output.unsent_bytes:
                    data = protocol.take()
                    if data:
                        await self._send_portion(data)
                    else:
                        self._to_send = trio.Event()
                        await self._to_send.wait()
        except ConnectionLost:
            self._lose_client()
        self._receiving.cancel()

    async def _send_portion(self, data: bytes) -> None:
        output = self._protocol.output
        # A write to a socket that the peer has closed succeeds, so that has to be checked before.
        if output.has_undoable and self._wire.peer_closed():
            raise ConnectionLost
        sent_bytes = self._wire.send_now(data)
        output.note_sent(sent_bytes)
        if sent_bytes < len(data):
            rest = memoryview(data)[sent_bytes:]
            self._sending_since = self._services.now()
            self._owner.deadline = min(
                self._owner.deadline, self._sending_since + self._services.config.send_seconds
            )
            while rest:
                sent_bytes = await self._wire.send_some(rest)
                output.note_sent(sent_bytes)
                rest = rest[sent_bytes:]
            self._sending_since = inf
        self._sent.set()

    def _lose_client(self) -> None:
        """No answer will reach the client any more; requests that wait for something are cancelled."""
        self._is_gone = True
        self._protocol.lose_all()
        self._sending.cancel()

    async def _linger(self) -> None:
        """A close with unread bytes would reset the connection, and the client lose the last frames, so they are read
        for a while.
        """
        with trio.move_on_after(self._services.linger_seconds(is_closing=self._is_finishing)):
            self._wire.send_eof()
            while await self._wire.receive(self._services.config.receive_chunk_bytes):
                continue
