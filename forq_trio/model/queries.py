"""A query is declared as a Struct, like a body. The server reads it, clients write it, the document lists it.

A member is a parameter, by its name in JSON. Its default applies to a query without the parameter; None: there is no
value then. Numbers and texts are written as they are, truth values as `true` or `false`, and a dict as `key:value`,
repeated.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import asdict


class Query(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all queries; without members for an endpoint that takes no parameters."""

    def arguments(self) -> dict[str, Any]:
        """The query as arguments, by name, of the method that the endpoint calls."""
        return asdict(self)

    def given(self) -> dict[str, object]:
        """The parameters that differ from their defaults, by name, in the form for `urlencode`."""
        absent = _without_parameters(type(self))
        found: dict[str, object] = {}
        for member, name in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value = getattr(self, member)
            if value is not None and value != getattr(absent, member):
                found[name] = _written(value)
        return found


class Parameter(Struct, frozen=True):
    """A parameter of a query, for the document and for what reads it.

    An "array" is a dict, whose items are `key:value`.
    """

    name: str
    member: str  # its name in Python
    meaning: str
    schema: dict[str, Any]  # JSON Schema


@cache
def parameters_of(query: type[Query]) -> tuple[Parameter, ...]:
    """The parameters of a query, in their order."""
    described = msgspec.json.schema(query)["$defs"][query.__name__]["properties"]
    hints = get_type_hints(query, include_extras=True)
    members = zip(query.__struct_fields__, query.__struct_encode_fields__, strict=True)
    return tuple(_parameter(name, member, described[name], hints[member]) for member, name in members)


@cache
def _without_parameters(query: type[Query]) -> Query:
    return query()


def _written(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return [f"{key}:{each}" for key, each in value.items()]
    return value


def _parameter(name: str, member: str, described: Mapping[str, Any], hint: object) -> Parameter:
    schema = dict(described)
    if schema["default"] is None:
        (schema,) = (dict(each) for each in described["anyOf"] if each.get("type") != "null")
    meaning = schema.pop("description")
    if "enum" in schema:  # msgspec sorts them
        schema = {**schema, "type": "string", "enum": list(_words(hint))}
    elif schema["type"] == "object":
        del schema["additionalProperties"], schema["default"]
        schema |= {"type": "array", "items": {"type": "string", "pattern": "^.+:"}}
    return Parameter(name, member, meaning, schema)


def _words(hint: object) -> Iterator[str]:
    """The words of the Literal in an annotation."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
        return
    for each in get_args(hint):
        yield from _words(each)
