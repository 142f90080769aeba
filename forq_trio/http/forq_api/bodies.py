"""The JSON bodies of Forq's API, as they come in and go out, and how the incoming ones are read.

Members that are not known are refused by name, and the last of a repeated member counts. (What a send takes is in
`sends`.) Bounds of numbers are stated for the OpenAPI document only: they are checked by hand, because each has its
own error code.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from forq_trio.http.forq_api.codes import BODY_INVALID, UNKNOWN_FIELD, refused
from forq_trio.model import limits
from forq_trio.model.messages import Delivery, Failure, MessageInfo

BodyT = TypeVar("BodyT")

FIELD_LENGTH_MAX = 100
"""How much of an unknown member's name is told back."""

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`( - at `.*`)?", re.DOTALL)


def bounded(low: int, high: int, meaning: str) -> Any:
    """Documents an integer's range (both ends included) without checking it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


def up_to(count: int, meaning: str) -> Any:
    """Documents the greatest length of a list without checking it."""
    return Meta(description=meaning, extra_json_schema={"maxItems": count})


ReceiptText = Annotated[str, Meta(description="Proof of a delivery. Opaque; names its message.")]
Receipts = Annotated[
    list[ReceiptText], up_to(limits.RECEIPTS_BATCH_MAX, "Receipts of this queue's messages.")
]
EpochMs = Annotated[int, Meta(description="Milliseconds since the Unix epoch.")]
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
Delay = bounded(0, limits.NACK_DELAY_MS_MAX, "For how many milliseconds nobody gets the messages.")
Lease = bounded(
    0, limits.LEASE_MS_MAX, "How long the messages are this consumer's, in milliseconds from now."
)


class ReceivedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A message handed to a consumer, who shows `receipt` to settle it; or one that was only peeked at.

    firstReceivedAt: when it was first handed to a consumer, null if it never was. What was only peeked at has neither
    receipt nor leaseUntil, and its attempts are those it had. A `Delivery` has the same form in JSON.
    """

    id: str
    content: str
    attempts: Count
    sequence: int
    received_at: EpochMs
    priority: int
    first_received_at: EpochMs | None
    attributes: dict[str, str] | UnsetType = UNSET
    group: str | UnsetType = UNSET
    receipt: str | UnsetType = UNSET
    lease_until: EpochMs | UnsetType = UNSET

    @classmethod
    def peeked(cls, info: MessageInfo) -> "ReceivedMessage":
        """A message that was only looked at."""
        return cls(
            info.id,
            info.content,
            info.attempts,
            info.sequence,
            info.received_at,
            info.priority,
            info.first_received_at,
            UNSET if info.attributes is None else info.attributes,
            UNSET if info.group is None else info.group,
        )


class ReceiveRequest(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """How many messages to lease for how long, and how long to wait for the first.

    Without leaseMs: as long as a lease of the queue is. order: `fifo` is the queue's own order, `shuffle` random
    messages. peek: only look, lease nothing.
    """

    max: Annotated[int, bounded(1, limits.RECEIVE_BATCH_MAX, "The most messages wanted.")] = 1
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first message.")] = 0
    lease_ms: Annotated[int, Lease] | None = None
    order: Literal["fifo", "shuffle"] = "fifo"
    peek: bool = False


class ReceivedMessages(Struct, frozen=True, rename="camel"):
    """The messages in claim order; none when the wait was in vain."""

    messages: Sequence[ReceivedMessage]


class LeasedMessages(Struct, frozen=True, rename="camel"):
    """ReceivedMessages as they come from the broker."""

    messages: tuple[Delivery, ...]


class AckRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages that are done with."""

    receipts: Receipts


class NackRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages that failed. Without delayMs they back off by attempt, as the queue has it: 1, 5, 15, 30, 60 seconds."""

    receipts: Receipts
    delay_ms: Annotated[int, Delay] | None = None
    reason: (
        Annotated[
            str,
            Meta(
                description="Kept as the messages' last error.",
                extra_json_schema={"maxLength": limits.REASON_LENGTH_MAX},
            ),
        ]
        | None
    ) = None


class ExtendRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages that take longer. Without leaseMs: as long as a lease of the queue is."""

    receipts: Receipts
    lease_ms: Annotated[int, Lease] | None = None


class ReleaseRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to give back unprocessed, the attempt uncounted."""

    receipts: Receipts
    delay_ms: Annotated[int, Delay] = 0


class Settled(Struct, frozen=True, gc=False, rename="camel"):
    """What became of one receipt: ok (with leaseUntil when a lease was extended), or not and the code why."""

    receipt: str
    ok: bool
    lease_until: EpochMs | UnsetType = UNSET
    code: str | UnsetType = UNSET


class SettledReceipts(Struct, frozen=True, rename="camel"):
    """One result per receipt, in their order."""

    results: list[Settled]


class QueueSummary(Struct, frozen=True, gc=False, rename="camel"):
    """How many messages a queue holds by status, and how many consumers wait for one.

    held: messages that wait because as many of their group are in process as may be. bytes: of content and attributes.
    """

    queue: str
    is_dlq: bool
    ready: Count
    delayed: Count
    processing: Count
    failed: Count
    held: Count
    bytes: Count
    waiting: Count
    paused: bool


class QueueList(Struct, frozen=True, rename="camel"):
    """All queues that are known, by name."""

    queues: list[QueueSummary]


class QueueDetail(QueueSummary, frozen=True, gc=False, rename="camel"):
    """A queue, with how long ago its oldest ready message was received; null without one."""

    oldest_ready_age_ms: Count | None = None


class MessageView(Struct, frozen=True, gc=False, rename="camel"):
    """A stored message, looked at without touching it."""

    id: str
    queue: str
    sequence: int
    status: Literal["ready", "processing", "failed", "delayed", "held"]
    content: str
    attempts: Count
    priority: int
    received_at: EpochMs
    process_after: EpochMs
    updated_at: EpochMs
    expires_after: EpochMs
    processing_started_at: EpochMs | None = None
    lease_until: EpochMs | None = None
    failure_reason: str | None = None
    source_queue: str | None = None
    last_error: str | None = None
    attributes: dict[str, str] | None = None
    group: str | None = None
    first_received_at: EpochMs | None = None
    max_attempts: int | None = None
    ttl_ms: int | None = None
    dead_letter_queue: str | None = None
    dead_lettered_at: EpochMs | None = None
    source_attempts: Count | None = None
    failures: tuple[Failure, ...] = ()
    bytes: Count = 0

    @classmethod
    def of(cls, info: MessageInfo) -> "MessageView":
        """The view of a message as the broker describes it."""
        return cls(**{**msgspec.structs.asdict(info), "status": info.status.name.lower()})


class MessageViews(Struct, frozen=True, rename="camel"):
    """Messages in claim order."""

    messages: list[MessageView]


class BodyReader(Generic[BodyT]):
    """Reads one type of body.

    Raises Refused with `bad_request.body.unknown_field` for an object with a member that its type does not know, if
    that type forbids it, and `bad_request.body.invalid` for anything else that is not of the type.
    """

    __slots__ = ("_decode",)

    def __init__(self, body: type[BodyT]) -> None:
        self._decode = msgspec.json.Decoder(body).decode

    def __call__(self, raw: bytes | msgspec.Raw) -> BodyT:
        try:
            if isinstance(raw, bytes) and not raw.isascii():
                raw.decode()  # the decoder does not look into members it ignores
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            unknown = _UNKNOWN_FIELD.fullmatch(str(error))
            if unknown is None or not _is_json(raw):
                raise refused(BODY_INVALID) from None
            raise refused(UNKNOWN_FIELD, field=unknown[1][:FIELD_LENGTH_MAX]) from None


def _is_json(raw: bytes | msgspec.Raw) -> bool:
    """Whether a body is JSON to its end: it was read as far as its first unknown member."""
    try:
        _read_any(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


_read_any = msgspec.json.Decoder(msgspec.Raw).decode
