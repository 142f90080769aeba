"""What every request passes before the application sees it: an ASGI wrapper.

- Nothing but HTTP: a websocket is refused.
- The base path is removed; a proxy may have removed it already.
- The body is read whole, within UI_BODY_SECONDS_MAX: UI_BODY_BYTES_MAX for somebody with a session, and for others what
  a login takes. All bodies together have a budget, so that many slow ones do not fill the memory. What is too long is
  answered 413, what is too slow 408, what finds no space 503, and the connection ends.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from forq_trio.model import limits

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, _Receive, _Send], Awaitable[None]]

_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
_REASONS = {
    408: b"The request did not arrive in time.\n",
    413: b"The request is longer than it may be.\n",
    503: b"Too many requests are on their way.\n",
}


class _Refused(Exception):
    """The body is not taken; the status says why."""

    def __init__(self, status: int) -> None:
        self.status = status


class Gate:
    """Wraps an application. has_session: tells from the Cookie headers of a request whether somebody is logged in."""

    def __init__(
        self,
        app: App,
        base: str,
        has_session: Callable[[bytes], bool],
        budget_bytes: int = limits.UI_BODIES_BYTES_MAX,
    ) -> None:
        self._app = app
        self._base = base
        self._has_session = has_session
        self._budget = budget_bytes

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = self._without_base(scope)
        if scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        held = 0
        try:
            bytes_max = limits.UI_BODY_BYTES_MAX
            cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
            if not self._has_session(cookies):
                bytes_max = limits.UI_LOGIN_BYTES_MAX
            held = self._take(scope, bytes_max)
            with trio.move_on_after(limits.UI_BODY_SECONDS_MAX) as time:
                body = await _read(receive, held)
            if time.cancelled_caught:
                raise _Refused(408)
            if body is not None:
                await self._app(scope, _replay(body, receive), send)
        except _Refused as refused:
            await _refuse(send, refused.status)
        finally:
            self._budget += held

    def _take(self, scope: Any, bytes_max: int) -> int:
        """Take what the body may need from the budget; returns how much. Raises _Refused."""
        length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
        wanted = bytes_max if length is None else int(length)
        if wanted > bytes_max:
            raise _Refused(413)
        if wanted > self._budget:
            raise _Refused(503)
        self._budget -= wanted
        return wanted

    def _without_base(self, scope: Any) -> Any:
        path, base = scope["path"], self._base
        if base and (path == base or path.startswith(f"{base}/")):
            return {**scope, "path": path[len(base) :] or "/", "raw_path": b""}
        return scope


async def _read(receive: _Receive, bytes_max: int) -> bytes | None:
    """The whole body; None if the client left. Raises _Refused for one that is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > bytes_max:
            raise _Refused(413)
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: _Receive) -> _Receive:
    """A `receive` that gives the body as one message, and then what else comes."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        if messages:
            await trio.lowlevel.checkpoint()
            return messages.pop()
        return await receive()

    return again


async def _refuse(send: _Send, status: int) -> None:
    body = _REASONS[status]
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
