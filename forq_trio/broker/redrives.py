"""Redrives of all dead letters that match a filter: tasks with a rate and a progress, which can be cancelled.

A task goes through a dead-letter queue from its newest message to its oldest, page by page: it searches, and moves the
messages that can be moved, one transaction (`commands.Redrive`) after the other.

Rules
- Each move is a transaction, and a task ends between two of them: every message is in one queue. Messages that were not
  moved are still in the dead-letter queue, for the next task.
- Only messages that were dead-lettered before the start are moved, and a task only goes down in sequence, which a
  message keeps when it is moved. So no task moves a message twice, however soon it fails again.
- At a rate the moves are spread evenly, in steps of a tenth of a second or of single messages: `Pace`.
- A task that is cancelled waits for the move under way, so that `moved` is exact. A move is one commit; the writer
  answers it also when it stops.
- A move that the database refuses is tried again a few times; then the task fails and says why.
- Tasks live in memory: a restart forgets them, and messages that they had not moved stay.
"""

import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeVar

import msgspec
import trio
from msgspec import Struct

from forq_trio.broker.dead_letters import DeadLetters, check_filter
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.errors import (
    CommandRefused,
    ForqError,
    Overloaded,
    ReadDeadlineExceeded,
    RedriveNotFound,
    Stopping,
    StorageUnavailable,
    TooManyRedrives,
)
from forq_trio.model.messages import MessageFilter, Status, StoredMessage, check_queue_name
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.wire.dead_letters import AppliedFilter, RedriveInfo
from forq_trio.writer_actor import WriterActor

T = TypeVar("T")

TRANSIENT_ERRORS = (Overloaded, StorageUnavailable, CommandRefused, ReadDeadlineExceeded)
"""Errors that changed nothing and after which the same call may succeed."""


class RedriveState(Enum):
    """RUNNING, then one of the others for good."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RedriveTask(Struct, frozen=True, kw_only=True):
    """A redrive of all that match, and how far it has come.

    wanted: the filter, without the bound of its start. target: None moves each message to where it came from.
    searched: how many messages were looked at, of `total` in the queue at the start. matched: how many of them match
    and can be moved; skipped: how many match and cannot, because they are processing or have no queue to go to.
    moved: how many were; fewer than matched at the end if others moved or deleted some. A dry run moves none.
    started_at, finished_at: epoch ms. error: why it failed.
    """

    id: str
    queue: str
    wanted: MessageFilter
    target: str | None
    rate_per_second: int | None
    dry_run: bool
    started_at: int
    total: int
    state: RedriveState = RedriveState.RUNNING
    searched: int = 0
    matched: int = 0
    skipped: int = 0
    moved: int = 0
    finished_at: int | None = None
    error: str | None = None

    def info(self) -> RedriveInfo:
        """The task as callers see it."""
        wanted = self.wanted
        members = msgspec.structs.asdict(self)
        del members["wanted"]
        members["state"] = self.state.value
        members["filter"] = AppliedFilter(
            wanted.reason, wanted.since_ms, wanted.until_ms, wanted.attributes, wanted.text, wanted.error
        )
        return RedriveInfo(**members)


class Pace:
    """Spreads moves over time: `wait` before each step of at most `step` messages, then `charge` how many it moved.

    In any span of time no more than `rate_per_second` times its length and two steps are moved. rate_per_second: None
    for no waiting. page: the greatest step.
    """

    def __init__(self, rate_per_second: int | None, page: int) -> None:
        self._rate = rate_per_second
        self.step = page
        if rate_per_second is not None:
            self.step = min(page, max(1, rate_per_second // limits.REDRIVE_STEPS_PER_SECOND))
        self._free_at = trio.current_time()

    async def wait(self) -> None:
        """Return when the next step may be taken; always a checkpoint."""
        await trio.sleep_until(self._free_at)

    def charge(self, moved: int) -> None:
        """Set when the next step may be taken. A delay of up to a step's time is caught up with, a longer one not."""
        if self._rate is not None:
            earliest = trio.current_time() - self.step / self._rate
            self._free_at = max(self._free_at, earliest) + moved / self._rate


class _Run:
    """A task with the scope that cancels it. ended: set when it has ended."""

    def __init__(self, task: RedriveTask) -> None:
        self.task = task
        self.scope = trio.CancelScope()
        self.ended = trio.Event()

    @property
    def running(self) -> bool:
        return self.task.state is RedriveState.RUNNING

    def change(self, **members: Any) -> None:
        self.task = msgspec.structs.replace(self.task, **members)


class Redrives:
    """The actor that runs these tasks: `run` is its task, the other methods are for callers.

    At most REDRIVES_RUNNING_MAX run at once, and the latest REDRIVES_REMEMBERED_MAX that ended are remembered.
    """

    def __init__(self, letters: DeadLetters, writer: WriterActor, clock: Clock) -> None:
        self._letters = letters
        self._writer = writer
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._runs: dict[str, _Run] = {}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run tasks until cancelled. The tasks are cancelled then, too, each between two transactions."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def start(
        self,
        queue: str,
        wanted: MessageFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> RedriveTask:
        """Start a task that moves all dead letters that match and are there now; returns at once.

        target: None moves each back to where it came from. rate_per_second: 1-10,000, None for no limit.
        dry_run: only count. Raises InvalidQueueName, DeadLettersOnly, OutOfRange, InvalidAttributes, InvalidContent,
        TooManyRedrives or Stopping.
        """
        self._letters.check_dead_letter_queue(queue)
        wanted = check_filter(wanted or MessageFilter())
        if target is not None:
            check_queue_name(target, "target")
        if rate_per_second is not None:
            check_range("rate_per_second", rate_per_second, 1, limits.REDRIVE_RATE_MAX)
        if self._nursery is None:
            raise Stopping
        if sum(run.running for run in self._runs.values()) >= limits.REDRIVES_RUNNING_MAX:
            raise TooManyRedrives
        counts = self._writer.snapshot().counts.get(queue)
        task = RedriveTask(
            id=str(uuid.uuid4()),
            queue=queue,
            wanted=wanted,
            target=target,
            rate_per_second=rate_per_second,
            dry_run=dry_run,
            started_at=self._clock.now_ms(),
            total=0 if counts is None else counts.total,
        )
        run = self._runs[task.id] = _Run(task)
        self._nursery.start_soon(self._run, run)
        return task

    def all(self, queue: str | None = None) -> list[RedriveTask]:
        """The tasks that are remembered, of one queue or (None) of all, the latest first."""
        return [run.task for run in reversed(self._runs.values()) if queue in (None, run.task.queue)]

    def get(self, redrive_id: str) -> RedriveTask:
        """A task, with its progress. Raises RedriveNotFound."""
        return self._find(redrive_id).task

    async def wait(self, redrive_id: str) -> RedriveTask:
        """Return a task once it has ended. Cancelled, the task goes on. Raises RedriveNotFound."""
        run = self._find(redrive_id)
        await run.ended.wait()
        return run.task

    async def cancel(self, redrive_id: str) -> RedriveTask:
        """Stop a task between two transactions, and return it once it has ended; one that has ended is unchanged.

        If this call is cancelled, the task ends all the same. Raises RedriveNotFound.
        """
        self._find(redrive_id).scope.cancel()
        return await self.wait(redrive_id)

    def _find(self, redrive_id: str) -> _Run:
        run = self._runs.get(redrive_id)
        if run is None:
            raise RedriveNotFound
        return run

    async def _run(self, run: _Run) -> None:
        state, error = RedriveState.CANCELLED, None
        try:
            with run.scope:
                await self._walk(run)
                state = RedriveState.DONE
        except Stopping:
            pass  # the server stops: the same as cancelled
        except Exception as problem:
            state, error = RedriveState.FAILED, _error_text(problem)
            log(LogEvent.REDRIVE_FAILED, redrive=run.task.id, queue=run.task.queue, error=error)
        finally:
            run.change(state=state, error=error, finished_at=self._clock.now_ms())
            run.ended.set()
            self._forget_old()

    async def _walk(self, run: _Run) -> None:
        """Search and move, down to the oldest message."""
        task = run.task
        until_ms = task.started_at
        if task.wanted.until_ms is not None:
            until_ms = min(until_ms, task.wanted.until_ms)
        wanted = msgspec.structs.replace(task.wanted, until_ms=until_ms)
        pace = Pace(task.rate_per_second, limits.SEARCH_PAGE_MAX)
        before_sequence: int | None = None
        while True:
            search = partial(
                self._letters.search,
                task.queue,
                wanted,
                before_sequence=before_sequence,
                limit=limits.SEARCH_PAGE_MAX,
            )
            found = await _retry(search)
            movable = [info.id for info in found.messages if _can_move(info, task.target)]
            run.change(
                searched=run.task.searched + found.searched,
                matched=run.task.matched + len(movable),
                skipped=run.task.skipped + len(found.messages) - len(movable),
            )
            if not task.dry_run:
                await self._move(run, movable, pace)
            if found.next_before is None:
                return
            before_sequence = found.next_before

    async def _move(self, run: _Run, message_ids: Sequence[str], pace: Pace) -> None:
        """Move the messages of a page step by step, at the pace."""

        async def move(ids: Sequence[str]) -> int:
            with trio.CancelScope(shield=True):
                outcomes = await self._letters.redrive(run.task.queue, ids, target=run.task.target)
            return sum(outcome.ok for outcome in outcomes)

        for ids in _parts(message_ids, pace.step):
            await pace.wait()
            moved = await _retry(partial(move, ids))
            run.change(moved=run.task.moved + moved)
            pace.charge(moved)

    def _forget_old(self) -> None:
        ended = [key for key, run in self._runs.items() if not run.running]
        for key in ended[: -limits.REDRIVES_REMEMBERED_MAX]:
            del self._runs[key]


def _can_move(info: StoredMessage, target: str | None) -> bool:
    """True if the engine would move this message now."""
    return info.status is not Status.PROCESSING and (target or info.source_queue) not in (None, info.queue)


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def _retry(work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` returns; try again after a pause when it raises a transient error."""
    for _ in range(limits.REDRIVE_RETRIES_MAX):
        try:
            return await work()
        except TRANSIENT_ERRORS:
            await trio.sleep(limits.STORAGE_RETRY_SECONDS)
    return await work()


def _error_text(problem: Exception) -> str:
    return str(problem) if isinstance(problem, ForqError) else f"{type(problem).__name__}: {problem}"
