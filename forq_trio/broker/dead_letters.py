"""Dead letters: find, redrive, resubmit, delete; one by one, and by tasks over all that match. A part of `Broker`.

Each change is one transaction: whenever it is interrupted, a message is in exactly one queue.
"""

from collections.abc import Callable, Mapping, Sequence

import trio

from forq_trio.broker.message_reads import MessageReads
from forq_trio.broker.parts import execute_in_parts
from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.views import changed_redrive, redrive_info
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_attributes, check_content, check_is_list, check_range
from forq_trio.model.commands import Command
from forq_trio.model.dead_letters.bodies import DeadLetterFilter, MoveResult
from forq_trio.model.dead_letters.methods import DeadLetterMethods
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo, RedriveTask
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.errors import CallerError, MalformedMessageId, MessageNotFound, RedriveNotFound
from forq_trio.model.messages.types import MessageInfo, Produced, check_message_id, check_queue_name


class DeadLetters(DeadLetterMethods, MessageReads):
    """Calls of administrators. Cancellation is that of `Broker`."""

    async def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
    ) -> DeadLetterPage:
        self.known.check_dead_letter_queue(queue)
        times = self.lists.times_of(wanted)
        found = await self.lists.search(queue, times, before_sequence=before_sequence, limit=limit)
        if not found.total:
            self.known.check_queue(queue)
        return found

    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        self.known.check_dead_letter_queue(queue)
        return await self.message(queue, message_id)

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        if target is not None:
            check_queue_name(target, "target")
            await name_queues(self._writer, target)
        return await self._change(queue, message_ids, lambda ids: commands.Redrive(queue, ids, target))

    async def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        return await self._change(queue, message_ids, lambda ids: commands.Delete(queue, ids))

    async def _change(
        self,
        queue: str,
        message_ids: Sequence[str],
        command: Callable[[tuple[str, ...]], Command[tuple[bool, ...]]],
    ) -> list[MoveResult]:
        """Apply a command to all ids at once; leaves out malformed ids, and repeated ones."""
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
        task = await self.redrive_tasks.start(
            queue,
            self.lists.times_of(wanted),
            action="delete",
            rate_per_second=rate_per_second,
            dry_run=dry_run,
        )
        return changed_redrive(task)

    async def redrives(self, queue: str | None) -> list[RedriveInfo]:
        if queue is not None:
            self.known.check_dead_letter_queue(queue)
        await trio.lowlevel.checkpoint()
        return [redrive_info(task) for task in self.redrive_tasks.all(queue)]

    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        return redrive_info(await self._redrive_of(queue, redrive_id))

    async def pause_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.pause(redrive_id))

    async def resume_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.resume(redrive_id))

    async def cancel_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        await self._redrive_of(queue, redrive_id)
        return changed_redrive(await self.redrive_tasks.cancel(redrive_id))

    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
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
