"""Validates the parts of commands: numbers, texts, attributes, messages. All functions raise CallerErrors."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from forq_trio.model import limits
from forq_trio.model.declared import ValueKind
from forq_trio.model.errors import (
    ContentTooLarge,
    InvalidAttributes,
    InvalidContent,
    InvalidRequest,
    OutOfRange,
    ProcessAfterInPast,
    ProcessAfterTooFar,
    ProduceToDeadLetterQueue,
)
from forq_trio.model.member_names import json_name
from forq_trio.model.messages.new_message import OPTIONS, NewMessage, Option
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.queues.names import is_dead_letter_queue


def check_range(name: str, value: int, low: int, high: int, field: str | None = None) -> int:
    """Return `value`. Raises OutOfRange, which names it and its bounds (included), or InvalidRequest for a non-integer.

    field: the member's name in JSON, None if it is `name` in camel case.
    """
    check_is_integer(name, value, field)
    if low <= value <= high:
        return value
    raise OutOfRange(f"{name} must be between {low} and {high}, not {value}", field=field or json_name(name))


def check_is_integer(name: str, value: object, field: str | None = None) -> None:
    """Raise InvalidRequest unless `value` is an int, because SQLite would store a fraction in an integer column.

    field: as for `check_range`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        kind = type(value).__name__
        raise InvalidRequest(f"{name} must be an integer (int), not {kind}", field=field or json_name(name))


def check_is_text(name: str, value: object) -> None:
    """Raise TypeError, which says what to do, unless `value` is a str: bytes would silently become base64 in JSON."""
    if isinstance(value, str):
        return
    kind = type(value).__name__
    advice = ""
    if isinstance(value, bytes | bytearray | memoryview):
        advice = ": .decode() makes text of UTF-8, base64.b64encode(...).decode() of any bytes"
    elif name == "content":
        advice = ": produce_json, or NewMessage.of_json in a batch, sends a value as JSON"
    raise TypeError(f"{name} is text (str), not {kind}{advice}")


def check_is_list(name: str, value: object) -> None:
    """Raise TypeError, which says what to do, for a text in place of a list: each letter would become a text."""
    if isinstance(value, str):
        raise TypeError(f"{name} is a list of texts, not one text: [{value!r}]")


def check_is_message(message: object) -> None:
    """Raise TypeError, which says what to do, unless `message` is a NewMessage."""
    if not isinstance(message, NewMessage):
        kind = type(message).__name__
        raise TypeError(f"a message to send is a NewMessage, not {kind}: NewMessage(content) makes one")


def check_texts(message: NewMessage) -> None:
    """Raise TypeError unless `message` is a NewMessage whose text members are str."""
    check_is_message(message)
    check_is_text("content", message.content)
    for name in _TEXTS:
        value = getattr(message, name)
        if value is not None:
            check_is_text(name, value)
    if message.attributes:
        check_pairs(message.attributes)


_TEXTS = tuple(name for name, option in OPTIONS.items() if option.kind in (ValueKind.TEXT, ValueKind.QUEUE))


def check_pairs(attributes: Mapping[str, str]) -> None:
    """Raise TypeError unless all keys and values of attributes are str."""
    for key, value in attributes.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            check_is_text("the key of an attribute", key)
            check_is_text(f"attribute {key!r}", value)


def encode(name: str, text: str, field: str) -> bytes:
    """Return `text` in UTF-8. Raises InvalidContent, which names it, for lone surrogates, which UTF-8 does not have.

    field: the name in JSON of the member that contains the text.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidContent(f"the {name} is not text that UTF-8 can carry", field=field) from None


def storable_reason(text: str) -> str:
    """Make a text storable as a reason: without NUL and lone surrogates, and cut if it is too long."""
    readable = text.encode(errors="replace").decode().replace("\0", "")
    return readable[: limits.REASON_LENGTH_MAX]


def check_text(name: str, text: str, low: int, high: int, field: str | None = None) -> None:
    """Raise OutOfRange unless `text` has low to high characters, and InvalidContent for what UTF-8 cannot carry.

    field: as for `check_range`.
    """
    member = field or json_name(name)
    check_is_text(name, text)
    encode(name, text, member)
    if not low <= len(text) <= high:
        wanted = f"{low} to {high}" if low else f"at most {high}"
        raise OutOfRange(f"{name} has {wanted} characters, not {len(text)}", field=member)


def check_content(content: str, bytes_max: int = limits.CONTENT_BYTES_MAX) -> None:
    """Raise TypeError, ContentTooLarge or InvalidContent unless `content` may be a message's content."""
    check_is_text("content", content)
    if len(content) * 4 > bytes_max or not content.isascii():
        size = len(encode("content", content, "content"))
        if size > bytes_max:
            raise ContentTooLarge(
                f"the content has {size} bytes of UTF-8; at most {bytes_max} are allowed", field="content"
            )


def check_attributes(attributes: Mapping[str, str], field: str = "attributes") -> None:
    """Raise InvalidAttributes unless there are at most 10 pairs of text within their lengths (Sasquatch, S2).

    field: the name in JSON of the member that contains them.
    """
    if len(attributes) > limits.ATTRIBUTES_MAX:
        raise InvalidAttributes(
            f"there are {len(attributes)} attributes; at most {limits.ATTRIBUTES_MAX} are allowed",
            field=field,
        )
    check_pairs(attributes)
    for key, value in attributes.items():
        if not 1 <= len(key) <= limits.ATTRIBUTE_KEY_LENGTH_MAX:
            raise InvalidAttributes(
                f"attribute keys have 1 to {limits.ATTRIBUTE_KEY_LENGTH_MAX} characters, not {len(key)}",
                field=field,
            )
        if len(value) > limits.ATTRIBUTE_VALUE_LENGTH_MAX:
            raise InvalidAttributes(
                f"the value of attribute {key!r} is longer than {limits.ATTRIBUTE_VALUE_LENGTH_MAX} characters",
                field=field,
            )
        encode("key of an attribute", key, field)
        encode(f"value of attribute {key!r}", value, field)


def check_message(
    message: NewMessage, now_ms: int, content_bytes_max: int = limits.CONTENT_BYTES_MAX
) -> NewMessage:
    """Return `message` if it may be stored.

    Raises TypeError (no message, or no text), ContentTooLarge, InvalidContent, InvalidAttributes, InvalidQueueName (of
    its dead-letter queue), ProcessAfterInPast, ProcessAfterTooFar, OutOfRange or InvalidRequest (a number that is not
    an integer). The `field` of the error names the member at fault, if there is one.
    """
    check_is_message(message)
    check_content(message.content, content_bytes_max)
    values = _options_of(message)
    if values == _WITHOUT and type(message.priority) is int:
        return message
    for value, default, option, check in zip(values, _WITHOUT, _OPTIONS, _CHECKS, strict=True):
        if value is not default:
            check(option, value, now_ms)
    if message.delay_ms is not None and message.process_after is not None:
        raise OutOfRange("process_after and a delay exclude each other", field="processAfter")
    return message


def _check_time(option: Option, at_ms: int, now_ms: int) -> None:
    check_is_integer(option.name, at_ms)
    if at_ms < now_ms - limits.PROCESS_AFTER_GRACE_MS:
        raise ProcessAfterInPast(
            f"{option.name} lies {now_ms - at_ms} ms in the past;"
            f" at most {limits.PROCESS_AFTER_GRACE_MS} are allowed",
            field=option.json_name,
        )
    if at_ms > now_ms + limits.PROCESS_AFTER_AHEAD_MS_MAX:
        raise ProcessAfterTooFar(
            f"{option.name} lies {at_ms - now_ms} ms ahead;"
            f" at most {limits.PROCESS_AFTER_AHEAD_MS_MAX} are allowed",
            field=option.json_name,
        )


def _check_number(option: Option, value: int, now_ms: int) -> None:
    if type(value) is not int or not option.low <= value <= option.high:
        check_range(option.name, value, option.low, option.high, option.json_name)


def _check_text(option: Option, value: str, now_ms: int) -> None:
    check_text(option.name, value, option.low, option.high, option.json_name)


def _check_pairs(option: Option, value: dict[str, str], now_ms: int) -> None:
    check_attributes(value, option.json_name)


def _check_queue(option: Option, value: str, now_ms: int) -> None:
    if value:
        check_queue_name(value, option.json_name)


_OF_KIND: dict[ValueKind, Callable[[Option, Any, int], None]] = {
    ValueKind.TIME: _check_time,
    ValueKind.DURATION: _check_number,
    ValueKind.COUNT: _check_number,
    ValueKind.TEXT: _check_text,
    ValueKind.PAIRS: _check_pairs,
    ValueKind.QUEUE: _check_queue,
}
_OPTIONS = tuple(OPTIONS.values())
_CHECKS = tuple(_OF_KIND[option.kind] for option in _OPTIONS)
_options_of = attrgetter(*OPTIONS)
_WITHOUT = _options_of(NewMessage(""))
"""The options of a message in which none is set."""


def check_producible(queue: str) -> None:
    """Raise InvalidQueueName or ProduceToDeadLetterQueue unless messages may be sent to `queue`."""
    if is_dead_letter_queue(check_queue_name(queue)):
        raise ProduceToDeadLetterQueue
