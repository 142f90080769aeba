"""Types and annotations of members: times, counts, and ranges for the OpenAPI document."""

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
