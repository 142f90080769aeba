"""The JSON bodies of Forq's API, as they come in and go out, and how the incoming ones are read.

Unknown members are ignored and the last of a repeated member counts, as Forq's clients are used to. Bounds of
numbers are stated for the OpenAPI document only: they are checked by hand, because each has its own error code.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from forq_trio import limits
from forq_trio.http.codes import BODY_INVALID, refused
from forq_trio.model import Delivery, MessageInfo

BodyT = TypeVar("BodyT")


def bounded(low: int, high: int, meaning: str) -> Any:
    """Documents an integer's range (both ends included) without checking it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


def up_to(count: int, meaning: str) -> Any:
    """Documents the greatest length of a list without checking it."""
    return Meta(description=meaning, extra_json_schema={"maxItems": count})


Content = Annotated[
    str,
    Meta(
        description="Any text of at most 256 KiB in UTF-8.",
        extra_json_schema={"maxLength": limits.CONTENT_BYTES_MAX},
    ),
]
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


class NewMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message to send. Without processAfter it is due at once."""

    content: Content
    process_after: EpochMs | None = None


class NewMessages(Struct, frozen=True, rename="camel"):
    """Messages to send in one commit; at most 4 MiB of content in all."""

    messages: Annotated[list[NewMessage], up_to(limits.PRODUCE_BATCH_MAX, "Stored in this order.")]


class RawMessages(Struct, frozen=True, rename="camel"):
    """NewMessages before anybody looked at the messages."""

    messages: list[msgspec.Raw]


class SendResult(Struct, frozen=True, gc=False, rename="camel"):
    """What became of a message of a batch: stored, with id and sequence, or not and the code why."""

    id: str | UnsetType = UNSET
    sequence: int | UnsetType = UNSET
    code: str | UnsetType = UNSET


class SendResults(Struct, frozen=True, rename="camel"):
    """One result per message, in their order."""

    results: list[SendResult]


class ReceivedMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message handed to a consumer, who shows `receipt` to settle it."""

    id: str
    content: str
    receipt: str


class ReceiveRequest(Struct, frozen=True, gc=False, rename="camel"):
    """How many messages to lease for how long, and how long to wait for the first."""

    max: Annotated[int, bounded(1, limits.RECEIVE_BATCH_MAX, "The most messages wanted.")] = 1
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first message.")] = 0
    lease_ms: Annotated[int, Lease] = limits.LEASE_MS_DEFAULT


class ReceivedMessages(Struct, frozen=True, rename="camel"):
    """The leased messages in claim order; none when the wait was in vain."""

    messages: tuple[Delivery, ...]


class AckRequest(Struct, frozen=True, rename="camel"):
    """Messages that are done with."""

    receipts: Receipts


class NackRequest(Struct, frozen=True, rename="camel"):
    """Messages that failed. Without delayMs they back off by attempt: 1, 5, 15, 30, 60 seconds."""

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


class ExtendRequest(Struct, frozen=True, rename="camel"):
    """Messages that take longer."""

    receipts: Receipts
    lease_ms: Annotated[int, Lease] = limits.LEASE_MS_DEFAULT


class ReleaseRequest(Struct, frozen=True, rename="camel"):
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
    """How many messages a queue holds by status, and how many consumers wait for one."""

    queue: str
    is_dlq: bool
    ready: Count
    delayed: Count
    processing: Count
    failed: Count
    waiting: Count


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
    status: Literal["ready", "processing", "failed", "delayed"]
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

    @classmethod
    def of(cls, info: MessageInfo) -> "MessageView":
        """The view of a message as the broker describes it."""
        return cls(**{**msgspec.structs.asdict(info), "status": info.status.name.lower()})


class MessageViews(Struct, frozen=True, rename="camel"):
    """Messages in claim order."""

    messages: list[MessageView]


class BodyReader(Generic[BodyT]):
    """Reads one type of body; raises Refused with `bad_request.body.invalid` for anything else."""

    __slots__ = ("_decode",)

    def __init__(self, body: type[BodyT]) -> None:
        self._decode = msgspec.json.Decoder(body).decode

    def __call__(self, raw: bytes | msgspec.Raw) -> BodyT:
        try:
            if isinstance(raw, bytes) and not raw.isascii():
                raw.decode()  # the decoder does not look into members it ignores
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise refused(BODY_INVALID) from None
