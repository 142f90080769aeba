"""Reads bodies with messages: the JSON is decoded straight into the message that the broker stores.

Forq ignores unknown members, and so does a send of one message that has only Forq's own members. A message with any of
our members comes from a client of this server: there an unknown member is a mistake, and the refusal names it. Forq has
no batches, so in a batch an unknown member is always refused.

Decoding holds the interpreter lock, so a long body is read in slices, with other tasks in between; too many entries,
and attributes that are too long, are refused before they are decoded.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import trio
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.errors import refusal_of
from forq_trio.http.forq_api.reading import check_length
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import Request
from forq_trio.in_place import require_task
from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.bodies import NewMessages
from forq_trio.model.messages.new_message import NewMessage

MessageT = TypeVar("MessageT", bound="_Message")
OutcomeT = TypeVar("OutcomeT")
ResultT = TypeVar("ResultT")
BatchT = TypeVar("BatchT")

FORQS_MEMBERS = frozenset({"content", "processAfter"})
_TOO_LONG = "of at most length"
_TOO_MANY = errors.OutOfRange.about("messages")
OUR_MEMBERS = frozenset(NewMessage.__struct_encode_fields__) - FORQS_MEMBERS


def at_most(count: int) -> Any:
    """The type of a list of at most `count` values, which stay undecoded. A longer list is refused at its first excess
    value, without reading the rest.
    """
    members = [(f"value_{index}", Raw, Raw()) for index in range(count)]
    return msgspec.defstruct("AtMost", members, array_like=True, forbid_unknown_fields=True)


class _Message(Protocol):
    """What a new message and an offer have in common here."""

    @property
    def content(self) -> str: ...

    @property
    def dead_letter_queue(self) -> str | None: ...


class _RawMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """NewMessages whose messages are not decoded yet."""

    messages: at_most(limits.PRODUCE_BATCH_MAX)  # type: ignore[valid-type]


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
_read_raw_messages = BodyReader(_RawMessages, NewMessages)
_read_attributes = msgspec.json.Decoder(_RawAttributes).decode
_read_forqs_message = BodyReader(_ForqsMessage)
_read_our_members = BodyReader(_OurMembers)


def read_message(body: bytes) -> NewMessage:
    """Decode the body of a send of one message. Raises Refused."""
    try:
        return read_our_message(body)
    except Refused:
        if all(value is UNSET for value in astuple(_read_our_members(body))):
            sent = _read_forqs_message(body)
            return NewMessage(sent.content, sent.process_after)
        raise


class MessageReader(BodyReader[MessageT]):
    """Reads a message, and refuses members that are neither Forq's nor ours."""

    __slots__ = ()

    def __call__(self, raw: bytes | Raw) -> MessageT:
        if len(raw) > limits.READ_SLICE_BYTES:
            _check_attributes(raw)
        return super().__call__(raw)


read_our_message = MessageReader(NewMessage)


def check_body(body: bytes) -> None:
    """Raise Refused if the body of one message is so long that its content must be too long."""
    if len(body) > limits.SEND_BODY_BYTES_MAX:
        most = limits.SEND_BODY_BYTES_MAX
        sentence = f"the body is longer than {most} bytes, so its content cannot be allowed"
        raise Refused(errors.ContentTooLarge, sentence, status=413)


class MessagesReader(Generic[MessageT]):
    """Reads the messages of a batch. batch: the type of the body; message: that of its `messages`."""

    def __init__(self, batch: type[Struct], message: type[MessageT]) -> None:
        self._read_batch: BodyReader[Any] = BodyReader(batch)
        self._read_message = MessageReader(message)

    async def __call__(self, request: Request) -> list[MessageT | Refused]:
        """The messages; for each invalid one its refusal.

        Raises Refused for a body that is no batch, or one too large; Forbidden for a dead-letter queue to which the
        caller may not send.
        """
        entries = await self.entries(request.body)
        check_length("$.messages", len(entries), limits.PRODUCE_BATCH_MAX, "entries", _TOO_MANY)
        messages = valid(entries)
        if _content_bytes_exceed(limits.PRODUCE_BATCH_BYTES_MAX, request.body, messages):
            most = limits.PRODUCE_BATCH_BYTES_MAX
            sentence = f"the contents of a batch have at most {most} bytes"
            raise Refused(errors.ContentTooLarge, sentence, status=413)
        for target in {message.dead_letter_queue for message in messages} - {None, ""}:
            request.principal.check(Scope.PRODUCE, target)
        return entries

    async def entries(self, body: bytes) -> list[MessageT | Refused]:
        """The messages, without a check of their sizes. A short batch of valid messages is decoded in one go."""
        if len(body) <= limits.READ_SLICE_BYTES:
            try:
                return list(self._read_batch(body).messages)
            except Refused:
                pass  # each entry is read alone
        entries: list[MessageT | Refused] = []
        slices = ReadSlices()
        for raw in split_messages(body):
            await slices.read(len(raw))
            entries.append(self._read_entry(raw))
        return entries

    def _read_entry(self, raw: Raw) -> MessageT | Refused:
        try:
            return self._read_message(raw)
        except Refused as refusal:
            return refusal


read_messages = MessagesReader(NewMessages, NewMessage)


def valid(entries: Sequence[MessageT | Refused]) -> list[MessageT]:
    """The entries without the refusals among them."""
    return [entry for entry in entries if not isinstance(entry, Refused)]


def split_messages(body: bytes) -> list[Raw]:
    """The entries of a batch, none of them decoded yet. Raises Refused for a body that is no batch of at most 1,000."""
    return entries_of(read_batch(_read_raw_messages, body))


def read_batch(read: BodyReader[BatchT], body: bytes) -> BatchT:
    """Decode a body, except its `messages`, whose type is `at_most(…)`. Raises Refused."""
    try:
        return read(body)
    except Refused as refusal:
        if _TOO_LONG not in (refusal.view.message or ""):
            raise
    most = limits.PRODUCE_BATCH_MAX
    raise Refused(_TOO_MANY, f"messages has at most {most} entries", field="$.messages")


def entries_of(batch: Any) -> list[Raw]:
    """The entries of a body that `read_batch` has read."""
    return [raw for raw in astuple(batch.messages) if raw]


class ReadSlices:
    """Lets other tasks run after each slice of JSON, or after a hundred values."""

    def __init__(self) -> None:
        self._left = float(limits.READ_SLICE_BYTES)

    async def read(self, size: int) -> None:
        """Call this before reading a value of `size` bytes."""
        self._left -= size + limits.READ_SLICE_BYTES / 100
        if self._left < 0:
            self._left = float(limits.READ_SLICE_BYTES)
            require_task()
            await trio.lowlevel.checkpoint()


def _content_bytes_exceed(bound: int, body: bytes, messages: Sequence[_Message]) -> bool:
    """Whether the contents are longer than `bound` together.

    JSON is never shorter than the UTF-8 of its texts, so most bodies are short enough without a count.
    """
    return len(body) > bound and sum(len(message.content.encode()) for message in messages) > bound


def _check_attributes(raw: bytes | Raw) -> None:
    """Raise Refused for attributes that are longer than ten can be."""
    try:
        attributes = _read_attributes(raw).attributes
    except (msgspec.DecodeError, RecursionError):
        return  # the decoder refuses it next, and says why
    if len(attributes) > limits.ATTRIBUTES_JSON_BYTES_MAX:
        most = limits.ATTRIBUTES_MAX
        raise Refused(
            errors.InvalidAttributes,
            f"the attributes are longer than {most} can be, which is how many are allowed",
            field="$.attributes",
        )


def results_of(
    entries: Sequence[object],
    outcomes: Sequence[OutcomeT | ForqError],
    done: Callable[[OutcomeT], ResultT],
    refused: Callable[..., ResultT],
) -> list[ResultT]:
    """The results of a batch, in the order of its entries. outcomes: those of the valid entries, in order.

    done: makes the result of an outcome. refused: makes one of code, field (a path into the message) and message.
    """
    rest = iter(outcomes)
    results = []
    for entry in entries:
        outcome = entry if isinstance(entry, Refused) else next(rest)
        if isinstance(outcome, ForqError):
            outcome = refusal_of(outcome)
        if isinstance(outcome, Refused):
            view = outcome.view
            results.append(refused(code=view.code, field=view.field, message=view.message))
        else:
            results.append(done(outcome))
    return results
