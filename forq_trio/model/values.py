"""Types and annotations of members: times, counts, and ranges for the OpenAPI document."""

import re
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

SeenT = TypeVar("SeenT", bound=Struct)

LEFT_OUT_MARK = "x-left-out"
"""Marks the schema of a LEFT_OUT member, until the OpenAPI document is made of it."""

LEFT_OUT = Meta(extra_json_schema={LEFT_OUT_MARK: True})
"""For a member that is left out of the JSON if it is None or False, its default: it is documented without a default."""


def bounded(low: int, high: int, meaning: str) -> Any:
    """Documents an integer's range (both ends included) without checking it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


def up_to(count: int, meaning: str) -> Any:
    """Documents the greatest length of a list without checking it."""
    return Meta(description=meaning, extra_json_schema={"maxItems": count})


def text_up_to(longest: int, meaning: str) -> Any:
    """Documents a text of 1 to `longest` characters without checking it."""
    return Meta(description=meaning, extra_json_schema={"minLength": 1, "maxLength": longest})


EPOCH_MS = "Milliseconds since the Unix epoch."
EpochMs = Annotated[int, Meta(description=EPOCH_MS)]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]


def seen(kind: type[SeenT], whole: Struct, /, **others: Any) -> SeenT:
    """A value as callers see it: a `kind` with the members that it shares with `whole`, and `others` for the rest."""
    same = {name: getattr(whole, name) for name in kind.__struct_fields__ if name not in others}
    return kind(**same, **others)


_OTHERWISE = {"max": "max_messages"}  # of a receive: no member has another name in Python, but for its form
_CAMEL = re.compile(r"(?<![\w-])[a-z]++(?:[A-Z][a-z0-9]*+)++(?![\w-])")


def json_name(name: str) -> str:
    """The name of a member in JSON: leaseMs for lease_ms."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def python_name(name: str) -> str:
    """The name in Python of a member with this name in JSON."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def python_names(path: str) -> dict[str, str]:
    """The names in a path into a body that are others in Python, each with that one."""
    own = _OTHERWISE.get(path)
    return {path: own} if own else {name: python_name(name) for name in _CAMEL.findall(path)}


def python_path(path: str) -> str:
    """A path into a body with the names of Python: lines[1].lease_ms for lines[1].leaseMs."""
    return _OTHERWISE.get(path) or _CAMEL.sub(lambda found: python_name(found[0]), path)
