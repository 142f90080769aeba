"""The OpenAPI 3.1 document, made from the routes themselves, and the two paths that serve it."""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from types import NoneType
from typing import Any

import msgspec

from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.openapi_schemas import complete, known_words, schemas_of
from forq_trio.http.forq_api.possible_errors import possible_errors
from forq_trio.http.forq_api.refusals import is_forqs_path
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.endpoint import TOPICS, Answer, Header, Operation
from forq_trio.model.error_answers import FIELD_HEADER, MESSAGE_HEADER
from forq_trio.model.forq_error import Reason
from forq_trio.model.paths import PATH_PARAMETERS
from forq_trio.model.queries import parameters_of
from forq_trio.model.schedules.errors import InvalidCron

PATHS = ("/api/v1/openapi.json", "/openapi.json")

_DESCRIPTION = """\
A durable message queue: Forq's API, which its published clients use unchanged, and additions beside it.

Times are milliseconds since the Unix epoch, durations milliseconds. Unknown members of a body are refused,
except in a send of one message that has only Forq's own. Errors are `{"code", "field", "message"}`, on Forq's own
routes `{"code"}` alone. Any path answers OPTIONS with its methods, and a GET without effects also HEAD.
"""
_SCHEMES = {
    "ApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "FORQ_AUTH_SECRET, or an access token with the scope named; for /metrics "
        "FORQ_METRICS_AUTH_SECRET.",
    },
    "Bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "The same secret or token, in the Authorization header.",
    },
}
_CODE = (
    "What is wrong, for programs: one of `x-extensible-enum`. Later servers have further ones: treat them by their"
    " status."
)
_ERROR_MEMBERS = {
    "field": {
        "type": "string",
        "description": "What to blame: a path into the body such as $.priority, or a parameter or header.",
    },
    "message": {"type": "string", "description": "What is wrong, for people."},
}
_PLACE = {
    "type": "object",
    "description": "Where the cron expression is wrong.",
    "required": ["field", "from", "to", "allowed"],
    "properties": {
        "field": {
            "type": "integer",
            "minimum": 0,
            "maximum": 6,
            "description": "Its field, from 1; 0 for the whole.",
        },
        "from": {
            "type": "integer",
            "minimum": 0,
            "maximum": limits.CRON_LENGTH_MAX,
            "description": "Its first character, from 0.",
        },
        "to": {
            "type": "integer",
            "minimum": 0,
            "maximum": limits.CRON_LENGTH_MAX,
            "description": "Behind its last character.",
        },
        "allowed": {"type": "string", "description": "What may be there."},
    },
}
_ERROR_HEADERS = {
    FIELD_HEADER: {"description": "`field` of the error.", "schema": {"type": "string"}},
    MESSAGE_HEADER: {"description": "`message` of the error.", "schema": {"type": "string"}},
}
_DOCUMENT = Operation(
    name="openapi",
    tag="Operation",
    summary="The OpenAPI document",
    description="This description of the API, for programs. Needs no key.",
    answers=(Answer(200, "OpenAPI 3.1.", dict[str, Any]),),
)


def openapi_routes(documented: Iterable[Route], version: str) -> list[Route]:
    """Routes that serve the document about `documented` and themselves. version: the server's.

    The document is made at the first request, because that takes some milliseconds, and most servers are never asked.
    """

    @functools.cache
    def body() -> bytes:
        return msgspec.json.encode(build_document(described, version))

    async def document(request: Request) -> Response:
        return Response(200, body())

    names = ("openapi", "openapiAtRoot")
    routes = [
        Route(
            "GET",
            path,
            document,
            msgspec.structs.replace(_DOCUMENT, name=name),
            answer_error,
            parameters=_DOCUMENT.query_names,
        )
        for path, name in zip(PATHS, names, strict=True)
    ]
    described = [*documented, *routes]
    return routes


def build_document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The document as plain values."""
    bodies = [route.operation.body for route in routes if route.operation.body is not None]
    described = [answer for route in routes for answer in route.operation.answers]
    answers = [each.body for each in described if each.body is not NoneType]
    answers += [each.full for each in described if each.full is not None]
    schema_of, components = schemas_of(bodies, answers)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    responses = _share_errors([operation for path in paths.values() for operation in path.values()])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "forq-trio",
            "version": version,
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": name, "description": TOPICS[name]}
            for name in dict.fromkeys(route.operation.tag for route in routes)
        ],
        "paths": paths,
        "components": {"schemas": components, "responses": responses, "securitySchemes": _SCHEMES},
    }


@functools.cache
def _examples() -> Any:
    # Only here: most servers are never asked for the document, and the examples are a module for each topic.
    from forq_trio.http.forq_api import examples

    return examples


def _share_errors(operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put a component in the place of each error that several operations answer alike, and return these.

    A component has the name of its status, if it is the only one of that; else that of the first operation, too.
    """
    found = [
        (operation, status, msgspec.json.encode(response))
        for operation in operations
        for status, response in operation["responses"].items()
        if int(status) >= 400
    ]
    uses = Counter(text for _, _, text in found)
    different = Counter(status for status, _ in {(status, text) for _, status, text in found})
    names: dict[bytes, str] = {}
    shared: dict[str, Any] = {}
    for operation, status, text in found:
        if uses[text] > 1:
            phrase = _phrase(int(status)).replace(" ", "")
            name = operation["operationId"]
            of = "" if different[status] == 1 else f"Of{name[0].upper()}{name[1:]}"
            named = names.setdefault(text, f"{phrase}{of}")
            shared[named] = operation["responses"][status]
            operation["responses"][status] = {"$ref": f"#/components/responses/{named}"}
    return shared


def _operation(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    operation = route.operation
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": _security(route),
        "responses": _responses(route, schema_of),
    }
    if operation.description:
        described["description"] = operation.description
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", route.path)]
    if operation.query is not None:
        parameters += [
            _parameter(each.name, "query", each.meaning, each.schema)
            for each in parameters_of(operation.query)
        ]
    parameters += [_parameter(each.name, "header", each.meaning, each.schema) for each in operation.headers]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": schema_of[operation.body], "example": _examples().BODIES[operation.name]}
        described["requestBody"] = {
            "required": operation.needs_body,
            "content": {operation.body_type: content},
        }
    return described


def _security(route: Route) -> list[dict[str, list[str]]]:
    """The security schemes, any of which suffices. A token needs the scope; the secret needs none."""
    if route.gate is None:
        return []
    if route.gate.scope is None:
        return [{"ApiKey": []}]
    return [{"ApiKey": [route.gate.scope.value]}, {"Bearer": [route.gate.scope.value]}]


def _path_parameter(name: str) -> dict[str, Any]:
    declared = PATH_PARAMETERS[name]
    return _parameter(name, "path", declared.meaning, declared.schema) | {"required": True}


def _parameter(name: str, place: str, meaning: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(schema)
    complete(whole)
    return {"name": name, "in": place, "required": False, "description": meaning, "schema": whole}


def _responses(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for answer in route.operation.answers:
        response = responses.setdefault(str(answer.status), {"description": answer.meaning})
        if answer.body is not NoneType:
            schema = schema_of[answer.body]
            if answer.full is not None:
                schema = {
                    "anyOf": [schema_of[answer.full], schema]
                }  # the wider one first: the other takes all
            content = response.setdefault("content", {})[answer.content_type] = {"schema": schema}
            examples, name = _examples().ANSWERS, route.operation.name
            if name in examples:
                content["example"] = examples.get(f"{name} {answer.status}", examples[name])
        if answer.headers:
            response["headers"] = {each.name: _header(each) for each in answer.headers}
    for status, listed in sorted(possible_errors(route).items()):
        responses[str(status)] = _error(status, listed, like_forq=is_forqs_path(route.path))
    return responses


def _phrase(status: int) -> str:
    """The name of a status in RFC 9110; Python has an older one of 413 before 3.13."""
    return "Content Too Large" if status == 413 else HTTPStatus(status).phrase


def _header(header: Header) -> dict[str, Any]:
    schema = dict(header.schema)
    complete(schema)
    return {"description": header.meaning, "required": header.always, "schema": schema}


def _error(status: int, listed: list[Reason], *, like_forq: bool) -> dict[str, Any]:
    """An error; like_forq: with `field` and `message` in headers instead of the body."""
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["code"] if like_forq else ["code", "message"],
        "properties": {"code": {**known_words([each.code for each in listed]), "description": _CODE}}
        | _ERROR_MEMBERS,
    }
    if any(each.code == InvalidCron.code for each in listed):
        schema["properties"]["place"] = _PLACE
    error: dict[str, Any] = {
        "description": "\n".join(
            [_phrase(status), *(f"- `{code}`: {meaning}" for code, _, meaning in listed)]
        ),
        "content": {"application/json": {"schema": schema}},
    }
    headers = dict(_ERROR_HEADERS) if like_forq else {}
    if status in (429, 503):
        headers["Retry-After"] = {
            "description": "Seconds to wait before the next try.",
            "schema": {"type": "integer", "minimum": 1, "format": "int64"},
        }
    return {**error, "headers": headers} if headers else error
