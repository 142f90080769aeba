"""Methods that send messages, receive them, and look at them."""

from abc import abstractmethod
from collections.abc import Sequence
from types import NoneType
from typing import Any, Unpack

from forq_trio.model.access.types import Scope
from forq_trio.model.command_methods import CommandMethods
from forq_trio.model.endpoint import WRITE_ERRORS, Answer, CommandEndpoint
from forq_trio.model.errors import ForqError, MessageInFlight, MessageNotFound, QueueBound
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.model.messages.receipts import CancelRequest
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced
from forq_trio.model.messages.where import Wanted

CANCEL_MESSAGE = CommandEndpoint(
    "DELETE",
    "/queues/{queue}/messages/{messageId}",
    Scope.CANCEL,
    command="Cancel",
    name="cancelMessage",
    tag="Producer",
    summary="Remove a message before anybody receives it",
    description="The message is ready, delayed or held, in a dead-letter queue, too. 409 "
    "`conflict.message_in_flight`: a consumer has it, and may settle it; after its lease ends it can be "
    "cancelled, and the receipt is void then. `POST …/cancel` cancels it before. Its `deduplicationId` is remembered "
    "for its window: a repeated send does not bring the message back, so its replacement needs another id.",
    answers=(Answer(204, "The message is removed.", NoneType),),
    errors=(MessageNotFound, MessageInFlight, QueueBound, *WRITE_ERRORS),
)


CANCEL_RUNNING_MESSAGE = CommandEndpoint(
    "POST",
    "/queues/{queue}/messages/{messageId}/cancel",
    Scope.CANCEL,
    command="CancelRunning",
    name="cancelRunningMessage",
    tag="Producer",
    summary="Remove a message, also while a consumer has it",
    description="As `cancelMessage`, whatever the state of the message. The receipt of a consumer is void then, and "
    "`POST /api/v1/withdrawn` tells who waits for that: a worker cancels its handler at once. What the handler has "
    "done until then stays done.",
    answers=(Answer(204, "The message is removed.", NoneType),),
    errors=(MessageNotFound, QueueBound, *WRITE_ERRORS),
    body=CancelRequest,
    needs_body=False,
)


class MessageMethods(CommandMethods):
    """What was received is settled by `SettlementMethods`."""

    @abstractmethod
    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once it is durable (see FORQ_DURABILITY).

        Options: the members of `NewMessage`. Raises what `check_message` raises, InvalidQueueName,
        ProduceToDeadLetterQueue, QueueFull, Overloaded, Stopping, StorageUnavailable (nothing stored) or
        OutcomeUnknown; TypeError for an unknown option, and for content that is not a str.
        """

    @abstractmethod
    async def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        """Like `produce`, with `value` as JSON; also raises what `NewMessage.of_json` raises."""

    @abstractmethod
    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        """Store the valid ones of up to 1,000 messages in one commit, all or none; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise. Raises like
        `produce`. A request has 4 MiB at most: `forq_trio.client.batches` cuts more into several.
        """

    async def cancel(self, queue: str, message_id: str, *, running: bool = False, reason: str = "") -> None:
        """Remove a message before anybody receives it: one that is ready, delayed or held.

        running: also one that a consumer has. Its receipt is void then, and the handler of a worker is cancelled at
        once; what that has done until then stays done. reason, with `running` only: what the handler's job says then
        (`removal_reason`), and the last error of the message; at most 1,024 characters.

        Its deduplication id is still remembered for its window, so that a repeated send does not bring it back. Raises
        InvalidQueueName, MalformedMessageId, OutOfRange; MessageNotFound for one that does not exist; MessageInFlight,
        without `running`, for one that a consumer has; and what `produce` raises when nothing was changed.
        """
        if running:
            await self._perform(CANCEL_RUNNING_MESSAGE, queue=queue, message_id=message_id, reason=reason)
        else:
            await self._perform(CANCEL_MESSAGE, queue=queue, message_id=message_id)

    @abstractmethod
    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = WAIT_MS_MAX,
        lease_ms: int | None = None,
        shuffle: bool = False,
        where: Wanted | None = None,
    ) -> list[Delivery]:
        """Lease up to `max_messages` (1-100) for `lease_ms` (None: the queue's), in claim order or at random.

        Waits up to `wait_ms` (0-30,000) for the first one; returns [] when none came. Among waiting receivers the one
        that waits longest is served first. A message whose lease ends before it is settled is delivered again. where:
        take only messages whose attributes have these values, e.g. {"region": "eu", "tier": {"not": "free"}}. Raises
        InvalidRequest for an invalid `where`, or one with `shuffle`; InvalidQueueName, OutOfRange, Overloaded,
        Stopping, StorageUnavailable or OutcomeUnknown.
        """

    @abstractmethod
    async def message(self, queue: str, message_id: str) -> MessageInfo:
        """One message, read without changing it. Raises MalformedMessageId or MessageNotFound."""

    @abstractmethod
    async def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        """The next ready messages (1-100) in claim order, or random ones; nothing is claimed."""
