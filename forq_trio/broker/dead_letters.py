"""Dead letters: find, redrive, resubmit, delete; one by one, and by tasks over all that match. A part of `Broker`.

Each change is one transaction: interrupted at any point, a message is in one queue, never in both or neither.
"""

from collections.abc import Callable, Mapping, Sequence

import trio

from forq_trio.broker.looks import Looks
from forq_trio.broker.parts import execute_in_parts
from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.views import changed_redrive, redrive_info
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_attributes, check_content, check_is_list, check_range
from forq_trio.model.commands import Command
from forq_trio.model.errors import CallerError, MalformedMessageId, MessageNotFound, RedriveNotFound
from forq_trio.model.messages import MessageInfo, Produced, check_message_id, check_queue_name
from forq_trio.model.redrives import ChangedRedrive, RedriveInfo, RedriveTask
from forq_trio.model.searches import DeadLetterPage
from forq_trio.wire.dead_letters import DeadLetterFilter, MoveResult


class DeadLetters(Looks):
    """Calls of administrators. Cancellation is that of `Broker`."""

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
        times = self.lists.times_of(wanted)
        found = await self.lists.search(queue, times, before_sequence=before_sequence, limit=limit)
        if not found.total:
            self.known.check_queue(queue)
        return found

    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        """One dead letter, with where it came from and how it failed. Raises like `message`, and DeadLettersOnly."""
        self.known.check_dead_letter_queue(queue)
        return await self.message(queue, message_id)

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        """Move up to 1,000 dead letters to `target` (None: back to where each came from), attempts and TTL reset.

        A message that does not exist, is processing or has no queue to go to is refused alone. Raises InvalidQueueName,
        DeadLettersOnly, OutOfRange.
        """
        if target is not None:
            check_queue_name(target, "target")
            await name_queues(self._writer, target)
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
        check_is_list("message_ids", message_ids)
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
        await name_queues(self._writer, target)
        produced = await self._writer.execute(command)
        if produced is None:
            raise MessageNotFound
        return produced

    async def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        """Start a task that moves all dead letters that match now; returns once it is stored.

        target: None moves each back to where it came from. rate_per_second: 1-10,000, None for no limit.
        dry_run: only count. Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes,
        InvalidContent or TooManyRedrives. If this call is cancelled, the task starts all the same.
        """
        task = await self.redrive_tasks.start(
            queue,
            self.lists.times_of(wanted),
            target=target,
            rate_per_second=rate_per_second,
            dry_run=dry_run,
        )
        return changed_redrive(task)

    async def start_deletion(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        """Start a task that deletes all dead letters that match now.

        It is a redrive with the action "delete": it is listed, paused, resumed and cancelled like one. Members and
        errors are those of `start_redrive`.
        """
        task = await self.redrive_tasks.start(
            queue,
            self.lists.times_of(wanted),
            action="delete",
            rate_per_second=rate_per_second,
            dry_run=dry_run,
        )
        return changed_redrive(task)

    async def redrives(self, queue: str | None) -> list[RedriveInfo]:
        """The redrives of a queue (None: of all), the latest first: unfinished ones, and the latest that ended.

        Raises DeadLettersOnly.
        """
        if queue is not None:
            self.known.check_dead_letter_queue(queue)
        await trio.lowlevel.checkpoint()
        return [redrive_info(task) for task in self.redrive_tasks.all(queue)]

    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        """A redrive, with its progress. Raises RedriveNotFound."""
        return redrive_info(await self._redrive_of(queue, redrive_id))

    async def pause_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """Pause a redrive until it is resumed, also over a restart; a paused one does not change.

        Raises RedriveNotFound, and RedriveStateConflict if it has ended. If this call is cancelled, the redrive is
        still paused; the same applies to `resume_redrive` and `cancel_redrive`.
        """
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.pause(redrive_id))

    async def resume_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """Continue a paused or failed redrive; a running one does not change.

        Raises RedriveNotFound, TooManyRedrives, and RedriveStateConflict if it is done or cancelled.
        """
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.resume(redrive_id))

    async def cancel_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """End a redrive; returns once it has ended. Moved messages stay where they are. Raises RedriveNotFound."""
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.cancel(redrive_id))

    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
        """Forget a redrive that has ended. Raises RedriveNotFound, and RedriveStateConflict for one that has not."""
        await self._redrive_of(queue, redrive_id)
        await self.redrive_tasks.dismiss(redrive_id)

    async def _redrive_of(self, queue: str, redrive_id: str) -> RedriveTask:
        task = await self.redrive_tasks.find(redrive_id)
        if task.queue != queue:
            raise RedriveNotFound
        return task


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
