"""Refuses commands with the character U+0000, which PostgreSQL cannot store in a text, before they run.

If only a statement noticed it, the whole batch would have to run again, command by command.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from forq_trio.model.commands import Ack, Claim, Command, Release, StagePage
from forq_trio.model.errors import ZeroCharacter
from forq_trio.storage.publishing import read_part
from forq_trio.storage.zero_character import has_zero

_STORES_NO_TEXT = frozenset({Ack, Claim, Release})


def check_texts(value: Struct) -> None:
    """Raise ZeroCharacter, which names the member, if any text of a message or offer contains that character."""
    if has_zero(value):
        members = zip(value.__struct_encode_fields__, astuple(value), strict=True)
        raise ZeroCharacter(field=next(name for name, each in members if has_zero(each)))


def cannot_be_stored(command: Command[Any]) -> bool:
    """Whether any text of this command contains that character."""
    if isinstance(command, StagePage):
        bodies = [part.body for part in command.parts if b"\0" in part.body or rb"\u0000" in part.body]
        return any(map(has_zero, map(read_part, bodies)))
    return type(command) not in _STORES_NO_TEXT and has_zero(command)
