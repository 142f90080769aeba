"""Finding the endpoint: paths, methods, OPTIONS, HEAD, percent-encoding, and errors nobody expected."""

from typing import Any

import pytest

from forq_trio.http.errors import HttpError, Unauthorized
from forq_trio.http.message import Handler, Request, Response
from forq_trio.http.router import ErrorMapping, HttpRouter, Route
from forq_trio.model.endpoint import Operation
from support.forq_api import Api, blamed, json_of, make_request

OPERATION = Operation(name="test", tag="Test", summary="A test", answers=())
NOWHERE = (418, "nobody: PathNotFound")


def say(name: str) -> Any:
    async def endpoint(request: Request, *values: str) -> Response:
        return Response(200, "|".join((name, *values)).encode(errors="backslashreplace"))

    return endpoint


def in_words(dialect: str) -> ErrorMapping:
    """Answers what HTTP refuses with the name of the error; raises all else."""

    def answer_error(error: Exception, request: Request) -> Response:
        if not isinstance(error, HttpError):
            raise error
        return Response(418, f"{dialect}: {type(error).__name__}".encode(), headers=error.headers)

    return answer_error


def route(
    method: str, path: str, endpoint: Any = None, on_error: ErrorMapping | None = None, **more: Any
) -> Route:
    endpoint = endpoint or say(f"{method} {path}")
    return Route(method, path, endpoint, OPERATION, on_error or in_words("test"), **more)


def serve(routes: list[Route]) -> Handler:
    return HttpRouter(routes, in_words("nobody"))


async def answer(handler: Any, path: str, method: str = "GET") -> tuple[int, str]:
    response = await handler(make_request(method, path))
    return response.status, response.body.decode()


async def test_literal_segments_win_over_those_in_braces():
    handler = serve([route("GET", "/a/{x}"), route("GET", "/a/b"), route("GET", "/a/{x}/{y}")])
    assert await answer(handler, "/a/b") == (200, "GET /a/b")
    assert await answer(handler, "/a/c") == (200, "GET /a/{x}|c")
    assert await answer(handler, "/a/c/d") == (200, "GET /a/{x}/{y}|c|d")


async def test_a_literal_segment_hides_nothing_below_its_sibling_in_braces():
    handler = serve([route("GET", "/a/b"), route("GET", "/a/{x}/c"), route("GET", "/a/b/d")])
    assert await answer(handler, "/a/b/c") == (200, "GET /a/{x}/c|b")
    assert await answer(handler, "/a/b/d") == (200, "GET /a/b/d")
    assert await answer(handler, "/a/x/d") == NOWHERE


async def test_neighbours_do_not_lend_each_other_their_paths():
    handler = serve([route("GET", "/{x}/c"), route("GET", "/a/{z}/d"), route("GET", "/a/b")])
    assert await answer(handler, "/a/c") == (200, "GET /{x}/c|a")
    assert await answer(handler, "/a/c/d") == (200, "GET /a/{z}/d|c")
    assert await answer(handler, "/w/c/d") == NOWHERE
    assert await answer(handler, "/w/b") == NOWHERE


async def test_an_empty_segment_is_a_value():
    handler = serve([route("GET", "/a/{x}/b")])
    assert await answer(handler, "/a//b") == (200, "GET /a/{x}/b|")


async def test_segments_are_decoded_after_they_are_split():
    handler = serve([route("GET", "/a/{x}")])
    assert await answer(handler, "/a/%41%2Fb%C3%BC") == (200, "GET /a/{x}|A/bü")
    assert await answer(handler, "/a/%FF") == (200, r"GET /a/{x}|\udcff")
    assert await answer(handler, "/a/100%") == (200, "GET /a/{x}|100%")


async def test_two_routes_for_the_same_thing():
    with pytest.raises(ValueError, match=r"two routes for GET /a/\{y\}"):
        serve([route("GET", "/a/{x}"), route("GET", "/a/{y}")])


async def test_an_unexpected_error_is_left_to_the_transport():
    async def fail(request: Request) -> Response:
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        await serve([route("GET", "/a", fail)])(make_request("GET", "/a"))


async def test_an_error_goes_to_the_mapping_of_its_own_route():
    async def fail(request: Request) -> Response:
        raise KeyError("known")

    mapped = route("GET", "/a", fail, on_error=lambda error, request: Response(418, repr(error).encode()))
    assert await answer(serve([mapped]), "/a") == (418, "KeyError('known')")


async def test_a_gate_is_asked_first():
    def gate(request: Request) -> None:
        if request.client == "evil":
            raise Unauthorized

    handler = serve([route("GET", "/a", gate=gate)])
    assert await answer(handler, "/a") == (200, "GET /a")
    refused = await handler(make_request("GET", "/a", client="evil"))
    assert (refused.status, refused.body) == (418, b"test: Unauthorized")


async def test_each_dialect_refuses_other_methods_of_its_own_paths():
    handler = serve(
        [
            route("GET", "/a", on_error=in_words("one")),
            route("POST", "/a/b", on_error=in_words("two"), options=False),
        ]
    )
    for path, method, body, allow in [
        ("/a", "POST", b"one: MethodNotAllowed", b"GET, HEAD, OPTIONS"),
        ("/a", "OPTIONS", b"", b"GET, HEAD, OPTIONS"),
        ("/a/b", "GET", b"two: MethodNotAllowed", b"POST"),
        ("/a/b", "OPTIONS", b"two: MethodNotAllowed", b"POST"),
    ]:
        response = await handler(make_request(method, path))
        assert (response.status, response.body) == (418 if body else 204, body)
        assert response.headers == ((b"allow", allow),)


UNKNOWN_PATHS = [
    "/",
    "",
    "*",
    "/api",
    "/api/v1",
    "/api/v1/queue",
    "/api/v2/queues",
    "/api/v1/queues/q/message",
    "/api/v1/queues/q/messages/",
    "/api/v1/queues/q/messages/x/y",
    "/api/v1/queues/q/messages/x/ack/z",
    "/API/v1/queues",
    "//api/v1/queues",
    "/api/v1/queues/q%2Fmessages/batch",
    "/healthcheck/",
]


async def test_unknown_paths(api: Api):
    for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT"):
        for path in UNKNOWN_PATHS:
            if not path.endswith("/messages/"):
                response = await api.handler(make_request(method, path, headers={}))
                found = response.status, blamed(json_of(response))
                assert found == (404, {"code": "not_found.path"}), (method, path)


ALLOWED = {
    "/api/v1/queues": b"GET, HEAD, OPTIONS",
    "/api/v1/queues/q": b"DELETE, GET, HEAD, OPTIONS",
    "/api/v1/queues/q/settings": b"DELETE, GET, HEAD, OPTIONS, PUT",
    "/api/v1/queues/q/purge": b"OPTIONS, POST",
    "/api/v1/queues/q/messages": b"GET, OPTIONS, POST",
    "/api/v1/queues/q/messages/batch": b"OPTIONS, POST",
    "/api/v1/queues/q/messages/x": b"DELETE, GET, HEAD, OPTIONS",
    "/api/v1/queues/q/messages/x/ack": b"OPTIONS, POST",
    "/api/v1/queues/q/peek": b"GET, HEAD, OPTIONS",
    "/healthcheck": b"GET, HEAD, OPTIONS",
    "/livez": b"GET, HEAD, OPTIONS",
    "/metrics": b"GET, HEAD, OPTIONS",
    "/openapi.json": b"GET, HEAD, OPTIONS",
}


async def test_options_and_other_methods(api: Api):
    for path, allow in ALLOWED.items():
        response = await api.handler(make_request("OPTIONS", path, headers={}))
        assert (response.status, response.body, response.headers) == (204, b"", ((b"allow", allow),)), path
        for method in {"PUT", "DELETE", "PATCH", "TRACE", "QUERY", "get"} - set(allow.decode().split(", ")):
            response = await api.handler(make_request(method, path, headers={}))
            assert (response.status, json_of(response)["code"]) == (405, "method_not_allowed")
            assert dict(response.headers)[b"allow"] == allow


async def test_head_is_answered_like_get(api: Api):
    for path in ("/api/v1/queues", "/api/v1/queues/q", "/api/v1/queues/q/peek", "/openapi.json"):
        get, head = await api.call("GET", path), await api.call("HEAD", path)
        assert (head.status, head.body, head.content_type) == (get.status, get.body, get.content_type), path


async def test_head_never_takes_a_message(api: Api):
    await api.send("m")
    assert (await api.call("HEAD", "q/messages")).status == 405
    assert (await api.receive())["content"] == "m"
