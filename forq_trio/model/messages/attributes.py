"""Attributes as people see them: with their types, and with what their sender said besides.

An attribute is a text. A dialect whose senders say more of it notes that in one more attribute, which goes with the
message wherever it goes. Who shows, edits or copies a message asks here, and knows no dialect.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model.sqs.attributes import EXTRA, bytes_of_text, fits, read_extra


class Attribute(Struct, frozen=True):
    """One attribute of a message."""

    name: str
    text: str  # as it is stored
    type: str = ""  # what its sender says that the text is, such as `Number.int`; "" for a plain text
    data: bytes | None = None  # of a type of bytes: those that the text has in base64


class Described(Struct, frozen=True):
    """The attributes of a message, and what its sender said besides."""

    attributes: tuple[Attribute, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # labels with words


def described(attributes: Mapping[str, str] | None) -> Described:
    """The attributes that a sender gave, with their types."""
    attributes = attributes or {}
    extra = read_extra(attributes)
    if extra is None:
        return Described(tuple(Attribute(name, text) for name, text in attributes.items()))
    said = (
        ("Deduplication id", extra.deduplication_id),
        ("Noted sender", extra.sender),
        ("Trace header", extra.trace_header),
    )
    return Described(
        tuple(
            _attribute(name, text, extra.types.get(name, ""))
            for name, text in attributes.items()
            if name != EXTRA
        ),
        tuple((label, words) for label, words in said if words is not None),
    )


def _attribute(name: str, text: str, kind: str) -> Attribute:
    if not fits(text, kind):
        return Attribute(name, text)
    return Attribute(name, text, kind, bytes_of_text(text, kind))


def replaced(original: Mapping[str, str] | None, changed: Mapping[str, str]) -> dict[str, str]:
    """Attributes in the place of the original ones: a type stays where the new value fits it, and so does the rest."""
    extra = read_extra(original or {})
    if extra is None or EXTRA in changed:
        return dict(changed)
    types = {
        name: kind for name, kind in extra.types.items() if name in changed and fits(changed[name], kind)
    }
    return {**changed, **replace(extra, types=types).attributes()}
