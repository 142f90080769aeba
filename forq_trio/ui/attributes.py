"""Attributes as people see and type them.

They are typed as a line for each, `name: value`; as JSON if they do not fit into lines. Those of a message are shown
with their types: bytes as numbers, and a text up to TEXT_SHOWN_MAX, because some dialects take long ones.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from markupsafe import Markup
from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model.errors import InvalidAttributes
from forq_trio.model.messages.attributes import Attribute, described
from forq_trio.ui.content import hex_dump

TEXT_SHOWN_MAX, TEXT_IN_ROW_MAX = 2_048, 240
BYTES_IN_LINE_MAX = 16
BYTES_DUMPED_MAX = 256


class ShownAttribute(Struct, frozen=True):
    """An attribute of a message, ready to be shown: on a page, and below the row of a list."""

    name: str
    text: str  # of bytes: the first as numbers
    note: str  # its type and size, as far as there is something to say
    in_row: str
    note_in_row: str
    is_mono: bool
    copied: str = ""  # what a button copies, where not all is shown: the whole text, or the bytes in base64
    is_bytes: bool = False
    dump: Markup | None = None  # of more bytes than fit into a line


def attribute_context(attributes: Mapping[str, str] | None) -> dict[str, Any]:
    """The attributes of a message for its templates, and what else its sender said: labels with words."""
    given = described(attributes)
    return {"given": [_shown(each) for each in given.attributes], "facts": given.facts}


def _shown(attribute: Attribute) -> ShownAttribute:
    text, kind, data = attribute.text, attribute.type, attribute.data
    if data is not None:
        return _shown_bytes(attribute, data)
    size = f"{len(text):,} characters"
    is_long, is_cut = len(text) > TEXT_SHOWN_MAX, len(text) > TEXT_IN_ROW_MAX
    return ShownAttribute(
        attribute.name,
        text[:TEXT_SHOWN_MAX],
        _words(kind, f"first {TEXT_SHOWN_MAX:,} of {size}" if is_long else ""),
        text[:TEXT_IN_ROW_MAX] + ("…" if is_cut else ""),
        _words(kind, size if is_cut else ""),
        is_mono=len(text) > 24 and " " not in text,
        copied=text if is_long else "",
    )


def _shown_bytes(attribute: Attribute, data: bytes) -> ShownAttribute:
    size = format.plural(len(data), "byte") if len(data) < 1_024 else format.size(len(data))
    is_long, is_cut = len(data) > BYTES_DUMPED_MAX, len(data) > BYTES_IN_LINE_MAX
    line = data[:BYTES_IN_LINE_MAX].hex(" ") + (" …" if is_cut else "")
    return ShownAttribute(
        attribute.name,
        line,
        _words(attribute.type, f"first {BYTES_DUMPED_MAX} bytes of {size}" if is_long else size),
        line,
        _words(attribute.type, size),
        is_mono=True,
        copied=attribute.text,
        is_bytes=True,
        dump=hex_dump(data[:BYTES_DUMPED_MAX]) if is_cut else None,
    )


def _words(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def to_text(attributes: dict[str, str]) -> str:
    """The attributes as text, which `from_text` reads."""
    lines = "\n".join(f"{name}: {value}" for name, value in attributes.items())
    try:
        if from_text(lines) == attributes and "\r" not in lines:
            return lines
    except InvalidAttributes:
        pass
    return msgspec.json.format(msgspec.json.encode(attributes), indent=2).decode()


def from_text(text: str) -> dict[str, str]:
    """Read lines, or JSON that begins with a brace. Raises InvalidAttributes."""
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, str])
        except msgspec.MsgspecError as error:
            raise InvalidAttributes(f"this is no JSON object of texts: {error}", field="attributes") from None
    attributes: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon or not name:
            raise InvalidAttributes(f"line {number} is not `name: value`", field="attributes")
        if name in attributes:
            raise InvalidAttributes(f"line {number} names {name} again", field="attributes")
        attributes[name] = value.strip()
    return attributes
