"""Reads the bodies of sends: the JSON is decoded straight into the message that the broker stores.

Forq ignores unknown members, and so does a send of one message that has only Forq's own members. A message with any of
our members comes from a client of this server: an unknown member is a mistake and refused by name. Batches are ours
alone, so there an unknown member is always refused.

Decoding holds the interpreter lock, so a long body is read in slices, with other tasks in between; too many entries,
and attributes that are too long, are refused before they are decoded.
"""

from typing import Any

import msgspec
import trio
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.model import errors, limits
from forq_trio.model.messages import NewMessage
from forq_trio.wire.messages import NewMessages, SendResult

FORQS_MEMBERS = frozenset({"content", "processAfter"})
_TOO_LONG = "of at most length"
OUR_MEMBERS = frozenset(NewMessage.__struct_encode_fields__) - FORQS_MEMBERS


def _at_most(count: int) -> Any:
    """A list of up to this many values that are not decoded yet. Reading a longer one ends where it gets too long."""
    members = [(f"value_{index}", Raw, Raw()) for index in range(count)]
    return msgspec.defstruct("AtMost", members, array_like=True, forbid_unknown_fields=True)


class _RawMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """NewMessages whose messages are not decoded yet."""

    messages: _at_most(limits.PRODUCE_BATCH_MAX)  # type: ignore[valid-type]


class _RawAttributes(Struct, frozen=True):
    """The attributes of a message."""

    attributes: Raw = Raw()


class _ForqsMessage(Struct, frozen=True, rename="camel"):
    """The members of a message that Forq has."""

    content: str
    process_after: int | None = None


_OurMembers = msgspec.defstruct(
    "_OurMembers", [(name, Raw | UnsetType, UNSET) for name in sorted(OUR_MEMBERS)], frozen=True
)
_read_message = BodyReader(NewMessage)
_read_messages = BodyReader(NewMessages)
_read_raw_messages = BodyReader(_RawMessages, NewMessages)
_read_attributes = msgspec.json.Decoder(_RawAttributes).decode
_read_forqs_message = BodyReader(_ForqsMessage)
_read_our_members = BodyReader(_OurMembers)


def read_message(body: bytes) -> NewMessage:
    """The message of a body. Raises Refused."""
    try:
        return read_our_message(body)
    except Refused:
        if all(value is UNSET for value in astuple(_read_our_members(body))):
            sent = _read_forqs_message(body)
            return NewMessage(sent.content, sent.process_after)
        raise


def read_our_message(raw: bytes | Raw) -> NewMessage:
    """The message, which may have our members and no others. Raises Refused."""
    if len(raw) > limits.READ_SLICE_BYTES:
        _check_attributes(raw)
    return _read_message(raw)


async def read_messages(body: bytes) -> list[NewMessage | SendResult]:
    """The messages of a batch; for an invalid one its result. A short batch without any is decoded at once.

    Raises Refused for a body that is no batch.
    """
    if len(body) <= limits.READ_SLICE_BYTES:
        try:
            return list(_read_messages(body).messages)
        except Refused:
            pass  # each entry is read alone
    entries: list[NewMessage | SendResult] = []
    slices = ReadSlices()
    for raw in split_messages(body):
        await slices.read(len(raw))
        entries.append(_read_entry(raw))
    return entries


def split_messages(body: bytes) -> list[Raw]:
    """The entries of a batch, none of them decoded yet. Raises Refused for a body that is no batch of at most 1,000."""
    try:
        return [raw for raw in astuple(_read_raw_messages(body).messages) if raw]
    except Refused as refusal:
        if _TOO_LONG not in (refusal.view.message or ""):
            raise
    most = limits.PRODUCE_BATCH_MAX
    raise Refused(
        errors.OutOfRange.about("messages"), f"messages has at most {most} entries", field="$.messages"
    )


class ReadSlices:
    """Lets other tasks run after each slice of JSON, or a hundred values."""

    def __init__(self) -> None:
        self._left = float(limits.READ_SLICE_BYTES)

    async def read(self, size: int) -> None:
        """Call this before reading a value of `size` bytes."""
        self._left -= size + limits.READ_SLICE_BYTES / 100
        if self._left < 0:
            self._left = float(limits.READ_SLICE_BYTES)
            await trio.lowlevel.checkpoint()


def refused_result(refusal: Refused) -> SendResult:
    """The result of a message of a batch that is refused alone. Its `field` is a path into the message."""
    view = refusal.view
    return SendResult(code=view.code, field=view.field, message=view.message)


def _read_entry(raw: Raw) -> NewMessage | SendResult:
    try:
        return read_our_message(raw)
    except Refused as refusal:
        return refused_result(refusal)


def _check_attributes(raw: bytes | Raw) -> None:
    """Raise Refused for attributes that are longer than ten can be."""
    try:
        attributes = _read_attributes(raw).attributes
    except (msgspec.DecodeError, RecursionError):
        return  # decoding all of it says why
    if len(attributes) > limits.ATTRIBUTES_JSON_BYTES_MAX:
        most = limits.ATTRIBUTES_MAX
        raise Refused(
            errors.InvalidAttributes,
            f"the attributes are longer than {most} can be, which is how many are allowed",
            field="$.attributes",
        )
