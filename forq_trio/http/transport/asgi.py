"""Our handlers as an ASGI application, for Hypercorn: one call is one request.

Security headers and the date are added by the server's configuration (`http2`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from forq_trio.http.message import Handler, Request, Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.body_budget import BodyBudget
from forq_trio.http.transport.config import Refuse, TransportConfig
from forq_trio.http.transport.response_bytes import WITHOUT_BODY

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# The key of the Exchange in a request's ASGI scope.
EXCHANGE = "forq_trio.exchange"

# A body that waits for its client: the response's, and Hypercorn's copy.
COPIES = 2


class _ClientGone(Exception):
    """The client disconnected before its request was complete."""


class Exchange:
    """A running request. The server calls `lost` when the client will not get the whole response."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.is_lost = False
        self._cancel_when_lost = False

    def lost(self) -> None:
        self.is_lost = True
        if self._cancel_when_lost:
            self.scope.cancel()

    @asynccontextmanager
    async def cancelled_when_lost(self) -> AsyncIterator[None]:
        """In the body the loss of the client cancels the request; also if it was lost before."""
        self._cancel_when_lost = True
        if self.is_lost:
            self.scope.cancel()
        try:
            yield
        finally:
            self._cancel_when_lost = False


class HandlerApp:
    """The ASGI application around a handler."""

    def __init__(
        self,
        handler: Handler,
        config: TransportConfig,
        budget: BodyBudget,
        answers: AnswerBudget,
        on_error: Callable[[Exception], None],
        refuse: Refuse,
    ) -> None:
        self._handler = handler
        self._config = config
        self._budget = budget
        self._answers = answers
        self._on_error = on_error
        self._refuse = refuse

    async def __call__(self, cut: Callable[[], None], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. cut: ends the connection of a client that does not read."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        if scope["type"] != "http":
            return
        exchange = scope[EXCHANGE] = Exchange()
        with exchange.scope:
            try:
                response = await self._respond(scope, receive, exchange)
            except _ClientGone:
                return
            response = self._answers.admit(scope["method"], _path(scope), response, self._refuse, COPIES)
            try:
                if not await self._send(response, scope["method"] == "HEAD", send, exchange):
                    cut()
            finally:
                self._answers.end(len(response.body), COPIES)

    async def _respond(self, scope: Scope, receive: Receive, exchange: Exchange) -> Response:
        body = bytearray()
        refused = 408
        try:
            with trio.move_on_after(self._config.body_seconds):
                refused = await self._read_body(receive, body)
            if refused:
                return self._refuse(refused, scope["method"], _path(scope))
            return await self._handler(_request(scope, bytes(body), exchange))
        except _ClientGone:
            raise
        except Exception as error:
            self._on_error(error)
            return self._refuse(500, scope["method"], _path(scope))
        finally:
            self._budget.change(-len(body))

    async def _read_body(self, receive: Receive, body: bytearray) -> int:
        """Fill `body` and return 0, or the status that refuses it.

        A refused body is read to its end all the same, or the connection would stall.
        """
        refused = 0
        more = True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise _ClientGone
            more = event.get("more_body", False)
            if refused:
                continue
            portion = event.get("body", b"")
            body += portion
            within_budget = self._budget.change(len(portion))
            if len(body) > self._config.body_bytes_max:
                refused = 413
            elif not within_budget:
                refused = 503
            if refused:
                self._budget.change(-len(body))
                body.clear()
        return refused

    async def _send(self, response: Response, omit_body: bool, send: Send, exchange: Exchange) -> bool:
        """Send the whole response; False when the client has not read it in time."""
        sent = False
        try:
            with trio.move_on_after(self._config.send_seconds) as deadline:
                async with exchange.cancelled_when_lost():
                    await trio.lowlevel.checkpoint_if_cancelled()
                    await send(
                        {
                            "type": "http.response.start",
                            "status": response.status,
                            "headers": _headers(response),
                        }
                    )
                    await send({"type": "http.response.body", "body": b"" if omit_body else response.body})
            sent = not exchange.is_lost and not deadline.cancelled_caught
        finally:
            if not sent and response.on_unsent is not None:
                response.on_unsent()
        return not deadline.cancelled_caught


def _request(scope: Scope, body: bytes, exchange: Exchange) -> Request:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        name = name.lower()
        headers[name] = headers[name] + b", " + value if name in headers else value
    client = scope.get("client")
    return Request(
        scope["method"],
        _path(scope),
        scope["query_string"].decode("latin-1"),
        headers,
        body,
        client[0] if client else "",
        exchange.cancelled_when_lost,
    )


def _path(scope: Scope) -> str:
    path: bytes = scope["raw_path"]
    return path.decode("latin-1")


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    headers = [(name.lower(), value) for name, value in response.headers]
    if response.status not in WITHOUT_BODY:
        headers.append((b"content-type", response.content_type))
        headers.append((b"content-length", b"%d" % len(response.body)))
    return headers
