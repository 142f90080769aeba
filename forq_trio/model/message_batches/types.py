"""Message batches: what is asked for, and how far they are.

A member is a message, or another batch inside of this one. The rules are in storage/message_batches.py.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.values import Count, EpochMs, Uuid, bounded

BATCH_ATTRIBUTE = "forq-batch"
"""The attribute of a member that names its batch."""
ENDED_ATTRIBUTE = "forq-ended-batch"
"""The attribute of a message that a batch sends; it names that batch."""
OWN_ATTRIBUTES = (BATCH_ATTRIBUTE, ENDED_ATTRIBUTE)

MessageBatchState = Literal["open", "closed", "ended"]
"""open: whoever made it may still add. closed: it waits for its members, which may add more. ended: nothing follows."""
MessageBatchOutcome = Literal["sent", "nothing_to_send", "unmet", "refused", "expired", "abandoned"]
"""How a batch ended.

sent: no member was left, and `then` is sent, or will be when its queue takes it. nothing_to_send: the same without
`then`. unmet: not all were done, as it needed, and they never all can be. refused: the queue of `then` took no message
until the batch expired. expired: its time was over. abandoned: its maker gave it up.
"""
Needs = Annotated[
    Literal["ended", "done"],
    Meta(
        description="When `then` is sent: `ended` once every member has ended in whatever way, or is a dead letter; "
        "`done` only if every member was acknowledged."
    ),
]
ExpiresMs = Annotated[
    int,
    bounded(
        limits.MESSAGE_BATCH_EXPIRES_MS_MIN,
        limits.MESSAGE_BATCH_EXPIRES_MS_MAX,
        "How long after it was made the batch ends in any case, without `then`.",
    ),
]


class AddressedMessage(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A message, and the queue that it goes to."""

    queue: str  # no dead-letter queue
    message: NewMessage  # as a send has it

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that it names."""
        own = self.message.dead_letter_queue
        return (self.queue, own) if own else (self.queue,)


class NewMessageBatch(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """A batch to open."""

    then: AddressedMessage | None = None  # sent once when all members have ended; null: nothing is
    on_dead: AddressedMessage | None = None  # sent once when a member becomes a dead letter; null: nothing is
    needs: Needs = "ended"
    expires_ms: ExpiresMs = limits.MESSAGE_BATCH_EXPIRES_MS_DEFAULT
    outer: str | None = None  # the id of the batch that has this one as a member; null for none

    @property
    def messages(self) -> tuple[AddressedMessage, ...]:
        """The messages that it is to send."""
        return tuple(each for each in (self.then, self.on_dead) if each is not None)

    @property
    def stored_bytes(self) -> int:
        """The bytes of what it sends, as they are stored: as JSON, in which some characters take six times as many."""
        return sum(len(msgspec.json.encode(each)) for each in self.messages)


class MessageBatch(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A batch as it is now, without the contents of what it sends."""

    id: str  # as its maker chose it
    state: MessageBatchState  # whether it still takes members, and whether it has ended
    outcome: MessageBatchOutcome | None  # how it ended; null before
    made_at: EpochMs  # when it was opened
    made_by: str | None  # the name of the access token, null for the server's secret
    closed_at: EpochMs | None  # when its maker closed it; null before
    ended_at: EpochMs | None  # null before
    expires_at: EpochMs  # when it ends in any case
    outer: str | None  # the id of the batch that has this one as a member
    needs: Needs
    left: Count  # members that have not ended
    done: Count  # members that were acknowledged
    removed: Count  # members that ended in another way: discarded, deleted, cancelled
    dead: Count  # members that are dead letters, or failed for good
    then_queue: str | None  # where `then` goes to; null without one
    then_id: Uuid | None  # the id of its message, once it is sent
    on_dead_queue: str | None  # where `onDead` goes to; null without one
    on_dead_id: Uuid | None  # the id of its message, once it is sent
    refused: str | None  # the code with which a queue refused what is to be sent; null for none

    @property
    def members(self) -> int:
        """How many members it has had so far."""
        return self.left + self.done + self.removed + self.dead


class MessageBatchPage(Struct, frozen=True, gc=False):
    """Batches, the newest first."""

    batches: list[MessageBatch]  # at most `limit`
    next: int | None = None  # the `before` of the next page, null at the end
