"""Payloads as the contents of messages: a serializer for each type."""

import re
from base64 import b64decode, b64encode
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from forq_trio.model import json_text, limits
from forq_trio.model.errors import ForqError

T = TypeVar("T")

_KIND = re.compile(r"[A-Za-z0-9_-]+")


class Serializer(Protocol[T]):
    """Turns payloads into message contents, and contents back into payloads.

    Equal payloads must have equal contents: that is how an offer is recognised that changes nothing.
    """

    def encode(self, payload: T) -> str:
        """The content of a payload. It may raise any error for a payload that cannot be written."""
        ...

    def decode(self, content: str) -> T:
        """The payload of a content. It may raise any error for an unreadable content; the error's text says why."""
        ...


class UnreadablePayload(ForqError):
    """The content of the message cannot be read as a payload of this queue"""

    code = "delayed.unreadable_payload"


class JsonSerializer(Generic[T]):
    """A type as JSON: what msgspec reads and writes (Struct, dataclass, TypedDict, dict, list, numbers, times …)."""

    def __init__(self, payload_type: Any) -> None:
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(payload_type)
        self._decode = json_text.bounded(decoder.decode)

    def encode(self, payload: T) -> str:
        return json_text.encode_payload(payload, ordered=True).decode()

    def decode(self, content: str) -> T:
        return cast("T", self._decode(content))


class TextSerializer:
    """Text as it is."""

    def encode(self, payload: str) -> str:
        return payload

    def decode(self, content: str) -> str:
        return content


class BytesSerializer:
    """Bytes as base64."""

    def encode(self, payload: bytes) -> str:
        return b64encode(payload).decode()

    def decode(self, content: str) -> bytes:
        return b64decode(content, validate=True)


def serializer_of(payload_type: Any) -> Serializer[Any]:
    """The serializer for a type: text as it is, bytes as base64, everything else as JSON.

    Raises TypeError for a type that msgspec does not know.
    """
    if payload_type is str:
        return TextSerializer()
    if payload_type is bytes:
        return BytesSerializer()
    return JsonSerializer(payload_type)


def check_kind_of_queue(kind: str) -> str:
    """Return the kind; raise ValueError for one that cannot end the name of a queue."""
    if _KIND.fullmatch(kind) is None or len(kind) > limits.KIND_LENGTH_MAX or kind.endswith("-dlq"):
        raise ValueError(
            f"the kind of a delayed queue is 1 to {limits.KIND_LENGTH_MAX} characters of A-Z a-z 0-9 _ -,"
            f" without -dlq at the end; {kind!r} is not: name one with kind="
        )
    return kind
