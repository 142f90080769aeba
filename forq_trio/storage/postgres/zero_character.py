"""Commands with the character U+0000, which PostgreSQL has in no text: refused before they run.

Found out by a statement, it would have the whole batch run again, command by command.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from forq_trio.model.commands import Ack, Claim, Command, Release

_STORES_NO_TEXT = frozenset({Ack, Claim, Release})


def cannot_be_stored(command: Command[Any]) -> bool:
    """Whether a text of it has that character."""
    return type(command) not in _STORES_NO_TEXT and _has_zero(command)


def _has_zero(value: Any) -> bool:
    if value is None or type(value) is int:
        return False
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Struct):
        return any(map(_has_zero, astuple(value)))
    if isinstance(value, Mapping):  # stored as JSON, whose escape the table's check refuses in whatever place
        return any(
            "\0" in each or "\\u0000" in each for each in (*value, *value.values()) if isinstance(each, str)
        )
    return isinstance(value, tuple) and any(map(_has_zero, value))
