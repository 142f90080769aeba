"""Explains what is wrong with a body, and with which member, from msgspec's error and the body's type."""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from forq_trio.http.forq_api.refusals import Refused, shortened
from forq_trio.model import errors, limits

_AT = " - at `$"
_STEP = re.compile(r"\.([^.\[]+)|\[[^\[\]]*\]")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_CHOICE = re.compile(r"Invalid enum value '?(.*?)'?", re.DOTALL)
_FORM = re.compile(rb"[\w.%+\[\]-]+=[^\r\n]*")
_TRUNCATED = "Input data was truncated"
_END_LENGTH = 2 * limits.ERROR_MESSAGE_LENGTH_MAX
"""A text of msgspec repeats what a client sent; only this many characters of each end are read, because the path of the
member is at the end.
"""
_ANY = "[...]"
"""What msgspec writes for a value of an object that may have members of any name."""

_WANTED = {
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_GOT = {**_WANTED, "float": "a number with a fraction or an exponent", "bool": "a truth value"}


def refusal(body: type[Any], raw: bytes, error: Exception) -> Refused:
    """The refusal of `raw`, which msgspec could not decode as `body` because of `error`."""
    if isinstance(error, msgspec.ValidationError):
        return _wrong_value(body, raw, error)
    return Refused(errors.InvalidRequest, _not_json(raw, error))


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A hint at the known name that is most like `name`, to append to a sentence; "" if no name is like it."""
    nearest = get_close_matches(name, known, n=1) if len(name) <= limits.ERROR_FIELD_LENGTH_MAX else None
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _wrong_value(body: type[Any], raw: bytes, error: msgspec.ValidationError) -> Refused:
    text = _ends(str(error))
    problem, at, path = text.rpartition(_AT) if text.endswith("`") else (text, "", "")
    problem, path = (problem, path.removesuffix("`")) if at else (text, "")
    if unknown := _UNKNOWN.fullmatch(problem):
        return _unknown_member(body, raw, path, unknown[1])
    if missing := _MISSING.fullmatch(problem):
        return _invalid(f"{path}.{missing[1]}", "is missing")
    if expected := _EXPECTED.fullmatch(problem):
        return _invalid(path, f"must be {_wanted(expected[1])}, not {_GOT.get(expected[2], expected[2])}")
    if choice := _CHOICE.fullmatch(problem):
        words = ", ".join(_choices(body, path))
        return _invalid(path, f"must be one of {words}, not '{shortened(choice[1])}'")
    return _invalid(path, f"is not valid: {problem}")


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _END_LENGTH else text[:_END_LENGTH] + text[-_END_LENGTH:]


def _unknown_member(body: type[Any], raw: bytes, path: str, name: str) -> Refused:
    try:
        _read_any(raw)  # the decoder stopped at this member
    except (msgspec.DecodeError, RecursionError) as error:
        return Refused(errors.InvalidRequest, _not_json(raw, error))
    known = [
        field.encode_name
        for node in _types_at(body, path)
        if isinstance(node, inspect.StructType)
        for field in node.fields
    ]
    hint = did_you_mean(name, known)
    return Refused(
        errors.UnknownMember, f"there is no member '{shortened(name)}' here{hint}", field=f"${path}.{name}"
    )


def _invalid(path: str, problem: str) -> Refused:
    member = path.removeprefix(".") or "the body"
    if path.endswith(_ANY):
        path = path.removesuffix(_ANY)
        member = f"every value of {path.removeprefix('.')}"
    return Refused(errors.InvalidRequest, f"{member} {problem}", field=f"${path}" if path else None)


def _wanted(types: str) -> str:
    return " or ".join(_WANTED.get(each, each) for each in types.split(" | "))


def _not_json(raw: bytes, error: Exception) -> str:
    """Why a body cannot be read as JSON."""
    if not raw or raw.isspace():
        return "the body is empty; it must be JSON"
    if isinstance(error, UnicodeDecodeError):
        return f"the body is not UTF-8 (at byte {error.start})"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    if _FORM.fullmatch(raw[:_END_LENGTH]):
        return "the body is form data; it must be JSON"
    problem = _ends(str(error)).removeprefix("JSON is malformed: ")
    if problem == _TRUNCATED:
        problem = "it ends too early, or has half of a surrogate pair (\\ud800 to \\udfff)"
    return f"the body is not JSON: {problem}"


def _choices(body: type[Any], path: str) -> Iterator[str]:
    for node in _types_at(body, path):
        if isinstance(node, inspect.LiteralType):
            yield from map(str, node.values)
        elif isinstance(node, inspect.EnumType):
            yield from (str(each.value) for each in node.cls)


def _types_at(body: type[Any], path: str) -> list[inspect.Type]:
    """The types that a body may have at a path as msgspec writes it, such as `.filter.attributes` or `.messages[0]`."""
    nodes = list(_alternatives(inspect.type_info(body)))
    for step in _STEP.finditer(path):
        nodes = [each for node in nodes for below in _below(node, step[1]) for each in _alternatives(below)]
    return nodes


def _alternatives(node: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(node, inspect.Metadata):
        yield from _alternatives(node.type)
    elif isinstance(node, inspect.UnionType):
        for each in node.types:
            yield from _alternatives(each)
    else:
        yield node


def _below(node: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """The types of a member; name: None for an item of a list, or a value of a dict."""
    if isinstance(node, inspect.StructType) and name is not None:
        yield from (field.type for field in node.fields if field.encode_name == name)
    elif isinstance(node, inspect.ListType | inspect.VarTupleType):
        yield node.item_type
    elif isinstance(node, inspect.DictType):
        yield node.value_type


_read_any = msgspec.json.Decoder(msgspec.Raw).decode
