"""Messages as they are sent, received and looked at."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model import messages as model
from forq_trio.model.messages import Delivery as Delivery
from forq_trio.model.messages import MessageInfo
from forq_trio.model.messages import Produced as Produced
from forq_trio.model.values import LEFT_OUT, Count, EpochMs, bounded, text_up_to, up_to
from forq_trio.wire.errors import Explanation, Field

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
    text_up_to(
        limits.DEDUPLICATION_ID_LENGTH_MAX, "A second message with it, within the window, is not stored."
    ),
]
WindowMs = Annotated[
    int, bounded(1, limits.DEDUPLICATION_WINDOW_MS_MAX, "How long the deduplicationId is remembered.")
]
DelayMs = Annotated[
    int,
    bounded(0, limits.DELAY_MS_MAX, "How long the message is delayed. Not together with processAfter."),
]
TtlMs = Annotated[int, bounded(1, limits.TTL_MS_MAX, "How long the message lives from when it is due.")]
Attributes = Annotated[
    dict[str, str],
    Meta(
        description="Delivered with the message. Keys of 1 to 64 characters, values of at most 1,024.",
        extra_json_schema={"maxProperties": limits.ATTRIBUTES_MAX},
    ),
]
Group = Annotated[
    str, text_up_to(limits.GROUP_LENGTH_MAX, "Messages of a group keep their order; groups take turns.")
]
MaxAttempts = Annotated[int, bounded(1, limits.MAX_ATTEMPTS_MAX, "Deliveries before the message fails.")]
DeadLetterQueue = Annotated[
    str, Meta(description="The queue for the message when it fails or expires; empty: it is deleted.")
]
LeaseMs = Annotated[
    int,
    bounded(0, limits.LEASE_MS_MAX, "How long the messages are this consumer's, in milliseconds from now."),
]


class NewMessage(model.NewMessage, frozen=True, gc=False, forbid_unknown_fields=True):
    """A message to send. Without processAfter and delayMs it is due at once. null is like absent: the queue's rule."""

    content: Content
    process_after: EpochMs | None = None
    delay_ms: DelayMs | None = None
    priority: Priority = limits.PRIORITY_DEFAULT
    ttl_ms: TtlMs | None = None
    attributes: Attributes | None = None
    deduplication_id: DeduplicationId | None = None
    deduplication_window_ms: WindowMs | None = None
    group: Group | None = None
    max_attempts: MaxAttempts | None = None
    dead_letter_queue: DeadLetterQueue | None = None


class NewMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to send in one commit; at most 4 MiB of content in all."""

    messages: Annotated[list[NewMessage], up_to(limits.PRODUCE_BATCH_MAX, "Stored in this order.")]


class SendResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of a message of a batch: stored, with id and sequence, or not, with the code of the reason.

    duplicate: true where the deduplicationId was known; id and sequence are those of the first message. field: a path
    into the message.
    """

    id: Annotated[str | None, LEFT_OUT] = None
    sequence: Annotated[int | None, LEFT_OUT] = None
    duplicate: Annotated[bool, LEFT_OUT] = False
    code: Annotated[str | None, LEFT_OUT] = None
    field: Field = None
    message: Explanation = None


class SendResults(Struct, frozen=True, rename="camel"):
    """One result per message, in their order."""

    results: list[SendResult]


class ReceiveRequest(
    Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """How many messages to lease for how long, and how long to wait for the first.

    leaseMs: absent for the queue's. order: `fifo` is the queue's own order, `shuffle` random messages. peek: lease
    nothing.
    """

    max: Annotated[int, bounded(1, limits.RECEIVE_BATCH_MAX, "The most messages wanted.")] = 1
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first message.")] = 0
    lease_ms: LeaseMs | None = None
    order: Literal["fifo", "shuffle"] = "fifo"
    peek: bool = False


class ReceivedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A message delivered to a consumer, who settles it by `receipt`; or one that was only peeked at.

    firstReceivedAt: when it was first delivered, null if it never was. A message that was only peeked at has neither
    receipt nor leaseUntil, and its attempts do not count the peek. A `Delivery` has the same form in JSON.
    """

    id: str
    content: str
    attempts: Count
    sequence: int
    received_at: EpochMs
    priority: int
    first_received_at: EpochMs | None
    attributes: Annotated[dict[str, str] | None, LEFT_OUT] = None
    group: Annotated[str | None, LEFT_OUT] = None
    receipt: Annotated[str | None, LEFT_OUT] = None
    lease_until: Annotated[EpochMs | None, LEFT_OUT] = None


class NextMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The next message as Forq answers it; a client that asks for more gets the members of ReceivedMessage.

    A message that was only peeked at has no receipt.
    """

    id: str
    content: str
    receipt: Annotated[str | None, LEFT_OUT] = None


class ReceivedMessages(Struct, frozen=True, rename="camel"):
    """The messages in claim order; none if none came within the wait."""

    messages: Sequence[ReceivedMessage]


class LeasedMessages(Struct, frozen=True, rename="camel"):
    """ReceivedMessages, as the broker returns them."""

    messages: list[Delivery]


class MessageList(Struct, frozen=True, rename="camel"):
    """Messages in claim order."""

    messages: list[MessageInfo]
