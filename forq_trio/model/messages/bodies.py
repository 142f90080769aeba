"""Messages as they are sent, received and looked at."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.error_answers import Explanation, Field
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, MessageInfo
from forq_trio.model.messages.where import NotEqual
from forq_trio.model.queries import Query
from forq_trio.model.values import LEFT_OUT, Count, EpochMs, Uuid, bounded, up_to

LeaseMs = Annotated[
    int,
    bounded(
        0, limits.LEASE_MS_MAX, "How long the messages are leased to this consumer, in milliseconds from now."
    ),
]
Order = Annotated[
    Literal["fifo", "shuffle"],
    Meta(description="`fifo` for the queue's own order, `shuffle` for random messages."),
]


Conditions = Annotated[
    dict[str, str | NotEqual], Meta(extra_json_schema={"maxProperties": limits.ATTRIBUTES_MAX})
]


class NewMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to send in one commit; at most 4 MiB of content in all."""

    messages: Annotated[list[NewMessage], up_to(limits.PRODUCE_BATCH_MAX, "Stored in this order.")]


class SendResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of a message of a batch: stored, with id and sequence, or not, with the code of the reason."""

    id: Annotated[Uuid | None, LEFT_OUT] = None  # of the message that is stored
    sequence: Annotated[int | None, LEFT_OUT] = None  # grows in the order of arrival, and is never used twice
    # true where the deduplicationId was known; id and sequence are those of the first message
    duplicate: Annotated[bool, LEFT_OUT] = False
    code: Annotated[str | None, LEFT_OUT] = None  # why the message is not stored
    field: Field = None  # a path into the message
    message: Explanation = None


class SendResults(Struct, frozen=True, rename="camel"):
    """One result per message, in their order."""

    results: list[SendResult]  # of the messages, in their order


class ReceiveRequest(
    Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """How many messages to lease for how long, and how long to wait for the first."""

    max: Annotated[int, bounded(1, limits.RECEIVE_BATCH_MAX, "How many messages at most.")] = 1
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first message.")] = 0
    lease_ms: LeaseMs | None = None  # null: the queue's
    order: Literal["fifo", "shuffle"] = "fifo"  # `fifo`: the queue's own order; `shuffle`: random messages
    peek: bool = False  # lease nothing: the messages have no receipts, and their attempts do not count it
    # lease only messages whose attributes meet all of up to 10 conditions, such as
    # `{"region": "eu", "tier": {"not": "free"}}`; see docs/queues.md#receive-by-attributes. Neither with
    # `peek` nor with `order` `shuffle`
    where: Conditions | None = None


class NextQuery(Query, frozen=True, kw_only=True):
    """How to receive the next message."""

    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for a message.")] = (
        limits.WAIT_MS_MAX
    )
    order: Order = "fifo"
    peek: Annotated[bool, Meta(description="Only peek: the message is not leased, and has no receipt.")] = (
        False
    )


class PeekQuery(Query, frozen=True, kw_only=True):
    """Which messages to peek at."""

    limit: Annotated[int, bounded(1, limits.BROWSE_PAGE_MAX, "How many messages at most.")] = (
        limits.PEEK_DEFAULT
    )
    order: Order = "fifo"

    def arguments(self) -> dict[str, Any]:
        return {"limit": self.limit, "shuffle": self.order == "shuffle"}


class ReceivedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A message that was delivered to a consumer, or only peeked at.

    A `Delivery` has the same form in JSON.
    """

    id: Uuid  # of the message
    content: str  # as it was sent
    attempts: Count  # how often it was delivered, this time included; a peek does not count
    sequence: int  # grows in the order of arrival
    received_at: EpochMs  # when it was sent
    priority: int  # messages of a higher one come first
    first_received_at: EpochMs | None  # when it was first delivered, null if it never was
    attributes: Annotated[dict[str, str] | None, LEFT_OUT] = None  # absent without any
    group: Annotated[str | None, LEFT_OUT] = None  # absent without one
    key: Annotated[str | None, LEFT_OUT] = None  # of a keyed message
    kind: Annotated[str, LEFT_OUT] = ""  # of a keyed message, absent for no kind
    # the message's own, absent where the queue's holds
    max_attempts: Annotated[Count | None, LEFT_OUT] = None
    receipt: Annotated[str | None, LEFT_OUT] = None  # settles this delivery; absent after a peek
    lease_until: Annotated[EpochMs | None, LEFT_OUT] = None  # when the lease ends; absent after a peek


class NextMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The next message as Forq answers it.

    A client that asks for more, with the header X-Forq-Answer, gets the members of ReceivedMessage.
    """

    id: Uuid  # of the message
    content: str  # as it was sent
    receipt: Annotated[str | None, LEFT_OUT] = None  # settles this delivery; absent after a peek


class ReceivedMessages(Struct, frozen=True, rename="camel"):
    """The messages in claim order; none if none came within the wait."""

    messages: Sequence[ReceivedMessage]  # in claim order


class LeasedMessages(Struct, frozen=True, rename="camel"):
    """ReceivedMessages, as the broker returns them."""

    messages: list[Delivery]


class MessageList(Struct, frozen=True, rename="camel"):
    """Messages in claim order."""

    messages: list[MessageInfo]  # at most 4 MiB of them, or one
