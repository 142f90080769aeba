"""Reads the query of a request, and refuses a parameter that does not fit its type or range, with its code.

Unknown parameters are ignored here: the router refuses them, except on Forq's own routes. If a parameter is repeated,
its last value counts.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import parse_qs

from forq_trio.http.forq_api.reading import check_range
from forq_trio.http.forq_api.refusals import Refused, shortened
from forq_trio.http.router import NOT_UTF8
from forq_trio.model import errors
from forq_trio.model.queries import Parameter, Query, parameters_of

QueryT = TypeVar("QueryT", bound=Query)
ValueReader: TypeAlias = Callable[[Sequence[str]], object]
"""Reads a parameter from all of its values, or raises Refused."""

_FLAG = {"false": False, "true": True}


class QueryReader(Generic[QueryT]):
    """Reads one type of query. Raises Refused for the first invalid parameter, in the order of their declaration."""

    __slots__ = ("_absent", "_query", "_readers")

    def __init__(self, query: type[QueryT]) -> None:
        self._query = query
        self._absent = query()
        self._readers = tuple((each.name, each.member, _reader(each)) for each in parameters_of(query))

    def __call__(self, raw: str) -> QueryT:
        if not raw:
            return self._absent
        given = parse_qs(raw, keep_blank_values=True, errors=NOT_UTF8)
        found = {member: read(given[name]) for name, member, read in self._readers if name in given}
        return self._query(**found)


def _reader(parameter: Parameter) -> ValueReader:
    name, schema = parameter.name, parameter.schema
    if "enum" in schema:
        return partial(_choice, name, {word: word for word in schema["enum"]})
    match schema["type"]:
        case "integer":
            return partial(_number, name, schema["minimum"], schema["maximum"])
        case "boolean":
            return partial(_choice, name, _FLAG)
        case "array":
            return partial(_pairs, name)
        case "string":
            return _last
    raise TypeError(f"no query has a parameter like {name}: {schema}")


def _last(values: Sequence[str]) -> str:
    return values[-1]


def _number(name: str, low: int, high: int, values: Sequence[str]) -> int:
    text = values[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        message = f"{name} must be between {low} and {high}, not '{shortened(text)}'"
        raise Refused(errors.OutOfRange.about(name), message, field=name)
    check_range(name, int(text), low, high)
    return int(text)


def _choice(name: str, choices: Mapping[str, Any], values: Sequence[str]) -> object:
    text = values[-1]
    if text not in choices:
        message = f"{name} must be one of {', '.join(choices)}, not '{shortened(text)}'"
        raise Refused(errors.InvalidParameter.about(name), message, field=name)
    return choices[text]


def _pairs(name: str, values: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in values:
        key, colon, value = pair.partition(":")
        if not colon:
            raise Refused(errors.InvalidParameter.about(name), field=name)
        found[key] = value
    return found
