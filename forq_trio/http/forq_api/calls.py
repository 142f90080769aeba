"""Endpoints that only decode, call and encode: one generic function does this, as the endpoint declares."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, overload

from msgspec import Struct
from msgspec.structs import asdict

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Respond, Route
from forq_trio.model.access import Principal
from forq_trio.wire.endpoints.endpoint import Endpoint

MakeRoute: TypeAlias = Callable[[Endpoint[Any], Respond], Route]
"""Makes the route of an endpoint from its declaration and the function that responds."""

AboutCaller: TypeAlias = Callable[[Principal], Mapping[str, Any]]
"""What a call has to know about the caller of the request, as keyword arguments."""

Check: TypeAlias = Callable[..., Awaitable[None]]
"""Raises Forbidden for a request that its gate could not judge; gets the request, and the values in its path."""

AnswerT = TypeVar("AnswerT")


class _Nothing(Struct, forbid_unknown_fields=True):
    """The body of endpoints without members: any member is refused."""


def with_key(principal: Principal) -> Mapping[str, Any]:
    """The key that was used."""
    return {"key": principal.key}


def with_starter(principal: Principal) -> Mapping[str, Any]:
    """The name of the access token; None for the server's secret."""
    return {"started_by": principal.key.name or None}


@overload
def calling(
    route: MakeRoute,
    endpoint: Endpoint[AnswerT],
    call: Callable[..., Awaitable[AnswerT]],
    *,
    about_caller: AboutCaller | None = ...,
    check: Check | None = ...,
    headers: tuple[tuple[bytes, bytes], ...] = ...,
) -> Route: ...


@overload
def calling(
    route: MakeRoute, endpoint: Endpoint[Any], call: Callable[..., Awaitable[Any]], *, wraps: Literal[True]
) -> Route: ...


def calling(
    route: MakeRoute,
    endpoint: Endpoint[Any],
    call: Callable[..., Awaitable[Any]],
    *,
    wraps: bool = False,
    about_caller: AboutCaller | None = None,
    check: Check | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Route:
    """The route of an endpoint that responds with the result of `call`.

    `call` gets the values in the path in their order, and the members of the declared body by their names; a body may
    be absent if all of its members may. wraps: the result is the one member of the declared answer. headers: of the
    answer.
    """
    status, answer = endpoint.answers[0].status, endpoint.answers[0].body
    read = _reader(endpoint)

    async def respond(request: Request, *segments: str) -> Response:
        arguments = read(request.body)
        if check is not None:
            await check(request, *segments)
        if about_caller is not None:
            arguments |= about_caller(request.principal)
        result = await call(*segments, **arguments)
        if status == 204:
            return NO_CONTENT
        return json_response(answer(result) if wraps else result, status, headers)

    return route(endpoint, respond)


def _reader(endpoint: Endpoint[Any]) -> Callable[[bytes], dict[str, Any]]:
    """Reads the body of a request to keyword arguments."""
    body: type[Struct] | None = _Nothing if endpoint.takes_nothing else endpoint.body
    if body is None:
        return lambda raw: {}
    read: BodyReader[Struct] = BodyReader(body)
    may_be_absent = len(body.__struct_defaults__) == len(body.__struct_fields__)
    return lambda raw: asdict(read(raw)) if raw or not may_be_absent else {}
