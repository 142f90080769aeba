"""Redrives and deletions of all dead letters that match: tasks with a rate and a progress, stored in the database.

A task walks through a dead-letter queue from its newest message to its oldest (redrive_walk.py). It can be paused,
resumed and cancelled, and continues after a restart; its rate starts anew then.

Rules
- Each move is a transaction, and a walk ends between two of them: every message is in one queue. Messages that were not
  moved stay in the dead-letter queue.
- The cursor and the counts are stored in the transaction of the move. So after a kill a task continues below the last
  message that it moved, and `moved` is exact. Messages that it only read since the last save are read again and counted
  once, because the counts belong to the cursor.
- No task changes a message twice, however soon it fails again and however often the process is killed: a task only goes
  down in sequence, a message keeps its sequence when it is moved, and the cursor is stored with the move. Messages that
  became dead letters after `started_at` are not moved.
- Pausing and cancelling wait for the move under way, and are answered once the new state is committed. If that is
  refused, the caller gets the error and the task continues.
- A move that the database refuses is tried again a few times; then the task has failed and says why. A resume continues
  from its cursor. The end of a task is posted, not waited for: if a kill comes before it is stored, the task runs again
  from its cursor at the next start, and ends again.
- A stopping server stores no state: running tasks continue at the next start.
- There are at most REDRIVES_REMEMBERED_MAX tasks; a new one takes the place of the oldest that ended.
"""

import uuid
from collections import Counter
from typing import Any

import msgspec
import trio

from forq_trio.broker.known import Known
from forq_trio.broker.lists import Lists, check_filter
from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.redrive_walk import Walk
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.commands import ForgetRedrive, SaveRedrive
from forq_trio.model.errors import ForqError, RedriveNotFound, RedriveStateConflict, Stopping, TooManyRedrives
from forq_trio.model.messages import check_queue_name
from forq_trio.model.redrives import RedriveAction, RedriveState, RedriveTask
from forq_trio.model.searches import AppliedFilter, MessageFilter
from forq_trio.model.values import seen
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor


class _Run:
    """A task with the walk that is under way, and the scope that stops it.

    walk: None while the task does not run. stopped: set when there is no walk. ended: set when the task has ended, or
    the actor has. changing: held while a caller changes the state.
    """

    def __init__(self, task: RedriveTask) -> None:
        self._task = task
        self.walk: Walk | None = None
        self.scope = trio.CancelScope()
        self.stopped = trio.Event()
        self.ended = trio.Event()
        self.changing = trio.Lock()

    @property
    def task(self) -> RedriveTask:
        """The task, as of its last step."""
        return self._task if self.walk is None else self.walk.task

    @property
    def running(self) -> bool:
        return self._task.state == "running"

    def set(self, task: RedriveTask) -> None:
        """Take over the task, now that no walk is under way."""
        self._task, self.walk = task, None


class Redrives:
    """The actor that runs these tasks: `run` is its task, the other methods are for callers.

    At most REDRIVES_RUNNING_MAX run at once, and REDRIVES_RUNNING_A_KEY_MAX of one key; more may run after a start
    that found more.
    """

    def __init__(self, known: Known, lists: Lists, writer: WriterActor, clock: Clock) -> None:
        self._known = known
        self._lists = lists
        self._writer = writer
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._runs: dict[str, _Run] = {}
        self._starting: list[str | None] = []

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Go on with the stored tasks, and run new ones, until cancelled: then each walk ends between two steps."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for task in self._writer.snapshot().redrives.values():
                    self._add(task)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            for run in self._runs.values():
                run.ended.set()

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
        1-10,000, None for no limit. dry_run: only count. started_by: the name of the access token, None for the holder
        of the server's secret. Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes,
        InvalidContent, TooManyRedrives, and what `WriterActor.execute` raises. If this call is cancelled, the task
        starts all the same.
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
        )
        await self._save_running(task)
        stored = self._writer.snapshot().redrives
        self._runs = {key: run for key, run in self._runs.items() if key in stored}
        self._add(task)
        return task

    def all(self, queue: str | None = None) -> list[RedriveTask]:
        """The tasks that are remembered, of one queue or (None) of all, the latest first."""
        return [run.task for run in reversed(self._runs.values()) if queue in (None, run.task.queue)]

    def get(self, redrive_id: str) -> RedriveTask:
        """A task, with its progress. Raises RedriveNotFound."""
        return self._find(redrive_id).task

    async def wait(self, redrive_id: str) -> RedriveTask:
        """Return a task once it has ended, or the actor has. Cancelled, the task goes on. Raises RedriveNotFound."""
        run = self._find(redrive_id)
        await run.ended.wait()
        return run.task

    async def pause(self, redrive_id: str) -> RedriveTask:
        """Stop a task between two transactions, to be resumed; a paused one is unchanged.

        Raises RedriveNotFound, RedriveStateConflict if it has ended, and what `WriterActor.execute` raises. If this
        call is cancelled, the task is paused all the same; so it is with `resume` and `cancel`.
        """
        run = self._find(redrive_id)
        async with run.changing:
            await self._stop(run, "paused", paused_at=self._clock.now_ms())
        return _in(run.task, "paused")

    async def resume(self, redrive_id: str) -> RedriveTask:
        """Continue a paused or failed task from its cursor; a running one does not change.

        Raises RedriveNotFound, RedriveStateConflict if it is done or cancelled, TooManyRedrives, and what
        `WriterActor.execute` raises.
        """
        run = self._find(redrive_id)
        async with run.changing:
            self._find(redrive_id)  # it may have been dismissed meanwhile
            if run.task.state in ("paused", "failed"):
                task = _changed(run.task, "running", None)
                await self._save_running(task)
                if run.ended.is_set():
                    run.ended = trio.Event()
                run.set(task)
                self._runs[redrive_id] = run  # a new task may have taken its place before it was saved
                self._begin(run)
        return _in(run.task, "running")

    async def cancel(self, redrive_id: str) -> RedriveTask:
        """End a task between two transactions, and return it; one that has ended does not change.

        Raises RedriveNotFound, and what `WriterActor.execute` raises.
        """
        run = self._find(redrive_id)
        async with run.changing:
            await self._stop(run, "cancelled", finished_at=self._clock.now_ms())
        return run.task

    async def dismiss(self, redrive_id: str) -> None:
        """Forget a task that has ended. Raises RedriveNotFound, and RedriveStateConflict for one that has not."""
        run = self._find(redrive_id)
        async with run.changing:
            if not run.task.ended:
                raise RedriveStateConflict(f"the redrive is {run.task.state}: cancel it first")
            await self._writer.execute(ForgetRedrive(redrive_id))
            self._runs.pop(redrive_id, None)

    def _find(self, redrive_id: str) -> _Run:
        run = self._runs.get(redrive_id)
        if run is None:
            raise RedriveNotFound
        return run

    def running_by_key(self) -> Counter[str | None]:
        """How many tasks run, or are about to, by who started them (`RedriveTask.started_by`)."""
        return Counter(
            [*self._starting, *(run.task.started_by for run in self._runs.values() if run.running)]
        )

    async def _save_running(self, task: RedriveTask) -> None:
        """Store a task that is about to run. Raises TooManyRedrives if no further one may, or none of its key."""
        running = self.running_by_key()
        if running.total() >= limits.REDRIVES_RUNNING_MAX:
            raise TooManyRedrives
        if running[task.started_by] >= limits.REDRIVES_RUNNING_A_KEY_MAX:
            raise TooManyRedrives(
                f"{limits.REDRIVES_RUNNING_A_KEY_MAX} redrive tasks of this key run, as many as may; try again when one"
                " has ended"
            )
        self._starting.append(task.started_by)
        try:
            await self._save(task)
        finally:
            self._starting.remove(task.started_by)

    async def _save(self, task: RedriveTask) -> None:
        with trio.CancelScope(shield=True):
            await self._writer.execute(SaveRedrive(task))

    def _add(self, task: RedriveTask) -> None:
        """Take a stored task, and let it go on if it is running."""
        run = self._runs[task.id] = _Run(task)
        if task.ended:
            run.ended.set()
        self._begin(run)

    def _begin(self, run: _Run) -> None:
        """Begin a walk, if the task is running and the actor is."""
        if run.running and self._nursery is not None:
            run.walk = Walk(run.task, self._known, self._lists, self._writer)
            run.scope = trio.CancelScope()
            run.stopped = trio.Event()
            self._nursery.start_soon(self._walk, run, run.walk)
        else:
            run.stopped.set()

    async def _stop(self, run: _Run, state: RedriveState, **members: Any) -> None:
        """Bring a task that has not ended to this state."""
        with trio.CancelScope(shield=True):  # a stopped walk gets its new state, or continues
            if run.running:
                run.scope.cancel()
                await run.stopped.wait()
            if run.task.ended or run.task.state is state:
                return
            task = _changed(run.task, state, None, **members)
            try:
                await self._save(task)
            except BaseException:
                self._begin(run)
                raise
            run.set(task)
            if task.ended:
                run.ended.set()

    async def _walk(self, run: _Run, walk: Walk) -> None:
        """Walk to the end of the queue, or until the walk is cancelled or fails."""
        ended: RedriveTask | None = None
        try:
            with run.scope:
                await walk.run()
                ended = _changed(walk.task, "done", None, finished_at=self._clock.now_ms())
        except Stopping:
            pass  # the server stops: the same as cancelled
        except Exception as problem:
            error = _error_text(problem)
            ended = _changed(walk.task, "failed", error, finished_at=self._clock.now_ms())
            log(LogEvent.REDRIVE_FAILED, redrive=run.task.id, queue=run.task.queue, error=error)
        finally:
            run.set(ended or walk.task)
            run.stopped.set()
            if ended is not None:
                self._writer.post(SaveRedrive(ended))
                run.ended.set()


def _in(task: RedriveTask, state: RedriveState) -> RedriveTask:
    """Return a task that is in this state; raise RedriveStateConflict for one that has ended otherwise."""
    if task.state is not state and task.ended:
        raise RedriveStateConflict(f"the redrive is {task.state}")
    return task


def _changed(task: RedriveTask, state: RedriveState, error: str | None, **members: Any) -> RedriveTask:
    """The task in another state, with the times of that state alone."""
    times = {"paused_at": None, "finished_at": None} | members
    return msgspec.structs.replace(task, state=state, error=error, **times)


def _error_text(problem: Exception) -> str:
    text = str(problem) if isinstance(problem, ForqError) else f"{type(problem).__name__}: {problem}"
    return text[: limits.REDRIVE_ERROR_LENGTH_MAX]
