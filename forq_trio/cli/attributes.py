"""The attributes of a message in words: bytes as their size and the first of them."""

from forq_trio.model.messages.attributes import Attribute
from forq_trio.telemetry.words import counted

_BYTES_SHOWN_MAX = 8


def value_of(attribute: Attribute) -> str:
    """The value of an attribute for people."""
    data = attribute.data
    if data is None:
        return attribute.text
    more = " …" if len(data) > _BYTES_SHOWN_MAX else ""
    return f"{counted(len(data), 'byte')}: {data[:_BYTES_SHOWN_MAX].hex(' ')}{more}"


def type_of(attribute: Attribute) -> str:
    """The type of an attribute in brackets; "" for a plain text."""
    return f" ({attribute.type})" if attribute.type else ""
