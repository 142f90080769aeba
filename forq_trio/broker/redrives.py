"""Redrives or deletes all dead letters that match: tasks with a rate and a progress, stored in the database.

A task walks through a dead-letter queue from the newest message to the oldest (redrive_walk.py). It can be paused,
resumed and cancelled, and continues after a restart, where its rate starts again.

Rules
- Each move is a transaction, and a walk ends between two of them, so every message is in exactly one queue. Messages
  that were not moved stay in the dead-letter queue.
- The cursor and the counts are stored in the transaction of the move. So after a kill a task continues below the last
  message that it moved, and `moved` is exact. Messages that it only read since the last save are read again but counted
  once, because the counts belong to the cursor.
- No task changes a message twice, however soon the message fails again and however often the process is killed: a task
  only goes down in sequence numbers, a message keeps its number when it is moved, and the cursor is stored with the
  move. Messages that became dead letters after `started_at` are not moved.
- Pausing and cancelling wait for the current move, and are answered once the new state is committed. If that is
  refused, the caller gets the error and the task continues.
- A move that the database refuses is tried again a few times; after that the task has failed and says why. Resuming it
  continues from its cursor. The end of a task is stored before anybody sees it; if the database refuses that, it is
  tried again.
- A stopping server gives up its running tasks; they continue at the next start, or in another server.
- If several processes share the database, any of them may change a task, but only one walks it: the walk's id is in the
  task, and a step of any other walk is refused. A walk reports every second that it is alive. After REDRIVE_SILENT_MS
  without a report, or as soon as the task is given up, another process takes the task over. So a process that is
  stopped with SIGSTOP and goes on later moves nothing any more.
- There are at most REDRIVES_REMEMBERED_MAX tasks; a new one replaces the oldest one that has ended.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from math import inf

import trio
from msgspec.structs import replace

from forq_trio.broker.known import Known
from forq_trio.broker.lists import Lists, check_filter
from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.redrive_walk import TRANSIENT_ERRORS, Walk
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.commands import ChangeRedrive, ForgetRedrive, Ping, SaveRedrive
from forq_trio.model.dead_letters.redrives import RedriveAction, RedriveState, RedriveTask
from forq_trio.model.dead_letters.searches import AppliedFilter, MessageFilter
from forq_trio.model.errors import ForqError, RedriveNotFound, RedriveStateConflict, Stopping, TooManyRedrives
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.values import seen
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor


class _Running:
    """A walk of this process, and the scope that stops it.

    ending: the change with which the walk ended, until it is stored. stopped: set once the walk has stopped.
    """

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.scope = trio.CancelScope()
        self.stopped = trio.Event()
        self.ending: ChangeRedrive | None = None

    @property
    def walker(self) -> str:
        return self.walk.task.walker

    def end(self, state: RedriveState, error: str | None = None) -> None:
        self.ending = ChangeRedrive(self.walk.task.id, state, error, step=self.walk.progress)


class Redrives:
    """The actor that runs redrive tasks: `run` is its own task, the other methods are for callers.

    At most REDRIVES_RUNNING_MAX run at once, and REDRIVES_RUNNING_A_KEY_MAX of one key; a few more if several processes
    start some within a second. shared: other processes may walk tasks, too.
    """

    shared = False

    def __init__(self, known: Known, lists: Lists, writer: WriterActor, clock: Clock) -> None:
        self._known = known
        self._lists = lists
        self._writer = writer
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._here: dict[str, _Running] = {}
        self._starting: list[str | None] = []
        self._changed = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Continue the stored tasks and run new ones until cancelled; then each walk ends between two steps."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                if not self.shared:
                    for task in self._stored().values():
                        self._begin(task)
                task_status.started()
                while True:
                    await trio.sleep(limits.REDRIVE_ALIVE_SECONDS if self.shared else inf)
                    self._check_tasks()
        finally:
            self._nursery = None
            self._tell()

    def _check_tasks(self) -> None:
        """Report which walks are alive, take over the tasks of those that are not, and announce others' changes."""
        assert self._nursery is not None
        now_ms = self._clock.now_ms()
        for task in self._stored().values():
            running = self._here.get(task.id)
            if running is not None and (task.state, task.walker) != ("running", running.walker):
                running.scope.cancel()
            elif running is not None:
                if trio.current_time() - running.walk.saved_at >= limits.REDRIVE_ALIVE_SECONDS:
                    alive = ChangeRedrive(
                        task.id, "running", walker=running.walker, step=running.walk.progress
                    )
                    self._writer.post(alive)
            elif task.state == "running" and (
                not task.walker or now_ms - task.walked_at >= limits.REDRIVE_SILENT_MS
            ):
                self._nursery.start_soon(self._take_over, task.id)
        self._tell()

    async def _take_over(self, redrive_id: str) -> None:
        """Continue a task that nobody walks; does nothing if another process was faster or the database refuses."""
        with suppress(*TRANSIENT_ERRORS, Stopping):
            await self._go_on(redrive_id)

    async def _go_on(self, redrive_id: str) -> RedriveTask | None:
        """Let this process walk a task that nobody walks."""
        walker = str(uuid.uuid4())
        task = await self._change(ChangeRedrive(redrive_id, "running", walker=walker))
        if task is not None and task.walker == walker:
            self._begin(task)
        return task

    async def start(
        self,
        queue: str,
        wanted: MessageFilter | None = None,
        *,
        action: RedriveAction = "redrive",
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
        started_by: str | None = None,
    ) -> RedriveTask:
        """Start a task over all dead letters that match now; returns once it is stored.

        action: move them, or delete them. target: None moves each back to where it came from. rate_per_second:
        1-10,000, None for no limit. dry_run: only count. started_by: the name of the access token, None for the
        server's secret. Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes,
        InvalidContent, TooManyRedrives, QueueBound for the target, and the errors of `WriterActor.execute`. If this
        call is cancelled, the task starts anyway.
        """
        await trio.lowlevel.checkpoint()
        self._known.check_dead_letter_queue(queue)
        wanted = check_filter(wanted or MessageFilter())
        if target is not None:
            check_queue_name(target, "target")
        if rate_per_second is not None:
            check_range("rate_per_second", rate_per_second, 1, limits.REDRIVE_RATE_MAX)
        self._known.check_queue(queue)
        await name_queues(self._writer, target)
        if self._nursery is None:
            raise Stopping
        counts = self._writer.snapshot().counts.get(queue)
        task = RedriveTask(
            id=str(uuid.uuid4()),
            queue=queue,
            action=action,
            state="running",
            dry_run=dry_run,
            filter=seen(AppliedFilter, wanted),
            target=target,
            rate_per_second=rate_per_second,
            searched=0,
            total=0 if counts is None else counts.total,
            matched=0,
            skipped=0,
            moved=0,
            started_at=self._clock.now_ms(),
            started_by=started_by,
            paused_at=None,
            finished_at=None,
            error=None,
            walker=str(uuid.uuid4()),
            walked_at=self._clock.now_ms(),
        )
        with self._admitted(task.started_by), trio.CancelScope(shield=True):
            await self._writer.execute(SaveRedrive(task))
        self._begin(task)
        return task

    def all(self, queue: str | None = None) -> list[RedriveTask]:
        """The stored tasks of one queue, or (None) of all, latest first."""
        return [
            self._now(task) for task in reversed([*self._stored().values()]) if queue in (None, task.queue)
        ]

    def get(self, redrive_id: str) -> RedriveTask:
        """A task, with its progress. Raises RedriveNotFound."""
        task = self._stored().get(redrive_id)
        if task is None:
            raise RedriveNotFound
        return self._now(task)

    async def find(self, redrive_id: str) -> RedriveTask:
        """A task, even one that another process has just started. Raises RedriveNotFound."""
        await trio.lowlevel.checkpoint()
        return self.get(redrive_id) if redrive_id in self._stored() else await self._latest(redrive_id)

    async def wait(self, redrive_id: str) -> RedriveTask:
        """Wait until a task, or this actor, has ended; returns the task. Cancelled, the task goes on.

        Raises RedriveNotFound.
        """
        await trio.lowlevel.checkpoint()
        while not (task := self.get(redrive_id)).ended and self._nursery is not None:
            await self._changed.wait()
        return task

    async def pause(self, redrive_id: str) -> RedriveTask:
        """Stop a task between two transactions, to be resumed; a paused one is unchanged.

        Raises RedriveNotFound, RedriveStateConflict if it has ended, and the errors of `WriterActor.execute`. If this
        call is cancelled, the task is paused anyway; the same holds for `resume` and `cancel`.
        """
        return _in(await self._stop(redrive_id, "paused"), "paused")

    async def resume(self, redrive_id: str) -> RedriveTask:
        """Continue a paused or failed task from its cursor; a running one does not change.

        Raises RedriveNotFound, RedriveStateConflict if it is done or cancelled, TooManyRedrives, and what
        `WriterActor.execute` raises.
        """
        await self._end(redrive_id)
        known = await self._latest(redrive_id)
        begins = known.state in ("paused", "failed")
        with self._admitted(known.started_by) if begins else nullcontext():
            task = await self._go_on(redrive_id)
        if task is None:
            raise RedriveNotFound
        return _in(task, "running")

    async def cancel(self, redrive_id: str) -> RedriveTask:
        """End a task between two transactions, and return it; one that has ended does not change.

        Raises RedriveNotFound, and what `WriterActor.execute` raises.
        """
        return await self._stop(redrive_id, "cancelled")

    async def dismiss(self, redrive_id: str) -> None:
        """Forget a task that has ended. Raises RedriveNotFound, and RedriveStateConflict for one that has not."""
        await self._end(redrive_id)
        if not (task := await self._latest(redrive_id)).ended:
            raise RedriveStateConflict(f"the redrive is {task.state}: cancel it first")
        await self._writer.execute(ForgetRedrive(redrive_id))

    async def _latest(self, redrive_id: str) -> RedriveTask:
        """A task as whichever process left it. Raises RedriveNotFound."""
        if self.shared:
            await self._writer.execute(Ping())  # its batch first takes over what other processes changed
        return self.get(redrive_id)

    @property
    def walks_here(self) -> bool:
        """Whether this process walks any task."""
        return bool(self._here)

    def _stored(self) -> Mapping[str, RedriveTask]:
        return self._writer.snapshot().redrives

    def _now(self, task: RedriveTask) -> RedriveTask:
        """A stored task; as of its last step if this process walks it."""
        running = self._here.get(task.id)
        walked_here = running is not None and task.walker == running.walker
        return running.walk.task if running is not None and walked_here else task

    def _tell(self) -> None:
        """Wake the tasks that wait for a change of a redrive task."""
        self._changed.set()
        self._changed = trio.Event()

    def running_by_key(self) -> Counter[str | None]:
        """How many tasks run or are about to, by `RedriveTask.started_by`."""
        running = [task.started_by for task in self.all() if task.state == "running"]
        return Counter([*self._starting, *running])

    @contextmanager
    def _admitted(self, started_by: str | None) -> Iterator[None]:
        """The body stores a task that is about to run. Raises TooManyRedrives if none may, or none of its key."""
        running = self.running_by_key()
        if running.total() >= limits.REDRIVES_RUNNING_MAX:
            raise TooManyRedrives
        if running[started_by] >= limits.REDRIVES_RUNNING_A_KEY_MAX:
            raise TooManyRedrives(
                f"{limits.REDRIVES_RUNNING_A_KEY_MAX} redrives of this key run, as many as may; try again when one"
                " has ended"
            )
        self._starting.append(started_by)
        try:
            yield
        finally:
            self._starting.remove(started_by)

    async def _change(self, change: ChangeRedrive) -> RedriveTask | None:
        with trio.CancelScope(shield=True):
            task = await self._writer.execute(change)
        self._tell()
        return task

    def _begin(self, task: RedriveTask) -> None:
        """Begin a walk, if the task and this actor are running."""
        if task.state == "running" and self._nursery is not None:
            running = self._here[task.id] = _Running(Walk(task, self._known, self._lists, self._writer))
            self._nursery.start_soon(self._walk, running)

    async def _end(self, redrive_id: str) -> None:
        """Store the end of a walk of this process, if that has been refused so far."""
        running = self._here.get(redrive_id)
        if running is not None and running.ending is not None:
            await self._change(running.ending)

    async def _stop(self, redrive_id: str, state: RedriveState) -> RedriveTask:
        """Bring a task that has not ended to this state."""
        with trio.CancelScope(shield=True):  # once a walk is stopped, it must get its new state or continue
            await self._end(redrive_id)
            running = self._here.get(redrive_id)
            if running is not None:
                running.scope.cancel()
                await running.stopped.wait()
            step = None if running is None else running.walk.progress
            try:
                task = await self._change(ChangeRedrive(redrive_id, state, step=step))
            finally:
                stored = self._stored().get(redrive_id)
                if running is not None and stored is not None and stored.walker == running.walker:
                    self._begin(running.walk.task)
        if task is None:
            raise RedriveNotFound
        return task

    async def _walk(self, running: _Running) -> None:
        """Walk until the end of the queue, or until the walk is cancelled or fails; then store the result."""
        walk = running.walk
        try:
            with running.scope:
                await walk.run()
                running.end("done")
        except trio.Cancelled:  # the server stops
            self._writer.post(ChangeRedrive(walk.task.id, "running", step=walk.progress))
            raise
        except (Stopping, RedriveStateConflict):
            pass
        except Exception as problem:
            running.end("failed", _error_text(problem))
            log(
                LogEvent.REDRIVE_FAILED,
                redrive=walk.task.id,
                queue=walk.task.queue,
                error=_error_text(problem),
            )
        finally:
            running.stopped.set()
        if running.ending is not None:
            await self._store_end(running, running.ending)
        if self._here.get(walk.task.id) is running:
            del self._here[walk.task.id]

    async def _store_end(self, running: _Running, ending: ChangeRedrive) -> None:
        """Store the end of a walk, however often that is refused. Until then callers see it from memory."""
        while True:
            try:
                await self._change(ending)
                return
            except Stopping:
                return
            except TRANSIENT_ERRORS:
                now_ms = self._clock.now_ms()
                running.walk.task = replace(
                    running.walk.task, state=ending.state, error=ending.error, finished_at=now_ms
                )
                self._tell()
            await trio.sleep(limits.STORAGE_RETRY_SECONDS)


def _in(task: RedriveTask, state: RedriveState) -> RedriveTask:
    """Return a task that is in this state; raise RedriveStateConflict for one that has ended otherwise."""
    if task.state is not state and task.ended:
        raise RedriveStateConflict(f"the redrive is {task.state}")
    return task


def _error_text(problem: Exception) -> str:
    text = str(problem) if isinstance(problem, ForqError) else f"{type(problem).__name__}: {problem}"
    return text[: limits.REDRIVE_ERROR_LENGTH_MAX]
