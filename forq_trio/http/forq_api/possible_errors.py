"""The errors that a route may answer, for the OpenAPI document.

An endpoint declares the errors of its operation. The errors of its path, query, body and gate follow from the names,
types and ranges that it declares for them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from forq_trio.http.router import Route
from forq_trio.model import errors
from forq_trio.model.access.bodies import NewToken
from forq_trio.model.dead_letters.bodies import DeadLetterFilter
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.forq_error import REASONS, AnyReason, Reason
from forq_trio.model.paths import PATH_PARAMETERS
from forq_trio.model.queries import parameters_of
from forq_trio.model.queues.settings import SettingsChange

INVALID: dict[str, tuple[AnyReason, ...]] = {
    "target": (errors.InvalidQueueName,),
    "deadLetterQueue": (errors.InvalidQueueName.about("deadLetterQueue"),),
    "prefix": (errors.InvalidKey,),
    "kind": (errors.InvalidKind,),
    "confirm": (errors.WrongPhrase,),
    "content": (errors.ContentTooLarge,),
    "processAfter": (
        errors.ProcessAfterInPast,
        errors.ProcessAfterTooFar,
        errors.OutOfRange.about("processAfter"),
    ),
    "attributes": (errors.InvalidAttributes,),
    "attribute": (errors.InvalidParameter.about("attribute"), errors.InvalidAttributes),
}
"""The error of an invalid value, by its name in the query or body. Values with other names are out of range, except
those that a path may have. A part of the API adds the names that only it has."""

_MEMBERS_OF: Mapping[Any, type[errors.ForqError]] = {
    SettingsChange: errors.InvalidSetting,
    NewToken: errors.InvalidToken,
}
"""The error of a body's members, for the types of body that have one of their own."""

_BOUNDS = {"minimum", "maximum", "maxLength", "maxItems"}


def possible_errors(route: Route) -> dict[int, list[Reason]]:
    """The errors of a route by status, each once."""
    found = [*_of_request(route), *route.operation.errors]
    if isinstance(route.operation, Endpoint):
        found.append(errors.InternalError)
        if route.operation.method != "GET" or not route.operation.head:
            found.append(errors.OutcomeUnknown)
    if route.gate is not None:
        found += (errors.WrongKey, errors.TooManyWrongKeys)
        if route.gate.scope is not None:
            found.append(errors.Forbidden)
    by_status: dict[int, list[Reason]] = {}
    for code in dict.fromkeys(each.code for each in found):
        by_status.setdefault(REASONS[code].status, []).append(REASONS[code])
    if route.operation.body is not None:
        by_status[413] = [REASONS[errors.ContentTooLarge.code]]
    return by_status


def _of_request(route: Route) -> Iterator[AnyReason]:
    operation = route.operation
    in_path = re.findall(r"{(\w+)}", route.path)
    if "redriveId" in in_path:
        in_path.remove("queue")  # a task of another queue is not found, whatever its name
    for name in in_path:
        yield from _refused_with(name)
    if operation.body is not None or (isinstance(operation, Endpoint) and operation.takes_nothing):
        yield errors.InvalidRequest
        yield errors.UnknownMember
    if operation.body is not None:
        yield from _of_body(operation.body)
    if operation.query is not None:
        for parameter in parameters_of(operation.query):
            yield from _of_parameter(parameter.name, parameter.schema)
    if route.parameters is not None:
        yield errors.UnknownQueryParameter
    if route.method in ("POST", "PUT", "PATCH"):
        yield errors.UnknownContentEncoding


def _refused_with(name: str) -> tuple[AnyReason, ...]:
    if name in INVALID:
        return INVALID[name]
    return (PATH_PARAMETERS[name].error.about(name),) if name in PATH_PARAMETERS else ()


def _of_body(body: Any) -> Iterator[AnyReason]:
    """The errors of the members of a body, at any depth."""
    own = _MEMBERS_OF.get(body)
    if own is not None:
        yield from own.members.values()
        return
    _, components = msgspec.json.schema_components([body])
    for kind, component in components.items():
        possible = _of_filter if kind == DeadLetterFilter.__name__ else _of_value
        for name, schema in component.get("properties", {}).items():
            yield from possible(name, schema)


def _of_parameter(name: str, schema: Mapping[str, Any]) -> tuple[AnyReason, ...]:
    if "enum" in schema or schema["type"] == "boolean":
        return (errors.InvalidParameter.about(name),)
    return _of_filter(name, schema)


def _of_filter(name: str, schema: Mapping[str, Any]) -> tuple[AnyReason, ...]:
    """The errors of a member of a filter. All texts that are too long have the same code."""
    if not _refused_with(name) and any("maxLength" in each for each in (schema, *schema.get("anyOf", ()))):
        return (errors.OutOfRange,)
    return _of_value(name, schema)


def _of_value(name: str, schema: Mapping[str, Any]) -> tuple[AnyReason, ...]:
    if own := _refused_with(name):
        return own
    is_bounded = any(_BOUNDS & each.keys() for each in (schema, *schema.get("anyOf", ())))
    return (errors.OutOfRange.about(name),) if is_bounded else ()
