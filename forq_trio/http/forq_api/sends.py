"""What a send takes, and how it is read: a message decoded from JSON is the very message the broker stores.

Forq ignores members that it does not know, and so does a send of one message that has only Forq's own members. One
that has any of ours comes from a client that knows us: a member that we do not know is a mistake, and refused by name.
Batches are ours alone, so there it always is.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from forq_trio.http.forq_api.bodies import BodyReader, EpochMs, bounded, up_to
from forq_trio.http.forq_api.codes import Refused
from forq_trio.model import limits
from forq_trio.model import messages as model


def _text(longest: int, meaning: str) -> Any:
    """Documents a text of 1 to `longest` characters without checking it."""
    return Meta(description=meaning, extra_json_schema={"minLength": 1, "maxLength": longest})


Content = Annotated[
    str,
    Meta(
        description="Any text of at most 256 KiB in UTF-8.",
        extra_json_schema={"maxLength": limits.CONTENT_BYTES_MAX},
    ),
]
Priority = Annotated[
    int, bounded(limits.PRIORITY_MIN, limits.PRIORITY_MAX, "Messages of a higher priority come first.")
]
DeduplicationId = Annotated[
    str,
    _text(limits.DEDUPLICATION_ID_LENGTH_MAX, "A second message with it, within the window, is not stored."),
]
WindowMs = Annotated[
    int, bounded(1, limits.DEDUPLICATION_WINDOW_MS_MAX, "How long the deduplicationId is remembered.")
]
DelayMs = Annotated[
    int,
    bounded(0, limits.DELAY_MS_MAX, "How long it waits before it is due. Not together with processAfter."),
]
TtlMs = Annotated[int, bounded(1, limits.TTL_MS_MAX, "How long it lives from when it is due.")]
Attributes = Annotated[
    dict[str, str],
    Meta(
        description="Handed over with the message. Keys of 1 to 64 characters, values of at most 1,024.",
        extra_json_schema={"maxProperties": limits.ATTRIBUTES_MAX},
    ),
]
Group = Annotated[
    str, _text(limits.GROUP_LENGTH_MAX, "Messages of a group keep their order; groups take turns.")
]
MaxAttempts = Annotated[int, bounded(1, limits.MAX_ATTEMPTS_MAX, "Deliveries before it fails.")]
DeadLetterQueue = Annotated[
    str, Meta(description="Where it goes when it fails or expires; empty: it is deleted.")
]


class NewMessage(model.NewMessage, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """A message to send. Without processAfter and delayMs it is due at once; null and absent leave it to the queue."""

    content: Content
    process_after_ms: EpochMs | None = msgspec.field(default=None, name="processAfter")
    priority: Priority = limits.PRIORITY_DEFAULT
    deduplication_id: DeduplicationId | None = None
    deduplication_window_ms: WindowMs | None = None
    delay_ms: DelayMs | None = None
    ttl_ms: TtlMs | None = None
    attributes: Attributes | None = None
    group: Group | None = None
    max_attempts: MaxAttempts | None = None
    dead_letter_queue: DeadLetterQueue | None = None


FORQS_MEMBERS = frozenset({"content", "processAfter"})
OUR_MEMBERS = frozenset(NewMessage.__struct_encode_fields__) - FORQS_MEMBERS


class NewMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to send in one commit; at most 4 MiB of content in all."""

    messages: Annotated[list[NewMessage], up_to(limits.PRODUCE_BATCH_MAX, "Stored in this order.")]


class SendResult(Struct, frozen=True, gc=False, rename="camel"):
    """What became of a message of a batch: stored, with id and sequence, or not and the code why.

    duplicate: true where the deduplicationId was known; id and sequence are those of the first message. field: the
    member that is not known.
    """

    id: str | UnsetType = UNSET
    sequence: int | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    code: str | UnsetType = UNSET
    field: str | UnsetType = UNSET


class SendResults(Struct, frozen=True, rename="camel"):
    """One result per message, in their order."""

    results: list[SendResult]


class _RawMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """NewMessages before anybody looked at the messages."""

    messages: list[msgspec.Raw]


class _ForqsMessage(Struct, frozen=True, rename="camel"):
    """What Forq itself reads of a message."""

    content: str
    process_after: int | None = None


_read_message = BodyReader(NewMessage)
_read_messages = BodyReader(NewMessages)
_read_raw_messages = BodyReader(_RawMessages)
_read_forqs_message = BodyReader(_ForqsMessage)
_read_members = BodyReader(dict[str, msgspec.Raw])
_read_refusal = msgspec.json.Decoder(SendResult).decode


def read_message(body: bytes) -> model.NewMessage:
    """The message of a body. Raises Refused."""
    try:
        return _read_message(body)
    except Refused:
        if OUR_MEMBERS.isdisjoint(_read_members(body)):
            sent = _read_forqs_message(body)
            return model.NewMessage(sent.content, sent.process_after)
        raise


def read_messages(body: bytes) -> list[model.NewMessage | SendResult]:
    """The messages of a batch; for one that is none, its result. The usual batch has none and is read at once.

    Raises Refused for a body that is no batch.
    """
    try:
        return list(_read_messages(body).messages)
    except Refused:
        return [_read_entry(raw) for raw in _read_raw_messages(body).messages]


def _read_entry(raw: msgspec.Raw) -> model.NewMessage | SendResult:
    try:
        return _read_message(raw)
    except Refused as refusal:
        return _read_refusal(refusal.response.body)
