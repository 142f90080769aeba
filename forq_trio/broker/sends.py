"""Sends: one message, many of one queue, or of several; and cancelling what was sent. A part of `Broker`."""

from collections.abc import Sequence
from typing import Any, Unpack

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues, refused_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, ForqError, MessageInFlight, MessageNotFound
from forq_trio.model.messages import (
    MessageOptions,
    NewMessage,
    Produced,
    Status,
    check_message_id,
    check_queue_name,
)


class Sends(BrokerBase):
    """Cancellation is that of `Broker`."""

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once it is durable (see FORQ_DURABILITY). Options: the members of `NewMessage`.

        Raises what `check_message` raises, InvalidQueueName, ProduceToDeadLetterQueue, QueueFull, Overloaded,
        Stopping, StorageUnavailable (nothing stored) or OutcomeUnknown; TypeError for an option that is none, and for
        content that is not a str.
        """
        return await self.produce_message(queue, NewMessage(content, **options))

    async def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        """`produce`, with `value` as JSON; raises what `NewMessage.of_json` raises, too."""
        return await self.produce_message(queue, NewMessage.of_json(value, **options))

    async def produce_message(self, queue: str, message: NewMessage) -> Produced:
        """Store one message, like `produce`."""
        check_producible(queue)
        command = commands.Produce(queue, check_message(message, self._clock.now_ms()))
        if (table := self.bound.table_of(queue)) is not None:
            (produced,) = await self.bound.produce(queue, table, [message])
            return produced
        await name_queues(self._writer, queue, message.dead_letter_queue)
        return await self._writer.execute(command)

    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        """Store the valid ones of up to 1,000 messages in one commit, all or none; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise. Raises like
        `produce`.
        """
        check_producible(queue)
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX, "messages")
        refused: dict[int, CallerError] = {}
        accepted = []
        now_ms = self._clock.now_ms()
        table = self.bound.table_of(queue)
        for index, message in enumerate(messages):
            try:
                checked = check_message(message, now_ms)
                if table is not None:
                    self.bound.check_message(checked)
                accepted.append(checked)
            except CallerError as error:
                refused[index] = error
        produced: tuple[Produced, ...] = ()
        if table is not None:
            produced = tuple(await self.bound.produce(queue, table, accepted)) if accepted else ()
        elif accepted:
            await name_queues(self._writer, queue, *[message.dead_letter_queue for message in accepted])
            produced = await self._writer.execute(commands.ProduceMany(queue, tuple(accepted)))
        if not refused:
            return list(produced)
        rest = iter(produced)
        return [refused[index] if index in refused else next(rest) for index in range(len(messages))]

    async def produce_across(
        self,
        messages: Sequence[tuple[str, NewMessage]],
        *,
        messages_max: int | None = None,
        content_bytes_max: int = limits.CONTENT_BYTES_MAX,
    ) -> list[Produced | ForqError]:
        """Store messages of several queues in one commit, each alone: one that is refused does not affect the others.

        Dead-letter queues are allowed. messages_max: one more bound on the messages of each queue (QueueFull), None for
        no other bound than the rules'. content_bytes_max: the bound on each content (ContentTooLarge).
        Results in the order of the messages: for a refused one the error that `produce` would raise.
        """
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX, "messages")
        results: list[Produced | ForqError | None] = []
        accepted = []
        now_ms = self._clock.now_ms()
        for queue, message in messages:
            try:
                accepted.append((check_queue_name(queue), check_message(message, now_ms, content_bytes_max)))
                results.append(None)
            except CallerError as error:
                results.append(error)
        named = [name for queue, message in accepted for name in (queue, message.dead_letter_queue)]
        if refused := await refused_queues(self._writer, named):
            for index, (queue, message) in enumerate(messages):
                refusal = refused.get(queue) or refused.get(message.dead_letter_queue or "")
                if results[index] is None and refusal is not None:
                    results[index] = refusal
            accepted = [each for each, result in zip(messages, results, strict=True) if result is None]
        stored: tuple[Produced | ForqError, ...] = ()
        if accepted:
            stored = await self._writer.execute(commands.ProduceEach(tuple(accepted), messages_max))
        rest = iter(stored)
        return [next(rest) if result is None else result for result in results]

    async def cancel(self, queue: str, message_id: str) -> None:
        """Remove a message before anybody receives it: one that is ready, delayed or held.

        Its deduplication id is still remembered for its window, so that a repeated send does not bring it back. Raises
        InvalidQueueName, MalformedMessageId; MessageNotFound for one that does not exist; MessageInFlight for one that
        a consumer has; and what `produce` raises when nothing was changed.
        """
        self.bound.refuse(check_queue_name(queue), "a cancellation")
        status = await self._writer.execute(commands.Cancel(queue, check_message_id(message_id)))
        if status is None:
            raise MessageNotFound
        if status is Status.PROCESSING:
            raise MessageInFlight
