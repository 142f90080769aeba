"""Reads a connection's requests before Hypercorn sees them, one at a time and whole, and enforces bounds on them.

A head has UI_HEAD_BYTES_MAX bytes, UI_FIELDS_MAX lines, query fields and cookies at most, and UI_HEAD_SECONDS_MAX from
its first byte; a body UI_BODY_SECONDS_MAX more. With a session it may have UI_BODY_BYTES_MAX bytes, within a budget for
all bodies; without one as many as a login needs, and the whole request has to arrive in few pieces, because each piece
costs time of the loop. A refused request is answered with a status, and the connection ends.

Hypercorn gets a request in one form: one Content-Length, no other framing, no Upgrade, no Expect. So both parsers agree
about where it ends.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass

import trio

from forq_trio.http.message import Request
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.h1 import BODY, HEAD, IDLE, RequestParser
from forq_trio.http.transport.response_bytes import CONTINUE, KEEP_DEFAULT
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.ui.viewer import Viewer

_CONFIG = TransportConfig(
    header_bytes_max=limits.UI_HEAD_BYTES_MAX,
    headers_max=limits.UI_FIELDS_MAX,
    body_bytes_max=limits.UI_BODY_BYTES_MAX,
)
_FRAMING = frozenset(
    (b"connection", b"content-length", b"expect", b"transfer-encoding", b"upgrade", b"http2-settings")
)

FindViewer = Callable[[bytes], Viewer | None]
"""Finds the viewer whose session is in the Cookie header of a request; None if there is none."""


class RequestRefused(Exception):
    """The request is not taken; the status says why."""

    def __init__(self, status: int) -> None:
        self.status = status


@dataclass(frozen=True)
class Arrived:
    """A whole request."""

    request: Request
    viewer: Viewer | None  # who sent it; None without a session
    is_last: bool  # no other request may follow on its connection

    def encode(self) -> bytes:
        """The request in the form for Hypercorn. The last one is HTTP/1.0, after which a connection ends."""
        request = self.request
        target = f"{request.path}?{request.query}" if request.query else request.path
        lines = [f"{request.method} {target} HTTP/1.{0 if self.is_last else 1}".encode("latin-1")]
        lines += [b"%b: %b" % field for field in request.headers.items() if field[0] not in _FRAMING]
        if request.body or request.method not in ("GET", "HEAD"):
            lines.append(b"content-length: %d" % len(request.body))
        return b"\r\n".join([*lines, b"", request.body])


class RequestReader:
    """The requests of one connection. receive: waits for bytes, b"" at the end. send: sends, for 100 Continue."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
        client: str,
        find_viewer: FindViewer,
        bodies: Budget,
    ) -> None:
        self._receive = receive
        self._send = send
        self._find_viewer = find_viewer
        self._bodies = bodies
        self._parser = RequestParser(_CONFIG, client, nullcontext)
        self._unparsed = b""
        self._viewer: Viewer | None = None
        self._judged = False
        self._counted_bytes = 0

    async def next(self) -> Arrived | None:
        """The next request; None at the end of the connection. Raises Refused. Then `release` its body."""
        self._judged = False
        parser = self._parser
        deadline = trio.current_time() + (
            limits.UI_KEYLESS_IDLE_SECONDS_MAX if self._viewer is None else limits.UI_IDLE_SECONDS_MAX
        )
        receives = 0
        phase = IDLE
        while not parser.complete:
            if parser.refused:
                raise RequestRefused(parser.refused)
            if not self._unparsed:
                with trio.move_on_at(deadline) as waiting:
                    self._unparsed = await self._receive()
                if waiting.cancelled_caught:
                    if phase == IDLE:
                        return None
                    raise RequestRefused(408)
                if not self._unparsed:
                    return None
                receives += 1
            self._parse()
            if parser.phase != phase and not parser.complete:
                phase = parser.phase
                seconds = limits.UI_HEAD_SECONDS_MAX if phase == HEAD else limits.UI_BODY_SECONDS_MAX
                deadline = trio.current_time() + seconds
            if receives > limits.UI_RECEIVES_MAX and not (self._judged and self._viewer):
                raise RequestRefused(408)
            if parser.asks_continue:
                parser.asks_continue = False
                await self._send(CONTINUE)
        request, connection = parser.complete.pop(0)
        self._judge(request, len(request.body))
        return Arrived(request, self._viewer, connection is not KEEP_DEFAULT)

    def _parse(self) -> None:
        """Parse what was received, until a request is whole. Raises Refused."""
        parser = self._parser
        while self._unparsed and not parser.complete:
            portion = max(limits.UI_PORTION_BYTES, parser.body_bytes_left)
            parser.feed(self._unparsed[:portion])
            self._unparsed = self._unparsed[portion:]
            if parser.complete:
                return
            if parser.refused:
                raise RequestRefused(parser.refused)
            if parser.phase == BODY:
                self._judge(parser.begun(), max(parser.body_bytes_left, 0) + parser.body_bytes_received)

    def _judge(self, request: Request, body_bytes: int) -> None:
        """Bound a request whose head is whole, by who sends it. Raises Refused."""
        if not self._judged:
            self._judged = True
            cookies = request.headers.get(b"cookie", b"")
            if cookies.count(b";") >= limits.UI_FIELDS_MAX:
                raise RequestRefused(431)
            if request.query.count("&") >= limits.UI_FIELDS_MAX:
                raise RequestRefused(414)
            self._viewer = self._find_viewer(cookies)
        if self._viewer is None:
            too_many = request.body.count(b"&") >= limits.UI_FIELDS_MAX
            if body_bytes > limits.UI_LOGIN_BYTES_MAX or too_many:
                raise RequestRefused(413)
        elif body_bytes > self._counted_bytes:
            more, self._counted_bytes = body_bytes - self._counted_bytes, body_bytes
            if not self._bodies.change(self._viewer.holder, more):
                raise RequestRefused(503)

    async def read_ahead(self) -> bool:
        """Receive what the client sends while it is answered: True when it has left, False when no more is read."""
        for _ in range(limits.UI_RECEIVES_MAX):
            if len(self._unparsed) >= limits.UI_AHEAD_BYTES_MAX:
                break
            received = await self._receive()
            if not received:
                return True
            self._unparsed += received
        return False

    def release(self) -> None:
        """The request has ended, whether it was answered or refused."""
        if self._viewer is not None and self._counted_bytes:
            self._bodies.change(self._viewer.holder, -self._counted_bytes)
        self._counted_bytes = 0

    def close(self) -> None:
        self.release()
        self._parser.close()
