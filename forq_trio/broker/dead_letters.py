"""Dead letters: find, redrive, resubmit, delete. A part of `Broker`.

Each change is one transaction: interrupted at any point, a message is in one queue, never in both or neither.
"""

from collections.abc import Callable, Mapping, Sequence

from forq_trio.broker.looks import Looks
from forq_trio.broker.parts import execute_in_parts
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_attributes, check_content, check_range, check_text
from forq_trio.model.commands import Command
from forq_trio.model.errors import CallerError, MalformedMessageId, MessageNotFound
from forq_trio.model.messages import (
    MessageInfo,
    Produced,
    check_message_id,
    check_queue_name,
    json_name,
)
from forq_trio.model.searches import DeadLetterPage, MessageFilter
from forq_trio.wire.dead_letters import DeadLetterFilter, MoveResult


class DeadLetters(Looks):
    """Changes of single dead letters by an administrator. Cancellation is that of `Broker`."""

    async def search(
        self,
        queue: str,
        wanted: MessageFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
        scan_max: int = limits.SEARCH_SCAN_MAX,
    ) -> DeadLetterPage:
        """The messages of any queue that match, newest first, 1-100 a page; reads `scan_max` at most.

        Raises InvalidQueueName, what `check_filter` raises, and what reads raise.
        """
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.SEARCH_PAGE_MAX)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted or MessageFilter())
        return await self._readers.run(
            lambda reader: reader.search(queue, wanted, before_sequence, limit, scan_max), long=True
        )

    async def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
    ) -> DeadLetterPage:
        """A page (1-100) of dead letters that match, newest first; reads 10,000 messages at most.

        Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes, InvalidContent, and what
        reads raise.
        """
        self.known.check_dead_letter_queue(queue)
        found = await self.search(queue, self._times_of(wanted), before_sequence=before_sequence, limit=limit)
        if not found.total:
            self.known.check_queue(queue)
        return found

    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        """One dead letter, with where it came from and how it failed. Raises like `message`, and DeadLettersOnly."""
        self.known.check_dead_letter_queue(queue)
        return await self.message(queue, message_id)

    def _times_of(self, wanted: DeadLetterFilter | None) -> MessageFilter:
        """The filter with its ages turned into times."""
        if wanted is None:
            return MessageFilter()
        now_ms = self._clock.now_ms()
        for name, age_ms in (("min_age_ms", wanted.min_age_ms), ("max_age_ms", wanted.max_age_ms)):
            if age_ms is not None:
                check_range(name, age_ms, 0, limits.SEARCH_AGE_MS_MAX, f"filter.{json_name(name)}")
        return MessageFilter(
            reason=wanted.reason,
            since_ms=None if wanted.max_age_ms is None else now_ms - wanted.max_age_ms,
            until_ms=None if wanted.min_age_ms is None else now_ms - wanted.min_age_ms,
            attributes=wanted.attributes,
            text=wanted.text,
            error=wanted.error,
            error_like=wanted.error_like,
        )

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        """Move up to 1,000 dead letters to `target` (None: back to where each came from), attempts and TTL reset.

        A message that is not there, is processing or has no queue to go to is refused alone. Raises InvalidQueueName,
        DeadLettersOnly, OutOfRange.
        """
        if target is not None:
            check_queue_name(target, "target")
        return await self._change(queue, message_ids, lambda ids: commands.Redrive(queue, ids, target))

    async def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        """Remove up to 1,000 dead letters for good. Results and errors like `redrive`."""
        return await self._change(queue, message_ids, lambda ids: commands.Delete(queue, ids))

    async def _change(
        self,
        queue: str,
        message_ids: Sequence[str],
        command: Callable[[tuple[str, ...]], Command[tuple[bool, ...]]],
    ) -> list[MoveResult]:
        """Apply `command` to all ids at once, each once, without those that are malformed."""
        self.known.check_dead_letter_queue(queue)
        check_range("number of message ids", len(message_ids), 0, limits.MOVE_BATCH_MAX, "ids")
        stored = {message_id: _stored_id(message_id) for message_id in message_ids}
        known = tuple(dict.fromkeys(form for form in stored.values() if form is not None))
        outcomes = await execute_in_parts(self._writer, known, command)
        done = dict(zip(known, outcomes, strict=True))
        return [_result(message_id, stored[message_id], done) for message_id in message_ids]

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
        self.known.check_dead_letter_queue(queue)
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
        check_text("reason", wanted.reason, 0, limits.REASON_LENGTH_MAX, "filter.reason")
    if wanted.text is not None:
        check_text("text", wanted.text, 0, limits.SEARCH_TEXT_LENGTH_MAX, "filter.text")
    if wanted.error is not None:
        check_text("error", wanted.error, 0, limits.REASON_LENGTH_MAX, "filter.error")
    if wanted.error_like is not None:
        check_text("error_like", wanted.error_like, 1, limits.REASON_LENGTH_MAX, "filter.errorLike")
    if wanted.above_sequence is not None:
        check_range("above_sequence", wanted.above_sequence, 0, limits.SEQUENCE_MAX)
    check_attributes(wanted.attributes, "filter.attributes")
    return wanted


def _stored_id(message_id: str) -> str | None:
    try:
        return check_message_id(message_id)
    except MalformedMessageId:
        return None


def _refused(message_id: str, error: CallerError) -> MoveResult:
    return MoveResult(message_id, False, error.code, error.message)


def _result(message_id: str, stored: str | None, done: Mapping[str, bool]) -> MoveResult:
    if stored is None:
        return _refused(message_id, MalformedMessageId())
    if not done[stored]:
        return _refused(
            message_id, MessageNotFound("it is not there, is processing, or has no queue to go to")
        )
    return MoveResult(message_id, True)
