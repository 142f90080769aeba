"""Commands on message batches. What becomes of members needs no command: each commit counts it."""

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits
from forq_trio.model.forq_error import ForqError
from forq_trio.model.message_batches.types import (
    AddressedMessage,
    MessageBatch,
    MessageBatchPage,
    NewMessageBatch,
)
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.messages.types import Produced


def _opened_bytes(command: "OpenMessageBatch") -> int:
    return command.new.stored_bytes


def _added_bytes(command: "AddToMessageBatch") -> int:
    return sum([bytes_of(each.message.content, each.message.attributes) for each in command.messages])


def _added_weight(command: "AddToMessageBatch") -> int:
    return limits.LONE_SEND_WEIGHT * len(command.messages)


class OpenMessageBatch(Command[MessageBatch], frozen=True, gc=False):
    """Make a batch. If it was made already, by the same call, it stays as it is.

    Fails with MessageBatchExists, TooManyMessageBatches; with an outer batch MessageBatchNotFound, MessageBatchEnded,
    MessageBatchFull or MessageBatchTooDeep.
    """

    traits = Traits(
        CommandOrder.BATCHES, Effect.GROWS, weighs=limits.MESSAGE_BATCH_WEIGHT, stores=_opened_bytes
    )

    id: str
    new: NewMessageBatch
    by: str | None = None  # the name of the access token, None for the secret


class AddToMessageBatch(Command[tuple[Produced | ForqError, ...]], frozen=True, gc=False):
    """Store messages, each on its own, as members of a batch; a known duplicate is not a further member.

    Fails with MessageBatchNotFound, MessageBatchEnded or MessageBatchFull, and then stores none. Outcome: for each what
    became of it, or the error why it was not stored.
    """

    traits = Traits(CommandOrder.BATCHES, Effect.GROWS, weighs=_added_weight, stores=_added_bytes)

    id: str
    messages: tuple[AddressedMessage, ...]


class CloseMessageBatch(Command[MessageBatch], frozen=True, gc=False):
    """Let a batch end as soon as no member is left. A closed one stays as it is.

    abandon: end it now without `then`; its members stay in their queues. One that has ended gives up what it could not
    send yet. Fails with MessageBatchNotFound, also for the batch of another token.
    """

    traits = Traits(CommandOrder.BATCHES, Effect.LASTS, weighs=limits.MESSAGE_BATCH_WEIGHT)

    id: str
    abandon: bool = False
    by: str | None = None


class ShowMessageBatches(Command[MessageBatchPage], frozen=True, gc=False):
    """The batches below a number, the newest first; or only the one with this id, if it exists.

    by: only those of this token; None for all.
    """

    traits = Traits(CommandOrder.BATCHES, Effect.REPEATS, weighs=limits.MESSAGE_BATCH_WEIGHT)

    id: str | None = None
    before: int = limits.SEQUENCE_MAX
    limit: int = 1
    by: str | None = None
