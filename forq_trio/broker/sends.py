"""Sends one message, or many to one or several queues. A part of `Broker`."""

from collections.abc import Sequence
from typing import Any, Unpack

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues, refused_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, ForqError
from forq_trio.model.holders import token_of_task
from forq_trio.model.messages.methods import MessageMethods
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.model.messages.types import Produced, check_queue_name


class Sends(MessageMethods, BrokerBase):
    """Cancellation is that of `Broker`."""

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        return await self.produce_message(queue, NewMessage(content, **options))

    async def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        return await self.produce_message(queue, NewMessage.of_json(value, **options))

    async def produce_message(self, queue: str, message: NewMessage) -> Produced:
        """Store one message, like `produce`."""
        check_producible(queue)
        command = commands.Produce(queue, check_message(message, self._clock.now_ms()))
        if token_of_task() is not None:  # checked again below; here it makes a send with the secret cheaper
            await name_queues(self._writer, queue, message.dead_letter_queue)
        return await self._backends.of(queue).execute(command)

    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        check_producible(queue)
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX, "messages")
        backend = self._backends.of(queue)
        results: list[Produced | ForqError | None] = []
        now_ms = self._clock.now_ms()
        for message in messages:
            try:
                backend.check_message(check_message(message, now_ms))
                results.append(None)
            except CallerError as error:
                results.append(error)
        if None in results:
            await self._refuse_new_queues([queue] * len(messages), messages, results, queue)
        accepted = [each for each, result in zip(messages, results, strict=True) if result is None]
        stored: tuple[Produced | ForqError, ...] = ()
        if accepted:
            stored = await backend.execute(commands.ProduceMany(queue, tuple(accepted)))
        rest = iter(stored)
        return [next(rest) if result is None else result for result in results]

    async def _refuse_new_queues(
        self,
        queues: Sequence[str],
        messages: Sequence[NewMessage],
        results: list[Produced | ForqError | None],
        of_all: str = "",
    ) -> None:
        """Refuse only those messages whose queues or dead-letter queues the token may not make.

        queues: of the messages. results: None for each that is not refused so far. of_all: the queue that all of them
        have in common, whose error is raised.
        """
        if token_of_task() is None:
            return
        sent = [each for each in zip(queues, messages, results, strict=True) if each[2] is None]
        named = [name for queue, message, _ in sent for name in (queue, message.dead_letter_queue)]
        refused = await refused_queues(self._writer, named)
        if of_all in refused:
            raise refused[of_all]
        for index, (queue, message) in enumerate(zip(queues, messages, strict=True)):
            if results[index] is None:
                results[index] = refused.get(queue) or refused.get(message.dead_letter_queue or "")

    async def produce_across(
        self,
        messages: Sequence[tuple[str, NewMessage]],
        *,
        messages_max: int | None = None,
        content_bytes_max: int = limits.CONTENT_BYTES_MAX,
    ) -> list[Produced | ForqError]:
        """Store messages of several queues in one commit; a refused message does not affect the others.

        Dead-letter queues are allowed. messages_max: an additional bound on the messages of each queue (QueueFull);
        None for none. content_bytes_max: the bound on each content (ContentTooLarge). The results are in the order of
        the messages: for a refused one, the error that `produce` would raise.
        """
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX, "messages")
        results: list[Produced | ForqError | None] = []
        now_ms = self._clock.now_ms()
        for queue, message in messages:
            try:
                check_queue_name(queue)
                self._check_texts(check_message(message, now_ms, content_bytes_max))
                results.append(None)
            except CallerError as error:
                results.append(error)
        return await self._store_across(messages, results, messages_max)

    async def _store_across(
        self,
        messages: Sequence[tuple[str, NewMessage]],
        results: list[Produced | ForqError | None],
        messages_max: int | None = None,
    ) -> list[Produced | ForqError]:
        """Store messages in one commit; results: None for each that is not refused already."""
        queues = [queue for queue, _ in messages]
        await self._refuse_new_queues(queues, [message for _, message in messages], results)
        accepted = [each for each, result in zip(messages, results, strict=True) if result is None]
        stored: tuple[Produced | ForqError, ...] = ()
        if accepted:
            stored = await self._writer.execute(commands.ProduceEach(tuple(accepted), messages_max))
        rest = iter(stored)
        return [next(rest) if result is None else result for result in results]
