"""Endpoints that decode a request, call one function and encode its result: one generic function serves them all."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

from msgspec import Struct
from msgspec.structs import asdict

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.reading import number_of_path
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Respond, Route
from forq_trio.model.access.types import Principal
from forq_trio.model.endpoint import CommandEndpoint, Endpoint
from forq_trio.model.forq_error import ForqError
from forq_trio.model.member_names import python_name
from forq_trio.model.paths import PATH_PARAMETERS

MakeRoute: TypeAlias = Callable[[Endpoint[Any], Respond], Route]
"""Makes the route of an endpoint from its declaration and the function that responds."""

AboutCaller: TypeAlias = Callable[[Principal], Mapping[str, Any]]
"""Makes the keyword arguments that tell a call who sent the request."""

Check: TypeAlias = Callable[..., Awaitable[None]]
"""Raises Forbidden where the gate alone cannot decide; gets the request, and the values in its path."""

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
    route: MakeRoute,
    endpoint: Endpoint[AnswerT],
    call: Callable[..., Awaitable[AnswerT | None]],
    *,
    absent: type[ForqError],
) -> Route: ...


@overload
def calling(
    route: MakeRoute,
    endpoint: Endpoint[Any],
    call: Callable[..., Awaitable[Any]],
    *,
    wraps: Literal[True],
    about_caller: AboutCaller | None = ...,
) -> Route: ...


@overload
def calling(
    route: MakeRoute,
    endpoint: Endpoint[Any],
    call: Callable[..., Awaitable[tuple[bytes, int | None]]],
    *,
    lines: Literal[True],
) -> Route: ...


def calling(
    route: MakeRoute,
    endpoint: Endpoint[Any],
    call: Callable[..., Awaitable[Any]],
    *,
    wraps: bool = False,
    lines: bool = False,
    absent: type[ForqError] | None = None,
    about_caller: AboutCaller | None = None,
    check: Check | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Route:
    """The route of an endpoint that responds with the result of `call`.

    `call` gets the values in the path by position, and the parameters of the query and the members of the body by name.
    A body that is left out has the defaults of its members. wraps: the result becomes the only member of the declared
    answer.
    lines: the result is lines of JSON, and where the next page begins. absent: the error to raise when the result is
    None. headers: those of the answer.
    """
    status, answer = endpoint.answers[0].status, endpoint.answers[0].body
    read_query = None if endpoint.query is None else QueryReader(endpoint.query)
    read_body, read_path = _body_reader(endpoint), _path_reader(endpoint)

    async def respond(request: Request, *segments: str) -> Response:
        arguments = {} if read_query is None else read_query(request.query).arguments()
        values = segments if read_path is None else read_path(segments)
        arguments |= read_body(request.body)
        if check is not None:
            await check(request, *segments)
        if about_caller is not None:
            arguments |= about_caller(request.principal)
        result = await call(*values, **arguments)
        if status == 204:
            return NO_CONTENT
        if lines:
            return lines_answer(*result)
        if result is None and absent is not None:
            raise absent
        return json_response(answer(result) if wraps else result, status, headers)

    return route(endpoint, respond)


def performing(route: MakeRoute, endpoint: CommandEndpoint[AnswerT], broker: Broker) -> Route:
    """The route of an endpoint that is one command."""
    names = [python_name(name) for name in endpoint.path_names]

    async def perform(*values: object, **arguments: object) -> AnswerT:
        return await broker.perform(endpoint, **dict(zip(names, values, strict=True)), **arguments)

    return calling(route, endpoint, perform)


def _body_reader(endpoint: Endpoint[Any]) -> Callable[[bytes], dict[str, Any]]:
    """A function that makes keyword arguments of a body."""
    body: type[Struct] | None = _Nothing if endpoint.takes_nothing else endpoint.body
    if body is None:
        return lambda raw: {}
    read: BodyReader[Struct] = BodyReader(body)
    needed = endpoint.needs_body and not endpoint.takes_nothing
    return lambda raw: asdict(read(raw)) if raw or needed else {}


def _path_reader(endpoint: Endpoint[Any]) -> Callable[[Sequence[str]], Sequence[object]] | None:
    """A function that converts the values in a path; None if all of them are texts."""
    kinds = [PATH_PARAMETERS[name].schema["type"] for name in endpoint.path_names]
    if "integer" not in kinds:
        return None
    readers = [number_of_path if kind == "integer" else str for kind in kinds]
    return lambda segments: [read(each) for read, each in zip(readers, segments, strict=True)]
