"""Finds the endpoint of a request. The dialects answer unknown paths and other methods.

A path is split at its slashes and walked down a tree of dicts, one step a segment; a segment in braces matches
any value, and a literal one wins over it. The tree is built once: a request costs a few dict look-ups.

Every route has its own error mapping and gate (who may pass), so that dialects with different error formats and
authentication work side by side. The router itself answers no error.

`HttpRouter.admit` checks the head of a request before its body arrives: path, method, key and parameters.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from forq_trio.http.errors import MethodNotAllowed, PathNotFound, UnknownEncoding, UnknownParameter
from forq_trio.http.message import Request, Response
from forq_trio.model.access.types import CALLER, Scope
from forq_trio.model.endpoint import Operation
from forq_trio.model.holders import HOLDER

NOT_UTF8 = "surrogateescape"
"""Percent-encoded bytes that are not UTF-8 become lone surrogates, which every check of a text refuses. If they became
U+FFFD, two different paths would name the same thing."""

Respond = Callable[..., Awaitable[Response]]
ErrorMapping = Callable[[Exception, Request], Response]
"""Turns an error of an endpoint, a gate or the router into the dialect's answer; raises the errors it does not know."""


class Gate(Protocol):
    """Checks a request before its endpoint, and raises Unauthorized, LockedOut or Forbidden to refuse it."""

    @property
    def scope(self) -> Scope | None:
        """The scope that a token needs to pass; None if no token passes."""
        ...

    def __call__(self, request: Request) -> None: ...


class Route(msgspec.Struct, frozen=True):
    """One method of one path, e.g. `GET /queues/{queue}`."""

    method: str
    path: str
    endpoint: Respond  # awaited with the Request and the decoded values of the segments in braces
    operation: Operation[Any]
    on_error: ErrorMapping  # also answers MethodNotAllowed for its path
    gate: Gate | None = None  # None lets everybody in
    head: bool = True  # HEAD is answered like GET (the transport drops the body); False where GET has effects
    options: bool = True  # OPTIONS is answered with the path's methods; False refuses it
    in_place: bool = (
        False  # the endpoint usually waits for the writer alone, so it needs no task (in_place.py)
    )
    parameters: frozenset[str] | None = None  # the query may have these and no others; None lets any pass


class _Node:
    """A node of the tree. methods: the routes of this path, each with the places of its parameters in the path."""

    __slots__ = ("allow", "any_segment", "methods", "segments")

    def __init__(self) -> None:
        self.segments: dict[str, _Node] = {}
        self.any_segment: _Node | None = None
        self.methods: dict[str, tuple[Route, tuple[int, ...]]] = {}
        self.allow = b""

    def first_route(self) -> Route:
        """The route that answers a request with another method: all routes of a path are of one dialect."""
        return next(iter(self.methods.values()))[0]


_NOWHERE = _Node()


class HttpRouter:
    """Serves `routes`. Raises ValueError when two of them have the same method and path.

    on_unknown_path: answers PathNotFound. The methods of HttpRouter raise only Cancelled, and errors that a route's
    error mapping does not know.
    """

    __slots__ = ("_on_unknown_path", "_root")

    def __init__(self, routes: Iterable[Route], on_unknown_path: ErrorMapping) -> None:
        self._root = _build_tree(routes)
        self._on_unknown_path = on_unknown_path

    def admit(self, request: Request) -> Response | None:
        """Find the endpoint and ask its gate: an `Admit`."""
        segments = request.path.split("/")
        node = self._root
        for segment in segments:
            node = node.segments.get(segment) or node.any_segment or _NOWHERE
        if not node.methods:
            found_later = _search(self._root, segments, 0)
            if found_later is None:
                return self._on_unknown_path(PathNotFound(), request)
            node = found_later
        found = node.methods.get(request.method)
        if found is None:
            return _no_such_method(node, request)
        route, places = found
        try:
            if route.gate is not None:
                route.gate(request)
            if request.query and route.parameters is not None:
                _check_parameters(request.query, route.parameters)
        except Exception as error:
            return route.on_error(error, request)
        if "%" in request.path:
            segments = [unquote(segment, errors=NOT_UTF8) for segment in segments]
        request.route = route, [segments[place] for place in places]
        request.in_place = route.in_place
        return None

    async def __call__(self, request: Request) -> Response:
        """Answer a request, after admitting it if that was not done before: a `Handler`."""
        if request.route is None:
            refused = self.admit(request)
            if refused is not None:
                return refused
        assert request.route is not None
        work_for(request)
        route, values = request.route
        try:
            if request.body and b"content-encoding" in request.headers:
                _check_encoding(request.headers[b"content-encoding"])
            return await route.endpoint(request, *values)  # type: ignore[no-any-return]
        except Exception as error:
            return route.on_error(error, request)  # type: ignore[no-any-return]


def work_for(request: Request) -> None:
    """Have the current context work for the caller of a request, and use the share of its holder."""
    CALLER.set(request.caller)
    HOLDER.set(request.holder)


def _search(node: _Node, segments: list[str], place: int) -> _Node | None:
    """Find the node that the straight walk misses because it prefers a literal segment, as in `/messages/ack/ack`."""
    if place == len(segments):
        return node if node.methods else None
    for below in (node.segments.get(segments[place]), node.any_segment):
        found = None if below is None else _search(below, segments, place + 1)
        if found is not None:
            return found
    return None


def _build_tree(routes: Iterable[Route]) -> _Node:
    root = _Node()
    for route in routes:
        segments = route.path.split("/")
        places = tuple(place for place, segment in enumerate(segments) if segment.startswith("{"))
        node = root
        for segment in segments:
            if not segment.startswith("{"):
                node = node.segments.setdefault(segment, _Node())
            else:
                node.any_segment = node.any_segment or _Node()
                node = node.any_segment
        methods = (route.method, "HEAD") if route.method == "GET" and route.head else (route.method,)
        for method in methods:
            if method in node.methods:
                raise ValueError(f"two routes for {method} {route.path}")
            node.methods[method] = route, places
        known = (*node.methods, "OPTIONS") if node.first_route().options else node.methods
        node.allow = ", ".join(sorted(known)).encode()
    return root


def _check_parameters(query: str, known: frozenset[str]) -> None:
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise UnknownParameter(name, known)


def _check_encoding(encoding: bytes) -> None:
    if encoding.lower() not in (b"", b"identity"):
        raise UnknownEncoding


def _no_such_method(node: _Node, request: Request) -> Response:
    route = node.first_route()
    if request.method == "OPTIONS" and route.options:
        return Response(204, headers=((b"allow", node.allow),))
    return route.on_error(MethodNotAllowed(node.allow), request)
