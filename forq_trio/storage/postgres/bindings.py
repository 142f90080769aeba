"""Encodes the bindings of statements for PostgreSQL: in the text format, but arrays in the binary one."""

from collections.abc import Sequence
from struct import Struct
from typing import Any

from forq_trio.model.errors import ZeroCharacter


def encoded(value: Any) -> bytes:
    """A binding as it is sent: bytes unchanged, all other values in the text format."""
    if isinstance(value, str):
        if "\0" in value:
            raise ZeroCharacter
        return value.encode()
    if isinstance(value, bytes):
        return value
    return b"%d" % value


def array(values: Sequence[Any]) -> bytes | str:
    """An array of numbers or texts in the binary format, which includes the type of its elements.

    An array of nothing but NULLs, or of nothing, is in the text format, because its type is not known.
    """
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
"""The header of an array: number of dimensions, whether it has NULLs, type and number of its elements, first index."""
_INT8, _TEXT = 20, 25
"""PostgreSQL's numbers for the types of elements."""
_length, _number = Struct(">i").pack, Struct(">iq").pack
_NULL = _length(-1)
