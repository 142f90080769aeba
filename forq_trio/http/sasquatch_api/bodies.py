"""The JSON of the dialect's requests and answers. Unknown members are ignored, null is like absent.

Every member of a request type may be absent; `required` checks those that must be there. The decoder checks types, the
endpoints check ranges.
"""

from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from forq_trio.http.message import Request
from forq_trio.http.sasquatch_api.errors import (
    INVALID_REQUEST,
    MESSAGE_SIZE_EXCEEDED,
    VALIDATION_ERROR,
    SasquatchError,
    SasquatchErrorView,
)
from forq_trio.model import limits

BodyT = TypeVar("BodyT")
ValueT = TypeVar("ValueT")


class SendRequest(Struct, frozen=True):
    """A message to send; times in seconds."""

    queue_name: str | None = None
    message_body: str | None = None
    priority: int | None = None
    delay_seconds: int | None = None
    message_retention_period: int | None = None
    message_deduplication_id: str | None = None
    message_deduplication_time_period: int | None = None
    message_attributes: dict[str, str] | None = None


class SendBatchRequest(Struct, frozen=True):
    """The messages of a batch, undecoded: each is decoded alone, so that an invalid one does not affect the others."""

    messages: list[msgspec.Raw] | None = None


class SasquatchReceive(Struct, frozen=True):
    """What to receive, and how long to wait for the first message."""

    queue_name: str | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    max_number_of_messages: int | None = None
    max_receives: int | None = None
    dead_letter_queue_name: str | None = None
    peek: bool | None = None
    shuffle: bool | None = None


class HandlesRequest(Struct, frozen=True):
    """Messages by their receipt handles; visibility_timeout is for /change_visibility alone."""

    receipt_handles: list[str] | None = None
    visibility_timeout: int | None = None


class QueueRequest(Struct, frozen=True):
    """One queue."""

    queue_name: str | None = None


class Sent(Struct, frozen=True):
    """A stored message."""

    message_id: str
    md5_of_message_body: str
    sequence_number: int


class SentAt(Struct, frozen=True):
    """A stored message of a batch. index: in the request, from 0."""

    index: int
    message_id: str
    md5_of_message_body: str
    sequence_number: int


class FailedAt(Struct, frozen=True):
    """A message of a batch that was not stored. index: in the request, from 0."""

    index: int
    error: SasquatchErrorView


class SentBatch(Struct, frozen=True):
    """The results of a batch."""

    successful: list[SentAt]
    failed: list[FailedAt]


class SasquatchMessage(Struct, frozen=True, kw_only=True):
    """A message; times in seconds since the epoch. One that was only peeked at has no receipt handle."""

    message_id: str
    receipt_handle: str | UnsetType = UNSET
    message_body: str
    md5_of_message_body: str
    priority: int
    approximate_receive_count: int
    approximate_first_receive_timestamp: int
    sent_timestamp: int
    sequence_number: int
    message_attributes: dict[str, str] | UnsetType = UNSET


class SasquatchMessages(Struct, frozen=True):
    """The messages; none if none came within the wait."""

    messages: list[SasquatchMessage]


class Deleted(Struct, frozen=True):
    """How many messages were deleted."""

    deleted: int


class Done(Struct, frozen=True):
    """The request was carried out."""

    result: str = "ok"


class PurgedQueues(Struct, frozen=True):
    """The queues were purged. deleted: how many messages were deleted."""

    result: str
    deleted: int


class QueueLength(Struct, frozen=True):
    """Messages of a queue that can be received, and those received but not deleted yet."""

    queue_name: str
    count: int
    in_flight: int


class SasquatchBodyReader(Generic[BodyT]):
    """Reads one type of body; raises SasquatchError InvalidRequest, or MessageSizeExceeded for one that is too long."""

    __slots__ = ("_bytes_max", "_decode")

    def __init__(self, body: type[BodyT], bytes_max: int) -> None:
        self._decode = msgspec.json.Decoder(body).decode
        self._bytes_max = bytes_max

    def __call__(self, request: Request) -> BodyT:
        """The body of a request."""
        check_body_size(request, self._bytes_max)
        try:
            if not request.body.isascii():
                request.body.decode()  # the decoder does not check the UTF-8 of members that it ignores
        except UnicodeDecodeError:
            raise SasquatchError(INVALID_REQUEST, "the request body is not UTF-8") from None
        return self.part(request.body)

    def part(self, raw: bytes | msgspec.Raw) -> BodyT:
        """A part of a body that was read raw."""
        try:
            return self._decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise SasquatchError(
                INVALID_REQUEST, f"the request is not what this endpoint takes: {error}"
            ) from None


def check_body_size(request: Request, bytes_max: int) -> None:
    """Raise SasquatchError when the request is longer than its endpoint takes."""
    if len(request.body) > bytes_max:
        raise SasquatchError(MESSAGE_SIZE_EXCEEDED, f"the request body is longer than {bytes_max} bytes")


def required(name: str, value: ValueT | None) -> ValueT:
    """Return `value`, or raise SasquatchError when it is missing."""
    if value is None:
        raise SasquatchError(INVALID_REQUEST, f"{name} is required")
    return value


def in_range(name: str, value: int | None, default: int, low: int, high: int) -> int:
    """Return `value`, or `default` when it is absent; raise SasquatchError unless low <= value <= high."""
    if value is None:
        return default
    if low <= value <= high:
        return value
    raise SasquatchError(VALIDATION_ERROR, f"{name} must be between {low} and {high}, not {_shown(value)}")


def milliseconds(name: str, seconds: int | None, low: int, high: int, default: int | None) -> int | None:
    """Check a time in seconds like `in_range`, and return it in milliseconds; None if it and `default` are absent."""
    if seconds is None and default is None:
        return None
    return in_range(name, seconds, default or 0, low, high) * limits.SECOND_MS


def count_in_batch(name: str, values: list[ValueT] | None) -> list[ValueT]:
    """Return `values`, or raise SasquatchError unless there are 1 to 10 of them."""
    found = required(name, values)
    if 1 <= len(found) <= limits.SASQUATCH_BATCH_MAX:
        return found
    raise SasquatchError(
        VALIDATION_ERROR, f"{name} must have 1 to {limits.SASQUATCH_BATCH_MAX} entries, not {len(found)}"
    )


def _shown(number: int) -> str:
    """A number in full, unless it has more than 18 digits."""
    return str(number) if abs(number) < 10**18 else "a number of that size"
