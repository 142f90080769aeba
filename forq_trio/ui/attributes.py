"""Attributes as people type them: a line for each, `name: value`; as JSON if they do not fit into lines."""

import msgspec

from forq_trio.model.errors import InvalidAttributes


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
