"""Sends finished messages again. A part of `Broker`."""

from collections.abc import Sequence

from forq_trio.broker.logs import Logs
from forq_trio.broker.sends import Sends
from forq_trio.model import limits
from forq_trio.model.checks import check_is_list, check_range
from forq_trio.model.errors import ForqError, MalformedMessageId, MessageNotFound, ProduceToDeadLetterQueue
from forq_trio.model.logs.history import FinishedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, check_message_id, check_queue_name
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage.reader import Reader

_READ_MAX = 100
"""How many messages one step reads and stores; fewer if their contents are large."""


class Finished(Logs, Sends):
    """Cancellation is that of `Broker`."""

    async def requeue_finished(self, queue: str, message_ids: Sequence[str]) -> list[Produced | ForqError]:
        check_queue_name(queue)
        check_is_list("message_ids", message_ids)
        check_range("number of message ids", len(message_ids), 0, limits.MOVE_BATCH_MAX, "ids")
        results: list[Produced | ForqError] = []
        while len(results) < len(message_ids):
            rest = message_ids[len(results) :]
            try:
                results += await self._requeue_some(queue, rest[:_READ_MAX])
            except ForqError as error:
                if not results:
                    raise
                results += [error] * len(rest)
        return results

    async def _requeue_some(self, queue: str, message_ids: Sequence[str]) -> list[Produced | ForqError]:
        """Send the first of these messages again: at least one."""

        def read(reader: Reader) -> list[tuple[str, NewMessage] | ForqError]:
            found: list[tuple[str, NewMessage] | ForqError] = []
            size = 0
            for message_id in message_ids:
                if size >= limits.REWRITE_BYTES_MAX:
                    break
                try:
                    message = reader.finished(queue, check_message_id(message_id))
                except MalformedMessageId as error:
                    found.append(error)
                    continue
                found.append(MessageNotFound() if message is None else _again(queue, message))
                size += 0 if message is None else message.bytes
            return found

        found = await self._readers.run(read)
        wanted = [each for each in found if not isinstance(each, ForqError)]
        # Not checked again: bounds differ by dialect, and these were sent before.
        sent = iter(await self._store_across(wanted, [None] * len(wanted)) if wanted else ())
        return [each if isinstance(each, ForqError) else next(sent) for each in found]


def _again(queue: str, message: FinishedMessage) -> tuple[str, NewMessage] | ForqError:
    """A finished message as a new one, with the queue to which it goes; or why it cannot be sent again."""
    if message.source_queue is None and is_dead_letter_queue(queue):
        return ProduceToDeadLetterQueue()
    return message.source_queue or queue, NewMessage(
        message.content, priority=message.priority, attributes=message.attributes or None, group=message.group
    )
