"""Bindings of statements as PostgreSQL reads them: in the text format, arrays in the binary one."""

from collections.abc import Sequence
from struct import Struct
from typing import Any

from forq_trio.model.errors import ZeroCharacter


def encoded(value: Any) -> bytes:
    """A binding: bytes as they are, another one in the text format."""
    if isinstance(value, str):
        if "\0" in value:
            raise ZeroCharacter
        return value.encode()
    if isinstance(value, bytes):
        return value
    return b"%d" % value


def array(values: Sequence[Any]) -> bytes | str:
    """An array of numbers or texts: in the binary format, where it says of what it is."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    if kinds == {str}:
        element, parts = _TEXT, [_NULL if value is None else _element(value) for value in values]
    else:
        element, parts = _INT8, [_NULL if value is None else _number(8, value) for value in values]
    return _array(1, _NULL in parts, element, len(values), 1) + b"".join(parts)


def _element(value: str) -> bytes:
    if "\0" in value:
        raise ZeroCharacter
    text = value.encode()
    return _length(len(text)) + text


_array = Struct(">5i").pack
"""How many dimensions; whether there is a NULL; of what it is; how many; from what on they are counted."""
_INT8, _TEXT = 20, 25
"""The types of elements, by number."""
_length, _number = Struct(">i").pack, Struct(">iq").pack
_NULL = _length(-1)
