"""Dead letters: find, redrive, resubmit, delete. A part of `Broker`.

Each change is one transaction: interrupted at any point, a message is in one queue, never in both or neither.
"""

from collections.abc import Mapping, Sequence

from forq_trio.broker.parts import execute_in_parts
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_attributes, check_content, check_range, check_text
from forq_trio.model.errors import DeadLettersOnly, MessageNotFound
from forq_trio.model.messages import (
    Found,
    MessageFilter,
    Produced,
    check_message_id,
    check_queue_name,
    is_dead_letter_queue,
)
from forq_trio.readers.pool import ReaderPool
from forq_trio.writer_actor import WriterActor


class DeadLetters:
    """Changes of single dead letters by an administrator. Cancellation is that of `Broker`."""

    _writer: WriterActor
    _readers: ReaderPool

    def takes_dead_letters(self, queue: str) -> bool:
        """True for a queue whose name ends in -dlq, and for one that another queue's settings send dead letters to."""
        return is_dead_letter_queue(queue) or any(
            settings.dead_letter_queue == queue for settings in self._writer.snapshot().settings.values()
        )

    def check_dead_letter_queue(self, queue: str) -> None:
        """Raise InvalidQueueName or DeadLettersOnly unless `queue` takes dead letters."""
        if not self.takes_dead_letters(check_queue_name(queue)):
            raise DeadLettersOnly

    async def search(
        self,
        queue: str,
        wanted: MessageFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = 50,
        scan_max: int = limits.SEARCH_SCAN_MAX,
    ) -> Found:
        """The messages of any queue that match, newest first, 1-100 a page; reads `scan_max` at most.

        Raises InvalidQueueName, what `check_filter` raises, and what reads raise.
        """
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.SEARCH_PAGE_MAX)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted or MessageFilter())
        return await self._readers.run(
            lambda reader: reader.search(queue, wanted, before_sequence, limit, scan_max)
        )

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> tuple[bool, ...]:
        """Move 1-1,000 dead letters to `target` (None: back to where each came from), attempts and TTL reset.

        Per id, False for one that is not there, is processing, or has no queue to go to. Raises InvalidQueueName,
        DeadLettersOnly, MalformedMessageId, OutOfRange.
        """
        self.check_dead_letter_queue(queue)
        if target is not None:
            check_queue_name(target, "target")
        ids = _ids(message_ids)
        return await execute_in_parts(self._writer, ids, lambda part: commands.Redrive(queue, part, target))

    async def delete_messages(self, queue: str, message_ids: Sequence[str]) -> tuple[bool, ...]:
        """Remove 1-1,000 dead letters for good. Results and errors like `redrive`."""
        self.check_dead_letter_queue(queue)
        ids = _ids(message_ids)
        return await execute_in_parts(self._writer, ids, lambda part: commands.Delete(queue, part))

    async def resubmit(
        self,
        queue: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, str] | None = None,
        target: str | None = None,
        remove: bool = False,
    ) -> Produced:
        """Send a copy of a dead letter with other content or attributes (None: the same), to its source queue.

        target: another queue instead. remove: delete the original in the same transaction. Raises
        MessageNotFound when it is not there, has no queue to go to or (with remove) is processing; DeadLettersOnly,
        InvalidQueueName, MalformedMessageId, ContentTooLarge, InvalidContent, InvalidAttributes.
        """
        self.check_dead_letter_queue(queue)
        if content is not None:
            check_content(content)
        if attributes is not None:
            check_attributes(attributes)
        if target is not None:
            check_queue_name(target, "target")
        command = commands.Resubmit(
            queue,
            check_message_id(message_id),
            content,
            None if attributes is None else dict(attributes),
            target,
            remove,
        )
        produced = await self._writer.execute(command)
        if produced is None:
            raise MessageNotFound
        return produced


def check_filter(wanted: MessageFilter) -> MessageFilter:
    """Return `wanted`, or raise OutOfRange, InvalidAttributes or InvalidContent if no message could match it."""
    if wanted.reason is not None:
        check_text("reason", wanted.reason, 0, limits.REASON_LENGTH_MAX)
    if wanted.text is not None:
        check_text("text", wanted.text, 0, limits.SEARCH_TEXT_LENGTH_MAX)
    check_attributes(wanted.attributes)
    return wanted


def _ids(message_ids: Sequence[str]) -> tuple[str, ...]:
    check_range("number of message ids", len(message_ids), 1, limits.MOVE_BATCH_MAX)
    return tuple(map(check_message_id, message_ids))
