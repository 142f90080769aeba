"""Messages of SQS as the rest of the server has them, and back.

An attribute is stored as its text: a number as it was written, bytes in base64. What a text does not say is in one more
attribute (model/sqs/attributes.py): the types that are not `String`, and what the sender said besides.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from forq_trio.http.sqs_api.checks import check_characters
from forq_trio.http.sqs_api.digests import md5_of_attributes, md5_of_text
from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, SqsError, invalid, missing, shown
from forq_trio.http.sqs_api.shapes import AttributeValue, NewSqsMessage, SqsMessage
from forq_trio.model import limits
from forq_trio.model.messages.types import Delivery
from forq_trio.model.sqs.attributes import EXTRA, NO_EXTRA, Extra, bytes_of_text, fits, is_number, read_extra

ALL_NAMES = ("All", "ALL")  # the second is kombu's; Amazon takes it for attributes of the system
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_RESERVED = ("aws.", "amazon.")
_TYPE = re.compile(r"(String|Number|Binary)(\.[\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]{1,249})?")
_TRACE_HEADER = "AWSTraceHeader"
_ID = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")


def check_body(body: str | None) -> str:
    """Return the body; raise SqsError for none, and for characters that XML has not."""
    if not body:
        raise missing("MessageBody")
    check_characters(body)
    return body


def check_attributes_of_message(attributes: Mapping[str, AttributeValue]) -> None:
    """Raise SqsError for an attribute that no message may have, or for too many."""
    most = limits.SQS_ATTRIBUTES_MAX
    if len(attributes) > most:
        text = f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{most}]."
        raise SqsError(INVALID_PARAMETER, text)
    for name, value in attributes.items():
        _check_attribute(name, value)


def bytes_of(message: NewSqsMessage) -> int:
    """The bytes of a message as SQS counts them: of the body, and of names, types and values of attributes."""
    total = _bytes_of_text(message.message_body)
    for name, value in (message.message_attributes or {}).items():
        total += _bytes_of_text(name) + _bytes_of_text(value.data_type)
        total += _bytes_of_text(value.string_value) + len(value.binary_value or b"")
    return total


def _bytes_of_text(text: str | None) -> int:
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def check_id(parameter: str, text: str) -> str:
    """Return a group or deduplication id; raise SqsError for one that may not be."""
    if _ID.fullmatch(text) is None:
        raise invalid(
            parameter,
            text,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )
    return text


def stored_attributes(attributes: Mapping[str, AttributeValue], extra: Extra) -> dict[str, str] | None:
    """The attributes of a message as all dialects have them; None for none. extra: without types."""
    if not attributes and extra == NO_EXTRA:
        return None
    types = {name: value.data_type or "" for name, value in attributes.items() if value.data_type != "String"}
    found = {name: _text_of(value) for name, value in attributes.items()}
    return found | replace(extra, types=types).attributes()


def trace_header(attributes: Mapping[str, AttributeValue]) -> str | None:
    """The one system attribute that a sender may give; raises SqsError for another."""
    for name, value in attributes.items():
        text = value.string_value
        if name != _TRACE_HEADER or value.data_type != "String" or not text or value.binary_value is not None:
            raise invalid(
                "MessageSystemAttributes", name, f"Only a {_TRACE_HEADER} of type String is allowed."
            )
        if len(text) > limits.SQS_TRACE_LENGTH_MAX:
            reason = f"Must be 1 to {limits.SQS_TRACE_LENGTH_MAX} characters in length."
            raise invalid(_TRACE_HEADER, text, reason)
        check_characters(text)
    return attributes[_TRACE_HEADER].string_value if attributes else None


class AttributeNames(NamedTuple):
    """Which attributes of messages a receiver asks for: those with these names, and those that begin so."""

    names: frozenset[str]
    prefixes: tuple[str, ...]  # "" for all

    def has(self, name: str) -> bool:
        return name in self.names or (bool(self.prefixes) and name.startswith(self.prefixes))


def attribute_names(asked: Sequence[str]) -> AttributeNames:
    """Read MessageAttributeNames. Raises SqsError for so many that to compare them would hold up other requests."""
    most = limits.SQS_ATTRIBUTE_NAMES_MAX
    if len(asked) > most:
        text = f"Number of message attribute names [{len(asked)}] exceeds the allowed maximum [{most}]."
        raise _invalid_parameter(text)
    prefixes = tuple(name.removesuffix(".*") for name in asked if name.endswith(".*"))
    return AttributeNames(frozenset(asked), ("",) if any(name in ALL_NAMES for name in asked) else prefixes)


def view(delivery: Delivery, names: AttributeNames, attributes: dict[str, str]) -> SqsMessage:
    """A message as its receiver gets it. names: of the attributes it asked for. attributes: those of the system."""
    wanted = _wanted(delivery, names)
    return SqsMessage(
        message_id=delivery.id,
        receipt_handle=delivery.receipt,
        md5_of_body=md5_of_text(delivery.content),
        body=delivery.content,
        attributes=attributes,
        md5_of_message_attributes=md5_of_attributes(wanted) if wanted else None,
        message_attributes=wanted,
    )


def extra_of(delivery: Delivery) -> Extra:
    """What is stored besides the attributes; nothing for a message that came another way."""
    return read_extra(delivery.attributes) or NO_EXTRA


def _wanted(delivery: Delivery, names: AttributeNames) -> dict[str, AttributeValue]:
    if names == _NO_NAMES or not delivery.attributes:
        return {}
    types = extra_of(delivery).types
    return {
        name: _value_of(text, types.get(name, "String"))
        for name, text in sorted(delivery.attributes.items())
        if name != EXTRA and names.has(name)
    }


_NO_NAMES = AttributeNames(frozenset(), ())


def _value_of(text: str, data_type: str) -> AttributeValue:
    data = bytes_of_text(text, data_type)
    if data is not None:
        return AttributeValue(data_type=data_type, binary_value=data)
    if _TYPE.fullmatch(data_type) is None or not fits(text, data_type):
        data_type = "String"  # a sender of another dialect wrote it, or an edit replaced the value
    return AttributeValue(data_type=data_type, string_value=text)


def _text_of(value: AttributeValue) -> str:
    if value.binary_value is not None:
        return b64encode(value.binary_value).decode()
    return value.string_value or ""


def _check_attribute(name: str, value: AttributeValue) -> None:
    points = name.startswith(".") or name.endswith(".") or ".." in name
    if points or _NAME.fullmatch(name) is None or name.lower().startswith(_RESERVED):
        raise _invalid_parameter(
            f"The message attribute name '{shown(name)}' is invalid. Attribute name can contain A-Z, a-z, 0-9, "
            "underscore (_), hyphen (-), and period (.) characters."
        )
    kind = value.data_type or ""
    if _TYPE.fullmatch(kind) is None:
        raise _invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type "
            "prefixes is Binary, Number, and String."
        )
    text, binary = value.string_value, value.binary_value
    content, other = (binary, text) if kind.startswith("Binary") else (text, binary)
    if not content or other is not None:
        raise _invalid_parameter(
            f"The message attribute '{name}' must contain a non-empty value of type '{kind}'."
        )
    if isinstance(content, bytes):
        return
    check_characters(content)
    if kind.startswith("Number") and not is_number(content):
        raise _invalid_parameter(f"Can't cast the value of message attribute '{name}' to a number.")


def _invalid_parameter(message: str) -> SqsError:
    return SqsError(INVALID_PARAMETER, message)
