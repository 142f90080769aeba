"""Finds the endpoint of a request and answers what needs none: unknown paths, other methods, wrong keys.

A path is split at its slashes and walked down a tree of dicts, one step a segment; a segment in braces stands
for any value, and a literal one wins over it. The tree is built once: a request costs a few dict look-ups.

Every route carries its own error mapping and gate (the key check), so that dialects with different error
formats and authentication live side by side.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

from forq_trio.http.codes import METHOD_NOT_ALLOWED, PATH_NOT_FOUND, error_body, error_response
from forq_trio.http.message import Handler, Request, Response

Endpoint = Callable[..., Awaitable[Response]]
Gate = Callable[[Request], Response | None]
"""Looks at a request before its endpoint does; a Response refuses it, None lets it pass."""

ErrorMapping = Callable[[Exception], Response]
"""Turns an error of an endpoint into the dialect's answer; raises what it does not know, to be logged."""


class Answer(msgspec.Struct, frozen=True):
    """A successful answer, for the documentation. body: the type of its JSON; None for an empty body."""

    status: int
    meaning: str
    body: Any = None
    content_type: str = "application/json"


class Parameter(msgspec.Struct, frozen=True):
    """A query or header parameter, for the documentation. place: "query" or "header"; schema: JSON Schema."""

    name: str
    place: str
    meaning: str
    schema: dict[str, Any]


class Operation(msgspec.Struct, frozen=True):
    """What a route does, in words: the source of the OpenAPI document. codes: the errors it answers with."""

    name: str
    tag: str
    summary: str
    answers: tuple[Answer, ...]
    codes: tuple[str, ...] = ()
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Any = None


class Route(msgspec.Struct, frozen=True):
    """One method of one path, e.g. `GET /queues/{queue}`.

    endpoint: awaited with the Request and the decoded values of the segments in braces. gate: None lets
    everybody in. head: HEAD is answered like GET (the transport drops the body); False where GET has effects.
    """

    method: str
    path: str
    endpoint: Endpoint
    on_error: ErrorMapping
    operation: Operation
    gate: Gate | None = None
    head: bool = True


class _Node:
    """A position in the tree. methods: what can be done here, with the places of the path's parameters."""

    __slots__ = ("allow", "any_segment", "methods", "segments")

    def __init__(self) -> None:
        self.segments: dict[str, _Node] = {}
        self.any_segment: _Node | None = None
        self.methods: dict[str, tuple[Route, tuple[int, ...]]] = {}
        self.allow: tuple[tuple[bytes, bytes], ...] = ()


def make_handler(routes: Iterable[Route]) -> Handler:
    """The handler that serves `routes`. Raises ValueError when two of them have the same method and path.

    The handler raises only what a route's error mapping does not know, and Cancelled.
    """
    root = _build_tree(routes)

    async def handle(request: Request) -> Response:
        segments = request.path.split("/")
        node: _Node | None = root
        for segment in segments:
            node = node.segments.get(segment) or node.any_segment  # type: ignore[union-attr]
            if node is None:
                return error_response(PATH_NOT_FOUND)
        found = node.methods.get(request.method)  # type: ignore[union-attr]
        if found is None:
            return _no_such_method(node, request.method)  # type: ignore[arg-type]
        route, places = found
        if route.gate is not None and (refusal := route.gate(request)) is not None:
            return refusal
        if "%" in request.path:
            segments = [unquote(segment) for segment in segments]
        try:
            return await route.endpoint(request, *[segments[place] for place in places])
        except Exception as error:
            return route.on_error(error)

    return handle


def _build_tree(routes: Iterable[Route]) -> _Node:
    root = _Node()
    for route in routes:
        segments = route.path.split("/")
        places = tuple(place for place, segment in enumerate(segments) if segment.startswith("{"))
        node = root
        for segment in segments:
            if segment.startswith("{"):
                if node.any_segment is None:
                    node.any_segment = _Node()
                node = node.any_segment
            else:
                node = node.segments.setdefault(segment, _Node())
        methods = (route.method, "HEAD") if route.method == "GET" and route.head else (route.method,)
        for method in methods:
            if method in node.methods:
                raise ValueError(f"two routes for {method} {route.path}")
            node.methods[method] = route, places
    _finish(root)
    return root


def _finish(node: _Node) -> None:
    """Give every literal child what its sibling in braces can do beyond it, and write the Allow headers."""
    if node.any_segment is not None:
        for child in node.segments.values():
            _inherit(child, node.any_segment)
        _finish(node.any_segment)
    for child in node.segments.values():
        _finish(child)
    if node.methods:
        allow = ", ".join(sorted((*node.methods, "OPTIONS")))
        node.allow = ((b"allow", allow.encode()),)


def _inherit(literal: _Node, wildcard: _Node) -> None:
    """Let `/messages/ack/ack` reach `/messages/{id}/ack`; a literal path's own methods stay its own."""
    for segment, below in wildcard.segments.items():
        if segment in literal.segments:
            _inherit(literal.segments[segment], below)
        else:
            literal.segments[segment] = below
    if literal.any_segment is None:
        literal.any_segment = wildcard.any_segment
    if not literal.methods:
        literal.methods = wildcard.methods


def _no_such_method(node: _Node, method: str) -> Response:
    if not node.methods:
        return error_response(PATH_NOT_FOUND)
    if method == "OPTIONS":
        return Response(204, headers=node.allow)
    return Response(405, error_body(METHOD_NOT_ALLOWED), headers=node.allow)
