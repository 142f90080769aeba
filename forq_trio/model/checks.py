"""Validates the parts of commands: numbers, texts, attributes, messages. All functions raise CallerErrors."""

from collections.abc import Mapping

from forq_trio.model import limits
from forq_trio.model.errors import (
    ContentTooLarge,
    InvalidAttributes,
    InvalidContent,
    InvalidRequest,
    OutOfRange,
    ProcessAfterInPast,
    ProcessAfterTooFar,
)
from forq_trio.model.messages import NewMessage, check_queue_name, json_name


def check_range(name: str, value: int, low: int, high: int, field: str | None = None) -> int:
    """Return `value`, or raise OutOfRange naming it and its bounds (both included), InvalidRequest if it is no integer.

    field: the member's name in JSON, None if it is `name` in camel case.
    """
    check_is_integer(name, value, field)
    if low <= value <= high:
        return value
    raise OutOfRange(f"{name} must be between {low} and {high}, not {value}", field=field or json_name(name))


def check_is_integer(name: str, value: object, field: str | None = None) -> None:
    """Raise InvalidRequest unless `value` is an int: SQLite would store a fraction in a column of integers.

    field: as for `check_range`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        kind = type(value).__name__
        raise InvalidRequest(f"{name} must be an integer (int), not {kind}", field=field or json_name(name))


def check_is_text(name: str, value: object) -> None:
    """Raise TypeError, saying what to do, unless `value` is a str: as JSON, bytes would become base64 unnoticed."""
    if isinstance(value, str):
        return
    kind = type(value).__name__
    advice = ""
    if isinstance(value, bytes | bytearray | memoryview):
        advice = ": .decode() makes text of UTF-8, base64.b64encode(...).decode() of any bytes"
    elif name == "content":
        advice = ": produce_json, or NewMessage.of_json in a batch, sends a value as JSON"
    raise TypeError(f"{name} is text (str), not {kind}{advice}")


def check_is_message(message: object) -> None:
    """Raise TypeError, saying what to do, unless `message` is a NewMessage."""
    if not isinstance(message, NewMessage):
        kind = type(message).__name__
        raise TypeError(f"a message to send is a NewMessage, not {kind}: NewMessage(content) makes one")


def check_texts(message: NewMessage) -> None:
    """Raise TypeError unless it is a message and its text members are text."""
    check_is_message(message)
    check_is_text("content", message.content)
    for name in ("deduplication_id", "group", "dead_letter_queue"):
        value = getattr(message, name)
        if value is not None:
            check_is_text(name, value)
    if message.attributes:
        check_pairs(message.attributes)


def check_pairs(attributes: Mapping[str, str]) -> None:
    """Raise TypeError unless attributes are pairs of text."""
    for key, value in attributes.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            check_is_text("the key of an attribute", key)
            check_is_text(f"attribute {key!r}", value)


def encode(name: str, text: str, field: str) -> bytes:
    """Return `text` in UTF-8, or raise InvalidContent naming it: UTF-8 has no lone surrogates.

    field: the member that it is, or is a part of, by its name in JSON.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidContent(f"the {name} is not text that UTF-8 can carry", field=field) from None


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
    """Raise InvalidAttributes unless they are at most 10 pairs of text within their lengths (Sasquatch, S2).

    field: the member that they are, by its name in JSON.
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
    its dead-letter queue), ProcessAfterInPast, ProcessAfterTooFar, OutOfRange or InvalidRequest (a number that is no
    integer). The `field` of the error names the member where there is one.
    """
    check_is_message(message)
    check_content(message.content, content_bytes_max)
    if message.process_after is not None:
        check_is_integer("process_after", message.process_after)
        if message.process_after < now_ms - limits.PROCESS_AFTER_GRACE_MS:
            past_ms = now_ms - message.process_after
            raise ProcessAfterInPast(
                f"process_after lies {past_ms} ms in the past; at most {limits.PROCESS_AFTER_GRACE_MS} are allowed",
                field="processAfter",
            )
        if message.process_after > now_ms + limits.PROCESS_AFTER_AHEAD_MS_MAX:
            ahead_ms = message.process_after - now_ms
            raise ProcessAfterTooFar(
                f"process_after lies {ahead_ms} ms ahead; at most {limits.PROCESS_AFTER_AHEAD_MS_MAX} are allowed",
                field="processAfter",
            )
    if (
        type(message.priority) is not int
        or not limits.PRIORITY_MIN <= message.priority <= limits.PRIORITY_MAX
    ):
        check_range("priority", message.priority, limits.PRIORITY_MIN, limits.PRIORITY_MAX)
    if message.deduplication_id is not None:
        check_text("deduplication_id", message.deduplication_id, 1, limits.DEDUPLICATION_ID_LENGTH_MAX)
    if message.group is not None:
        check_text("group", message.group, 1, limits.GROUP_LENGTH_MAX)
    if message.attributes is not None:
        check_attributes(message.attributes)
    _check_bounds(message)
    return message


def _check_bounds(message: NewMessage) -> None:
    """Check the members by which a message overrides its queue's rules."""
    if message.delay_ms is not None:
        if message.process_after is not None:
            raise OutOfRange("process_after and a delay exclude each other", field="processAfter")
        check_range("delay_ms", message.delay_ms, 0, limits.DELAY_MS_MAX)
    if message.ttl_ms is not None:
        check_range("ttl_ms", message.ttl_ms, 1, limits.TTL_MS_MAX)
    if message.max_attempts is not None:
        check_range("max_attempts", message.max_attempts, 1, limits.MAX_ATTEMPTS_MAX)
    if message.deduplication_window_ms is not None:
        window_ms = message.deduplication_window_ms
        check_range("deduplication_window_ms", window_ms, 1, limits.DEDUPLICATION_WINDOW_MS_MAX)
    if message.dead_letter_queue:
        check_queue_name(message.dead_letter_queue, "deadLetterQueue")
