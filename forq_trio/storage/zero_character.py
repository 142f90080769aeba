"""Finds the character U+0000, which PostgreSQL cannot store in a text."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple


def has_zero(value: Any) -> bool:
    """Whether any text in a Struct, a tuple, a list or message attributes contains it."""
    if value is None or type(value) is int:
        return False
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Struct):
        return any(map(has_zero, astuple(value)))
    if isinstance(value, Mapping):  # stored as JSON, whose escape the table's check refuses in whatever place
        return any(
            "\0" in each or "\\u0000" in each for each in (*value, *value.values()) if isinstance(each, str)
        )
    return isinstance(value, tuple | list) and any(map(has_zero, value))
