"""Opens message batches, adds members, and shows how far they are. A part of `Broker`; the engine counts."""

from collections.abc import Sequence
from uuid import uuid4

from msgspec.structs import replace

from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.sends import Sends
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, ForqError, InvalidRequest, MessageBatchNotFound
from forq_trio.model.holders import token_of_task
from forq_trio.model.message_batches.methods import MessageBatchMethods
from forq_trio.model.message_batches.types import (
    BATCH_ATTRIBUTE,
    ENDED_ATTRIBUTE,
    AddressedMessage,
    MessageBatch,
    MessageBatchPage,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.publishing.types import check_pipeline_name


class MessageBatchCalls(MessageBatchMethods, Sends):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    async def open_batch(self, batch: NewMessageBatch, *, batch_id: str | None = None) -> MessageBatch:
        batch_id = str(uuid4()) if batch_id is None else check_pipeline_name(batch_id, "batch")
        low, high = limits.MESSAGE_BATCH_EXPIRES_MS_MIN, limits.MESSAGE_BATCH_EXPIRES_MS_MAX
        check_range("expires_ms", batch.expires_ms, low, high)
        if batch.needs not in ("ended", "done"):
            raise InvalidRequest("needs is ended or done", field="needs")
        if batch.outer is not None:
            check_pipeline_name(batch.outer, "outer")
        for each in batch.messages:
            self._check_sent(each)
        await name_queues(self._writer, *[queue for each in batch.messages for queue in each.queues])
        return await self._writer.execute(commands.OpenMessageBatch(batch_id, batch, token_of_task()))

    def _check_sent(self, sent: AddressedMessage) -> None:
        """Raise the error for a message that a batch cannot send."""
        check_producible(sent.queue)
        if sent.message.deduplication_id is not None:
            raise InvalidRequest("what a batch sends has no deduplication id: it is sent once anyway")
        message = _with_attributes(sent.message, BATCH_ATTRIBUTE, ENDED_ATTRIBUTE)
        self._check_texts(check_message(message, self._clock.now_ms()))

    async def add_to_batch(
        self, batch_id: str, messages: Sequence[AddressedMessage]
    ) -> list[Produced | ForqError]:
        check_pipeline_name(batch_id, "batch")
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX, "messages")
        now_ms = self._clock.now_ms()
        results: list[Produced | ForqError | None] = []
        for each in messages:
            try:
                check_producible(each.queue)
                self._check_texts(check_message(_with_attributes(each.message, BATCH_ATTRIBUTE), now_ms))
                results.append(None)
            except CallerError as error:
                results.append(error)
        queues, sent = [each.queue for each in messages], [each.message for each in messages]
        await self._refuse_new_queues(queues, sent, results)
        accepted = tuple(each for each, result in zip(messages, results, strict=True) if result is None)
        # Nobody learns about a batch without adding to it.
        stored = (
            await self._writer.execute(commands.AddToMessageBatch(batch_id, accepted)) if accepted else ()
        )
        rest = iter(stored)
        return [next(rest) if result is None else result for result in results]

    async def close_batch(self, batch_id: str) -> MessageBatch:
        return await self._close(batch_id, abandon=False)

    async def abandon_batch(self, batch_id: str) -> MessageBatch:
        return await self._close(batch_id, abandon=True)

    async def batch(self, batch_id: str) -> MessageBatch:
        check_pipeline_name(batch_id, "batch")
        page = await self._writer.execute(commands.ShowMessageBatches(batch_id, by=token_of_task()))
        if not page.batches:
            raise MessageBatchNotFound
        return page.batches[0]

    async def batches(
        self, *, before: int | None = None, limit: int = limits.MESSAGE_BATCHES_PAGE_DEFAULT
    ) -> MessageBatchPage:
        before = limits.SEQUENCE_MAX if before is None else before
        check_range("before", before, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.MESSAGE_BATCHES_PAGE_MAX)
        return await self._writer.execute(commands.ShowMessageBatches(None, before, limit, token_of_task()))

    async def _close(self, batch_id: str, *, abandon: bool) -> MessageBatch:
        check_pipeline_name(batch_id, "batch")
        return await self._writer.execute(commands.CloseMessageBatch(batch_id, abandon, token_of_task()))


def _with_attributes(message: NewMessage, *names: str) -> NewMessage:
    """The message with the attributes that a batch adds, as long as they may be."""
    own = dict.fromkeys(names, "x" * limits.PIPELINE_NAME_LENGTH_MAX)
    return replace(message, attributes={**(message.attributes or {}), **own})
