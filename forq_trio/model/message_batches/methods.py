"""Methods for message batches."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.model.errors import ForqError
from forq_trio.model.limits import MESSAGE_BATCHES_PAGE_DEFAULT
from forq_trio.model.message_batches.types import (
    AddressedMessage,
    MessageBatch,
    MessageBatchPage,
    NewMessageBatch,
)
from forq_trio.model.messages.types import Produced


class MessageBatchMethods(ABC):
    """Messages that belong together, whose end the server tells with a message (docs/batches.md)."""

    @abstractmethod
    async def open_batch(self, batch: NewMessageBatch, *, batch_id: str | None = None) -> MessageBatch:
        """Open a batch; returns once it is durable.

        batch_id: 1-128 characters of A-Z a-z 0-9 . _ : -; None for a new UUID. The same call with the same id again
        changes nothing. Raises InvalidName, MessageBatchExists, TooManyMessageBatches; what `produce` raises for the
        messages that it sends, except QueueFull; InvalidRequest for one with a deduplication id; with `outer`
        MessageBatchNotFound, MessageBatchEnded, MessageBatchFull, MessageBatchTooDeep.
        """

    @abstractmethod
    async def add_to_batch(
        self, batch_id: str, messages: Sequence[AddressedMessage]
    ) -> list[Produced | ForqError]:
        """Send up to 1,000 messages as members of a batch, in one commit; each is refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise. Raises
        InvalidName, OutOfRange, MessageBatchNotFound, MessageBatchEnded, MessageBatchFull, and what `produce` raises
        for the storage.
        """

    @abstractmethod
    async def close_batch(self, batch_id: str) -> MessageBatch:
        """Let a batch end when no member is left. Raises InvalidName, MessageBatchNotFound."""

    @abstractmethod
    async def abandon_batch(self, batch_id: str) -> MessageBatch:
        """End a batch without its message; its members stay. Raises InvalidName, MessageBatchNotFound."""

    @abstractmethod
    async def batch(self, batch_id: str) -> MessageBatch:
        """How far a batch is. Raises InvalidName, MessageBatchNotFound."""

    @abstractmethod
    async def batches(
        self, *, before: int | None = None, limit: int = MESSAGE_BATCHES_PAGE_DEFAULT
    ) -> MessageBatchPage:
        """Batches, the newest first, at most `limit` (1-100); a token sees its own. before: the `next` of a page.

        Raises OutOfRange.
        """
