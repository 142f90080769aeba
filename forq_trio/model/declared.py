"""Declarations in the types of members: settings of a queue, options of a message, and more, each declared once.

A declaration is in the annotation of a type, and every member of that type has it. Code that validates, documents,
parses or shows members reads the declarations.
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

import msgspec
from msgspec import Meta, Struct

from forq_trio.model import member_names

_NAMED = re.compile(r"\{(\w+)\}")


class ValueKind(Enum):
    """The kind of a value, which decides how people type it and how it is shown."""

    TIME = auto()
    DURATION = auto()
    COUNT = auto()
    BYTES = auto()
    TEXT = auto()
    PAIRS = auto()
    WORD = auto()
    QUEUE = auto()
    BACK_OFF = auto()
    RATE = auto()
    DURATION_TEXT = auto()
    DAY_TIMES = auto()
    TIME_ZONE = auto()


class Declared(Struct, frozen=True, kw_only=True):
    """All that is known about a member."""

    # a sentence, and perhaps one about an empty value that is not the default; other members are written as
    # `{process_after}`, see `says`
    meaning: str
    kind: ValueKind
    # this and the next: the range (both ends included) of a number, of the length of a text, or of the number of
    # pairs
    low: int = 0
    high: int = 0
    option: str = ""  # the name on the command line, if it is another one
    name: str = ""  # of the member
    json_name: str = ""  # in JSON

    def says(self, name_of: Callable[[str], str] = member_names.json_name) -> str:
        """The meaning, with other members under their names in JSON, or as `name_of` names them."""
        return _NAMED.sub(lambda found: name_of(found[1]), self.meaning)


DeclaredT = TypeVar("DeclaredT", bound=Declared)


def documented(declared: Declared) -> Meta:
    """The annotation for the type of a member. It only documents the range; checks with error codes enforce it."""
    extra = {"declared": declared}
    meaning = declared.says()
    if declared.kind in (ValueKind.WORD, ValueKind.BACK_OFF, ValueKind.RATE):
        return Meta(description=meaning, extra=extra)  # their types already document the range
    if declared.kind is ValueKind.TIME:
        meaning = f"{meaning} Milliseconds since the Unix epoch."
    return Meta(description=meaning, extra_json_schema=_range(declared), extra=extra)


def _range(declared: Declared) -> dict[str, int] | None:
    if not declared.high:
        return None
    if declared.kind is ValueKind.TEXT:
        return {"minLength": declared.low, "maxLength": declared.high}
    if declared.kind is ValueKind.PAIRS:
        return {"maxProperties": declared.high}
    return {"minimum": declared.low, "maximum": declared.high}


def members_declared(struct: type[Struct], kind: type[DeclaredT]) -> dict[str, DeclaredT]:
    """The declarations in the types of a Struct's members, by name and in their order."""
    found = {}
    for field in msgspec.inspect.type_info(struct).fields:  # type: ignore[attr-defined]  # those of a Struct
        types = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
        for each in types:
            declared = isinstance(each, msgspec.inspect.Metadata) and (each.extra or {}).get("declared")
            if isinstance(declared, kind):
                option = declared.option or field.name.removesuffix("_ms").replace("_", "-")
                found[field.name] = msgspec.structs.replace(
                    declared, name=field.name, json_name=field.encode_name, option=option
                )
    return found
