"""One request and one response, the same for every transport (HTTP/1.1, HTTP/2).

Handlers see only these. A transport makes the Request when its head is whole and has it admitted; then it takes the
body, awaits the handler, writes the Response, and calls `response.on_unsent` when it could not write the whole response
to the client's socket.
"""

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from forq_trio.model.access.types import EVERYBODY
from forq_trio.model.holders import OWNER, Holder, at_address

JSON = b"application/json"


class Response:
    """Status, headers and body.

    on_unsent: called (synchronously, at most once) if the client did not get the response; undoes the request.
    """

    __slots__ = ("body", "content_type", "headers", "on_unsent", "status")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        content_type: bytes = JSON,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        on_unsent: Callable[[], None] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.on_unsent = on_unsent


NO_CONTENT = Response(204)
encode_json = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """A response with `value` as JSON."""
    return Response(status, encode_json(value), headers=headers)


def nothing_done() -> None:
    """An `on_unsent` for the answer to a POST or the like that changed nothing, so that nothing has to be undone."""


class Request:
    """A request: its head, and its body once the request was admitted and is whole.

    path: as sent, percent-encoded, without the query. headers: names in lower case; a repeated header's values are
    joined with ", ". client: the peer's IP address. watch: makes the context manager of `cancelled_on_disconnect`.
    principal: the rights of the request. holder: the client whose share of the server it uses. caller: see
    `model.access.CALLER`. The route's gate sets these three. route: its route, with the values in its path; in_place:
    whether its handler may run without a task (in_place.py). The router sets these two when it admits the request.
    noted: what the gate found out and its endpoint needs, too.
    """

    __slots__ = (
        "body",
        "caller",
        "client",
        "headers",
        "holder",
        "in_place",
        "method",
        "noted",
        "path",
        "principal",
        "query",
        "route",
        "watch",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[bytes, bytes],
        body: bytes,
        client: str,
        watch: "Callable[[], AbstractAsyncContextManager[None]]",
        holder: Holder | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.client = client
        self.watch = watch
        self.principal = EVERYBODY
        self.holder = holder or at_address(client)
        self.caller = client
        self.route: tuple[Any, list[str]] | None = None
        self.in_place = False
        self.noted: Any = None

    def cancelled_on_disconnect(self) -> AbstractAsyncContextManager[None]:
        """`async with` around a long wait: cancels the handler as soon as the client disconnects.

        Outside of it a disconnect is only noticed when the response is written, which costs short requests nothing.
        """
        return self.watch()


Handler = Callable[[Request], Coroutine[Any, Any, Response]]

Admit = Callable[[Request], Response | None]
"""Checks a request by its head, before its body is taken: None, or the answer that refuses it. Does not wait."""


def admit_everybody(request: Request) -> None:
    """An `Admit` for handlers that ask for no key."""
    request.holder = OWNER
