"""Messages for a table of pgq's layout, as they are published, and the checks that pgq leaves to its consumers."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from forq_trio.model import json_text, limits
from forq_trio.model.errors import InvalidRequest
from forq_trio.model.messages.new_message import OPTIONS, NewMessage
from forq_trio.pgq.errors import InvalidPayload

Injector = Callable[[], Mapping[str, str]]
"""A function that returns metadata for every published message, such as the host, or the id of a trace."""


class Message(Struct, frozen=True):
    """A message to publish."""

    payload: Any  # becomes a JSON object: a dict, Struct or dataclass, or the text of such an object
    metadata: Mapping[str, str] | None = None  # texts by name
    scheduled_for: datetime | None = None  # when it is due, with a time zone
    delay: timedelta | None = None  # the same, from now by the database's clock


def message_of(message: NewMessage) -> Message:
    """A message of a queue as one of a table; attributes are its metadata. Raises InvalidRequest for other options."""
    given = [
        name
        for name in OPTIONS
        if name not in _KNOWN and getattr(message, name) not in (None, getattr(_PLAIN, name))
    ]
    if given:
        raise InvalidRequest(
            f"a table of pgq has no {', '.join(sorted(given))}", field=OPTIONS[given[0]].json_name
        )
    due = message.process_after
    return Message(
        message.content,
        message.attributes,
        None if due is None else datetime.fromtimestamp(due / 1_000, UTC),
        timedelta(milliseconds=message.delay_ms) if message.delay_ms else None,
    )


_KNOWN = ("content", "attributes", "process_after", "delay_ms")
_PLAIN = NewMessage("")


class MessageRows(Struct):
    """Messages in the form that the statement takes."""

    scheduled: list[datetime | None]
    delays: list[timedelta | None]
    payloads: list[str]
    metadata: list[str]


def rows_of(messages: Sequence[Message], injectors: Sequence[Injector] = ()) -> MessageRows:
    """The messages as rows. Metadata of an injector replace those of the same name in a message.

    Raises InvalidPayload, which names the place, for a payload that is not an object, metadata that are not texts, a
    time without a zone, and for more than 1,000 messages or 64 MiB.
    """
    if len(messages) > limits.PGQ_PUBLISH_MAX:
        raise InvalidPayload(f"at most {limits.PGQ_PUBLISH_MAX:,} messages are published at once")
    injected: dict[str, str] = {}
    for each in injectors:
        injected.update(each())
    rows = MessageRows([], [], [], [])
    size = 0
    for place, message in enumerate(messages):
        if not isinstance(message, Message):
            raise TypeError(f"a message to publish is a pgq.Message, not {type(message).__name__}")
        try:
            rows.payloads.append(_payload(message.payload))
            rows.metadata.append(_metadata({**(message.metadata or {}), **injected}))
        except (TypeError, ValueError) as problem:  # msgspec's own errors are among them
            raise InvalidPayload(f"message {place}: {problem}") from None
        if message.scheduled_for is not None and message.scheduled_for.utcoffset() is None:
            raise InvalidPayload(f"message {place}: scheduled_for has no time zone")
        rows.scheduled.append(message.scheduled_for)
        rows.delays.append(message.delay)
        size += len(rows.payloads[-1]) + len(rows.metadata[-1])
        if size > limits.PGQ_PUBLISH_BYTES_MAX:
            raise InvalidPayload(
                f"messages of at most {limits.PGQ_PUBLISH_BYTES_MAX:,} bytes are published at once"
            )
    return rows


def metadata_of(text: str | None) -> dict[str, str] | None:
    """The metadata in a row; None if they are not texts. As in pgq, null is the empty text, as a whole no metadata."""
    try:
        found = _decode_metadata(text or "null")
    except msgspec.DecodeError:
        return None
    return {key: value or "" for key, value in (found or {}).items()}


_decode_metadata = msgspec.json.Decoder(dict[str, str | None] | None).decode


def _payload(payload: Any) -> str:
    text = payload if isinstance(payload, str) else json_text.encode_payload(payload).decode()
    json_text.check_depth(text)
    json_text.check_range(text)
    if not isinstance(msgspec.json.decode(text), dict):
        raise ValueError("the payload is no JSON object")
    return _storable(text, "the payload")


def _metadata(metadata: Mapping[str, str]) -> str:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata {key!r} is no text")
    encoded = json_text.encode(metadata)
    if len(encoded) > limits.PGQ_PUBLISH_METADATA_BYTES_MAX:
        raise ValueError(f"the metadata have more than {limits.PGQ_PUBLISH_METADATA_BYTES_MAX:,} bytes")
    return _storable(encoded.decode(), "the metadata")


def _storable(text: str, what: str) -> str:
    """The text, which has no NUL: PostgreSQL's jsonb refuses it."""
    if "\\u0000" in text.replace("\\\\", ""):
        raise ValueError(f"{what} has a NUL, which PostgreSQL cannot store")
    return text
