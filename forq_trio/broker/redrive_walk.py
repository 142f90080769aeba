"""The walk of a task through a dead-letter queue, from the newest message to the oldest, step by step.

A step searches a page and moves (or deletes) its messages, in one transaction that also stores the progress of the
task: `RedriveStep`. A step that changes no message stores that at most once in REDRIVE_CURSOR_SECONDS.

A cancelled walk ends between two steps: it waits for the current transaction, which the writer answers even while it
stops. A step of a walk that no longer owns its task is refused with RedriveStateConflict, which ends the walk.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
import trio

from forq_trio.broker.known import Known
from forq_trio.broker.lists import Lists
from forq_trio.broker.redrive_pace import Pace
from forq_trio.model import limits
from forq_trio.model.commands import ChangeRedrive, Command, Delete, Redrive
from forq_trio.model.dead_letters.redrives import RedriveStep, RedriveTask, after_step
from forq_trio.model.dead_letters.searches import DeadLetterPage, MessageFilter
from forq_trio.model.errors import (
    CommandRefused,
    Overloaded,
    ReadDeadlineExceeded,
    RedriveStateConflict,
    StorageUnavailable,
)
from forq_trio.model.messages.types import MessageInfo
from forq_trio.writer_actor import WriterActor

T = TypeVar("T")

TRANSIENT_ERRORS = (Overloaded, StorageUnavailable, CommandRefused, ReadDeadlineExceeded)
"""Errors after which nothing has changed and the same call may succeed later."""
NOTHING_BELOW = 1
"""The cursor of a task at the end of its queue: the lowest sequence number."""


class Walk:
    """Walks from the task's cursor on. task: as of the last step; it names this walk.

    saved_at: when its progress was last stored, on trio's clock.
    """

    def __init__(self, task: RedriveTask, known: Known, lists: Lists, writer: WriterActor) -> None:
        self.task = task
        self._known = known
        self._lists = lists
        self._writer = writer
        self.saved_at = trio.current_time()

    @property
    def progress(self) -> RedriveStep:
        """How far the walk has come."""
        task = self.task
        return RedriveStep(
            task.id, task.before_sequence, task.searched, task.matched, task.skipped, task.walker
        )

    async def run(self) -> None:
        """Take steps until the end of the queue. Raises the errors of searches and moves, and DeadLettersOnly."""
        task = self.task
        pace = Pace(None if task.dry_run else task.rate_per_second, limits.REDRIVE_PAGE_MAX)
        wanted = _bounded(task)
        more = True
        while more:
            await pace.wait()
            self._known.check_dead_letter_queue(task.queue)
            found = await _retry(partial(self._search, wanted, pace.step))
            found = _above(found, wanted.above_sequence)
            pace.charge(await self._step(found))
            more = found.next_before is not None

    async def _search(self, wanted: MessageFilter, limit: int) -> DeadLetterPage:
        before = self.task.before_sequence
        return await self._lists.search(self.task.queue, wanted, before_sequence=before, limit=limit)

    async def _step(self, found: DeadLetterPage) -> int:
        """Move those messages of a page that can be moved, with the progress; returns how many."""
        task = self.task
        movable = tuple(message.id for message in found.messages if self._can_change(message))
        step = RedriveStep(
            task.id,
            found.next_before or NOTHING_BELOW,
            task.searched + found.searched,
            task.matched + len(movable),
            task.skipped + len(found.messages) - len(movable),
            task.walker,
        )
        moved = 0
        if movable and not task.dry_run:
            moved = sum(await _retry(partial(self._execute, _command(task, movable, step))))
            self.saved_at = trio.current_time()
        self.task = after_step(task, step, moved, task.walked_at)
        if trio.current_time() - self.saved_at >= limits.REDRIVE_CURSOR_SECONDS:
            save = ChangeRedrive(task.id, "running", walker=task.walker, step=step)
            stored = await _retry(partial(self._execute, save))
            if stored is None or stored.walker != task.walker:
                raise RedriveStateConflict
            self.saved_at = trio.current_time()
        return moved

    def _can_change(self, message: MessageInfo) -> bool:
        """True if the engine would move (or delete) this message now."""
        task = self.task
        if message.status == "processing":
            return False
        if task.action == "delete":
            return True
        target = task.target or message.source_queue
        return target not in (None, message.queue) and self._known.settings_of(str(target)).table is None

    async def _execute(self, command: Command[T]) -> T:
        with trio.CancelScope(shield=True):
            outcome = await self._writer.execute(command)
        return outcome


def _bounded(task: RedriveTask) -> MessageFilter:
    """The filter of a task, without messages that became dead letters after its start."""
    until = task.started_at if task.filter.until is None else min(task.filter.until, task.started_at)
    return MessageFilter(**msgspec.structs.asdict(task.filter) | {"until": until})


def _above(found: DeadLetterPage, sequence: int | None) -> DeadLetterPage:
    """The part of a page above a sequence number; a page that reaches that number is the last one."""
    if sequence is None:
        return found
    messages = [message for message in found.messages if message.sequence > sequence]
    ends = found.next_before is None or found.next_before <= sequence + 1
    return DeadLetterPage(messages, found.searched, found.total, None if ends else found.next_before)


def _command(task: RedriveTask, message_ids: tuple[str, ...], step: RedriveStep) -> Command[tuple[bool, ...]]:
    if task.action == "delete":
        return Delete(task.queue, message_ids, step)
    return Redrive(task.queue, message_ids, task.target, step)


async def _retry(work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns; try again after a pause when it raises a transient error."""
    for _ in range(limits.REDRIVE_RETRIES_MAX):
        try:
            return await work()
        except TRANSIENT_ERRORS:
            await trio.sleep(limits.STORAGE_RETRY_SECONDS)
    return await work()
