"""Endpoints that do no more than call: a generic function calls, and encodes the result."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.router import Respond, Route
from forq_trio.wire.endpoints.endpoint import Endpoint

MakeRoute: TypeAlias = Callable[[Endpoint[Any], Respond], Route]
"""Makes the route of an endpoint from its declaration and the function that responds."""

AnswerT = TypeVar("AnswerT")
_encode = msgspec.json.Encoder().encode


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """What these endpoints read: a member in it asks for something that they do not do."""


_read_object_without_members = BodyReader(_Nothing)


def read_nothing(body: bytes) -> None:
    """Refuse a body that is neither absent nor an object without members."""
    if body:
        _read_object_without_members(body)


def calling(
    route: MakeRoute,
    endpoint: Endpoint[AnswerT],
    call: Callable[..., Awaitable[AnswerT]],
) -> Route:
    """The route of an endpoint that responds with the result of `call`, which gets the values in the path."""
    status = endpoint.answers[0].status

    async def respond(request: Request, *segments: str) -> Response:
        if endpoint.takes_nothing:
            read_nothing(request.body)
        result = await call(*segments)
        return NO_CONTENT if status == 204 else Response(status, _encode(result))

    return route(endpoint, respond)
