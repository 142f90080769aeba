"""Messages of SQS as the rest of the server has them, and back.

An attribute is stored as its text: a number as it was written, bytes in base64. What a text does not say is in one more
attribute, EXTRA, in JSON: the types that are not `String`, and what the sender said besides. Its name begins as no
sender's may, and other dialects show it as it is.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from forq_trio.http.sqs_api.digests import md5_of_attributes, md5_of_text
from forq_trio.http.sqs_api.errors import (
    INVALID_CONTENTS,
    INVALID_PARAMETER,
    SqsError,
    invalid,
    missing,
    shown,
)
from forq_trio.http.sqs_api.shapes import AttributeValue, NewSqsMessage, SqsMessage
from forq_trio.model import limits
from forq_trio.model.messages.types import Delivery

EXTRA = "AWS.SQS"
ATTRIBUTES_MAX = 10
ALL_NAMES = ("All", "ALL")  # the second is kombu's; Amazon takes it for attributes of the system
FORBIDDEN = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_RESERVED = ("aws.", "amazon.")
_TYPE = re.compile(r"(String|Number|Binary)(\.[\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]{1,249})?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NUMBER_LENGTH_MAX = 256
_TRACE_HEADER = "AWSTraceHeader"
_ID = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")


class Extra(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is stored of a message besides the texts of its attributes."""

    types: dict[str, str] = {}  # of the attributes that are no plain String
    deduplication_id: str | None = None
    trace_header: str | None = None
    sender: str | None = None  # the name of the access token; None for the server's own secret


_NO_EXTRA = Extra()
_read_extra = msgspec.json.Decoder(Extra).decode


def check_body(body: str | None) -> str:
    """Return the body; raise SqsError for none, and for characters that XML has not."""
    if not body:
        raise missing("MessageBody")
    check_characters(body)
    return body


def check_attributes_of_message(attributes: Mapping[str, AttributeValue]) -> None:
    """Raise SqsError for an attribute that no message may have, or for too many."""
    if len(attributes) > ATTRIBUTES_MAX:
        raise SqsError(
            INVALID_PARAMETER,
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}].",
        )
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
    if not attributes and extra == _NO_EXTRA:
        return None
    types = {name: value.data_type or "" for name, value in attributes.items() if value.data_type != "String"}
    found = {name: _text_of(value) for name, value in attributes.items()}
    if types or extra != _NO_EXTRA:
        found[EXTRA] = msgspec.json.encode(msgspec.structs.replace(extra, types=types)).decode()
    return found


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


def view(delivery: Delivery, names: Sequence[str], attributes: dict[str, str]) -> SqsMessage:
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
    text = delivery.attributes.get(EXTRA)
    if text is None:
        return _NO_EXTRA
    try:
        return _read_extra(text)
    except msgspec.DecodeError:
        return _NO_EXTRA  # a sender of another dialect wrote it


def _wanted(delivery: Delivery, names: Sequence[str]) -> dict[str, AttributeValue]:
    if not names or not delivery.attributes:
        return {}
    types = extra_of(delivery).types
    everything = any(name in ALL_NAMES for name in names)
    prefixes = tuple(name.removesuffix(".*") for name in names if name.endswith(".*"))
    return {
        name: _value_of(text, types.get(name, "String"))
        for name, text in sorted(delivery.attributes.items())
        if name != EXTRA and (everything or name in names or (prefixes and name.startswith(prefixes)))
    }


def _value_of(text: str, data_type: str) -> AttributeValue:
    if data_type.startswith("Binary"):
        try:
            return AttributeValue(data_type=data_type, binary_value=b64decode(text, validate=True))
        except ValueError:
            data_type = "String"  # a consumer's edit replaced the bytes
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
    is_number = len(content) <= _NUMBER_LENGTH_MAX and _NUMBER.fullmatch(content) is not None
    if kind.startswith("Number") and not is_number:
        raise _invalid_parameter(f"Can't cast the value of message attribute '{name}' to a number.")


def check_characters(text: str) -> None:
    """Raise SqsError for characters that XML has not, or that UTF-8 cannot carry."""
    if text.isascii() and text.isprintable():
        return  # most texts, and sooner than the pattern
    if FORBIDDEN.search(text) is not None:
        raise _invalid_contents()


def _invalid_parameter(message: str) -> SqsError:
    return SqsError(INVALID_PARAMETER, message)


def _invalid_contents() -> SqsError:
    return SqsError(
        INVALID_CONTENTS,
        "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD]"
        " | [#x10000 to #x10FFFF].",
    )


def in_range(parameter: str, value: int | None, low: int, high: int, default: int) -> int:
    """Return a number of a request, or `default` for none; raise SqsError unless low <= value <= high."""
    if value is None:
        return default
    if not low <= value <= high:
        raise invalid(parameter, shown(value), f"Must be between {low} and {high}, if provided.")
    return value
