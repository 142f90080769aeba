"""Removes the base path from requests, before the application sees them; a proxy may have removed it already."""

from collections.abc import Awaitable, Callable
from typing import Any

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, _Receive, _Send], Awaitable[None]]


class BasePath:
    """Wraps an ASGI application. base: without a slash at its end, "" for none."""

    def __init__(self, app: App, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        path, base = scope.get("path", ""), self._base
        if base and (path == base or path.startswith(f"{base}/")):
            scope = {**scope, "path": path[len(base) :] or "/", "raw_path": b""}
        await self._app(scope, receive, send)
