"""The writer actor: the only task that changes the database.

Other tasks send it commands through a bounded inbox and wait for the outcomes. Its loop has four steps:

    gather   take every call that waits (up to a cap)          inbox.py
    execute  run them as one transaction        \\
    commit   make it durable                     > one call    store.py
    answer   resolve every call with its outcome /             waiters.py

While a batch is made durable the next one gathers, so commits are shared without any artificial delay: one caller
alone gets a commit of its own, a hundred share one.

Rules
- No call is answered before its commit has returned, and there is no checkpoint between that and the answers. So no
  caller gets Stopping for a change that is on disk. Answering a call may run its endpoint to the end (in_place.py).
- A claim that finds nothing and may wait is parked (waiters.py). The batch that makes messages ready serves it.
- One timer (due_timer.py): the writer sleeps until the next due time, the deadline of a parked receiver, or a call.
- An abandoned claim (its caller was cancelled once it was taken) is released in the next batch, uncounted.
- A batch is bounded in messages and bytes (inbox.py, storage/allowance.py). A command that did not run because of that
  runs in the next batch. A claim that got nothing because of that is parked for a moment, whatever its wait.
- The inbox is bounded. When it stays full for INBOX_FULL_WAIT_SECONDS the caller gets Overloaded.
- If the database refuses a batch, its callers get StorageUnavailable, and nothing was changed. The writer goes on, and
  later tries work without a caller again: expired timers, and the release of abandoned claims. If a commit fails in
  another way, it is unknown what is on disk, and its callers get OutcomeUnknown. With SQLite the writer then ends with
  CommitFailed, which ends the process; the next one reads what was committed. With PostgreSQL it goes on.
- While a file of the database is lost (jobs/file_watch.py), commands whose effect has to last are refused with
  StorageLost (storage_state.py). Claims and settlements still work: no other process can deliver the stored messages.
- A batch that finds the disk full (StorageFull) runs again without its sends and leases, in the space of the reserve
  file. From then on they are refused, until the disk guard (jobs/disk_guard.py) allows them again. Acks with results
  are not refused, but store none.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import IntEnum
from math import inf
from typing import Any

import trio
from msgspec import Struct

from forq_trio.announcements import Announcements
from forq_trio.due_timer import DueTimer
from forq_trio.inbox import Inbox, Pauses, PauseWriter, Tick
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.clock import Clock
from forq_trio.model.commands import (
    GROWING,
    NOTED,
    Claim,
    Command,
    MoveBack,
    Nack,
    NackById,
    Nacked,
    Noted,
    OutcomeT,
    Produce,
    ProduceEach,
    ProduceMany,
    Publish,
    Release,
)
from forq_trio.model.errors import (
    OutcomeUnknown,
    Overloaded,
    QueueFull,
    ServiceError,
    Stopping,
    StorageFull,
    StorageUnavailable,
)
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.model.publishing.types import Published
from forq_trio.step_scheduler import StepScheduler
from forq_trio.storage.engine import Batch, BatchResult, Deferred, Snapshot
from forq_trio.storage_state import StorageState
from forq_trio.store import CommitFailed, Store
from forq_trio.telemetry.activity import log_losses
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.waiters import Call, ParkedReceivers, fail, without


class WriterListener:
    """Called by the writer, from its task, about its progress; no method may wait."""

    def committed(self) -> None:
        """A batch is durable and answered."""

    def failed_queued(self) -> None:
        """A batch left failed messages for a sweep."""

    def storage_full(self) -> bool:
        """The disk is full: free some space. True if that succeeded."""
        return False


class _Phase(IntEnum):
    """How far the writer is in stopping."""

    RUNS = 0
    DRAINS = 1  # it no longer parks receivers
    STOPS = 2  # it no longer takes calls
    ENDED = 3


class WriterActor:
    """Executes all commands. `run` is its task; others call `execute` and `post`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        counters: Counters,
        listener: WriterListener | None = None,
        *,
        inbox_calls_max: int = limits.INBOX_CALLS_MAX,
        parked_max: int = limits.PARKED_RECEIVERS_MAX,
    ) -> None:
        self._store = store
        self._clock = clock
        self._counters = counters
        self._listener = listener or WriterListener()
        self._phase = _Phase.RUNS
        self._inbox = Inbox(inbox_calls_max)
        self._postponed: deque[Call[Any]] = deque()  # calls that were taken, and run in the next batch
        self._pauses = Pauses()
        self._timer = DueTimer(clock)
        self._notified: set[str] = set()  # see `Batch.notified`
        self._overload_logged_at = float("-inf")
        self.parked = ParkedReceivers(parked_max)
        self.steps = StepScheduler()  # of long work
        self.storage = StorageState()
        self.announced = Announcements()

    @property
    def check_texts(self) -> Callable[[Struct], None] | None:
        """See storage/engine.py."""
        return self._store.check_texts

    @property
    def budgets(self) -> dict[str, Budget]:
        """The budgets that callers share, by their names in the metrics."""
        return {"inbox": self._inbox.budget, "parked": self.parked.budget}

    @property
    def finished(self) -> bool:
        """Whether the writer has ended."""
        return self._phase >= _Phase.ENDED

    @property
    def inbox_calls(self) -> int:
        """How many calls wait to be taken."""
        return len(self._inbox)

    # Called by other tasks

    async def execute(self, command: Command[OutcomeT]) -> OutcomeT:
        """Have a command executed; returns its outcome, or raises it if it is an error. Raises Overloaded or Stopping.

        If this is cancelled before the writer took the command, nothing happens. If it is cancelled later, the command
        is executed, and messages that it claimed are released.
        """
        call = Call(command)
        try:
            await self._send(call)
            outcome = await call.wait()
        except ServiceError as error:
            self._counters.record_rejection(error)
            if isinstance(error, QueueFull) and isinstance(command, Produce | ProduceMany):
                self._counters.queues.record_refused(command.queue)
            raise
        if type(command) is ProduceEach:
            self._count_rejected(command, outcome)
        return outcome

    async def execute_each(self, commands: Sequence[Command[OutcomeT]]) -> list[OutcomeT]:
        """Have commands executed, in one batch if possible; returns their outcomes. Raises like `execute`.

        If this raises or is cancelled, commands that were sent are still executed. Not for claims.
        """
        calls = [Call(command) for command in commands]
        try:
            for call in calls:
                await self._send(call)
            return [await call.wait() for call in calls]
        except ServiceError as error:
            self._counters.record_rejection(error)
            raise

    async def _send(self, call: Call[Any]) -> None:
        """Put a call into the inbox. Raises Overloaded or Stopping."""
        if self._phase >= _Phase.STOPS:
            raise Stopping
        try:
            await self._inbox.put(call)
        except Overloaded:
            self._log_overload()
            raise

    def _log_overload(self) -> None:
        """Log that calls are refused, at most once in OVERLOAD_LOG_SECONDS."""
        now = trio.current_time()
        if now >= self._overload_logged_at + limits.OVERLOAD_LOG_SECONDS:
            self._overload_logged_at = now
            log(LogEvent.WRITER_OVERLOADED, parked=self.parked.total)

    def _count_rejected(self, command: ProduceEach, outcomes: Any) -> None:
        for (queue, _), outcome in zip(command.messages, outcomes, strict=True):
            if isinstance(outcome, ServiceError):
                self._counters.record_rejection(outcome)
            if isinstance(outcome, QueueFull):
                self._counters.queues.record_refused(queue)

    def post(self, command: Command[Any]) -> None:
        """Have a command executed without waiting for its outcome. Never refused while the writer runs."""
        if not self.finished:
            self._inbox.post(Call(command, posted=True))

    def catch_up(self, notified: Iterable[str] = ()) -> None:
        """Run a batch soon, because another process may have changed the database. notified: see `Batch`."""
        self._timer.is_forced = True
        self._notified.update(notified)
        self.post(Tick())

    def note_exemplars(self) -> None:
        """From now on the metrics have exemplars (telemetry/exemplars.py)."""
        self._counters.exemplars = True

    def snapshot(self) -> Snapshot:
        """Counts, settings and tokens as of the last commit; the next commit changes them (see `Snapshot`)."""
        return self._store.snapshot()

    def note_storage_full(self) -> bool:
        """Refuse everything that needs space from now on: the disk is full. True if the listener freed some space."""
        self.storage.set_full(full=True)
        return self._listener.storage_full()

    def drain_receivers(self) -> None:
        """Answer all parked receivers with nothing, and from now on park none: the first step of a shutdown."""
        self._phase = max(self._phase, _Phase.DRAINS)
        self.parked.expire(inf)
        self.announced.close_watches()

    def stop(self) -> None:
        """Refuse new calls, finish those that were sent, then let `run` return."""
        if self._phase < _Phase.STOPS:
            self._phase = _Phase.STOPS
            self.drain_receivers()
            self._inbox.close()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """No batch runs while the body does. It must be short (a checkpoint), because calls wait in the meantime."""
        await self.execute(PauseWriter())
        resume = self._pauses.resume
        try:
            yield
        finally:
            resume.set()

    # The loop

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The actor's life, until `stop` (returns) or a failed commit that ends it (raises CommitFailed).

        Cancelled, it finishes the running commit, answers its calls, refuses the rest with Stopping, and closes the
        store.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._timer.run, self._wake)
            task_status.started()
            error = await self._work()
            nursery.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _work(self) -> Exception | None:
        """The loop. Returns the error that ended it, because the nursery would put a raised one into a group."""
        self._timer.set(self.parked.next_deadline())
        try:
            while (taken := await self._inbox.take()) is not None:
                self.parked.expire(trio.current_time(), limits.WAITS_ENDED_MAX)
                calls = self._sort_out(taken)
                if calls or self._timer.is_due():
                    await self._run_batch(calls)
                if self._postponed and not self._timer.retries:  # however the batch ended
                    self._inbox.post_first(Call(Tick(), posted=True))
                if self._pauses.calls:
                    await self._pauses.run()
                self._timer.set(self.parked.next_deadline())
        except Exception as error:
            return error
        finally:
            self._phase = _Phase.ENDED
            self.announced.end()
            self._inbox.close()
            fail([*self._postponed, *self._inbox.take_rest(), *self._pauses.calls], Stopping)
            self.parked.expire(inf)
            self._store.close()
        return None

    def _sort_out(self, taken: Sequence[Call[Any]]) -> list[Call[Any]]:
        """The calls of the next batch, postponed ones first, without abandoned calls, ticks and pauses."""
        calls = self._take_postponed()
        for call in taken:
            if type(call.command) is PauseWriter:
                self._pauses.calls.append(call)
            elif not call.abandoned and type(call.command) is not Tick:
                calls.append(call)
        calls = self.storage.admit(calls)
        moving = self._store.snapshot().staging.in_progress > 0
        calls, later = self.steps.take(calls, trio.current_time(), moving=moving)
        self._postponed.extendleft(reversed(later))
        return calls

    def _take_postponed(self) -> list[Call[Any]]:
        """The first postponed calls, up to the bounds of one commit; newly taken calls come in addition."""
        calls: list[Call[Any]] = []
        messages = size = 0
        while self._postponed and messages < limits.COMMIT_MESSAGES_MAX and size < limits.COMMIT_BYTES_MAX:
            call = self._postponed.popleft()
            if not call.abandoned:
                messages += call.command.message_count()
                size += call.command.content_bytes()
                calls.append(call)
        return calls

    async def _run_batch(self, calls: list[Call[Any]]) -> None:
        """Execute, commit and answer these calls; if the disk turns out to be full, only those that are not sends."""
        storage = self.storage
        batch = Batch(
            storage.commands_of(calls),
            self._clock.now_ms(),
            self.parked.by_queue(),
            moves_staged=not self.steps.put_off and storage.refusal is None,
            shared=self.steps.shared(trio.current_time()),
            refused={MoveBack} if storage.moving_back_refused else frozenset(),
            notified=self._notified,
            awaited_ends=self.announced.ended.watched,
        )
        self._timer.is_forced = False
        self._notified = set()
        first_stage = self._store.snapshot().staging.first_entry
        try:
            result = await self._store.run(batch)
        except StorageFull as error:
            # This loop ends, because each time there are fewer calls or more space, or the commands store less.
            has_sends = any(
                each.traits.effect in GROWING or each.when_full() is not each for each in batch.commands
            )
            if self.note_storage_full() or has_sends or (first_stage is not None and batch.moves_staged):
                calls = without(GROWING, calls, StorageFull)
                if calls or self._timer.is_due():
                    await self._run_batch(calls)
            else:
                self._refuse(calls, error)
        except StorageUnavailable as error:
            self._refuse(calls, error)
        except CommitFailed as error:
            fail([*calls, *self.parked.still_waiting(error.served)], OutcomeUnknown)
            if error.ends:
                raise
            self._refuse([], StorageUnavailable(str(error)))
        except Exception as error:
            # This is a bug, so the writer ends; but nothing was committed, and no caller may wait for ever.
            fail(calls, StorageUnavailable, f"{type(error).__name__}: {error}")
            raise
        else:
            self._after_commit(calls, batch, result)
            if first_stage != self._store.snapshot().staging.first_entry:
                self.announced.announce_moves()

    def _after_commit(self, calls: Sequence[Call[Any]], batch: Batch, result: BatchResult) -> None:
        """Do everything that follows a commit, without a checkpoint: figures, wake-ups, answers, housekeeping.

        Housekeeping (jobs/housekeeping.py) covers the sweeps, the log's checkpoints and the disk guard.
        """
        self._timer.note_commit(batch.now_ms if self.steps.put_off else result.next_due_ms)
        self._counters.record_batch(batch, result)
        self.announced.announce(result, self._store.snapshot())
        if not NOTED.isdisjoint(map(type, batch.commands)):
            self._note(batch, result.outcomes)
        for receiver, deliveries in result.served:
            self._serve(receiver, deliveries, batch)
        for call, outcome in zip(calls, result.outcomes, strict=True):
            self._answer(call, outcome)
        if result.failed_queued:
            self._listener.failed_queued()
        if result.commit_seconds is not None:
            self._counters.commits.record(len(calls), result.commit_seconds, batch.now_ms)
            self._listener.committed()
        log_losses(result)

    def _note(self, batch: Batch, outcomes: Sequence[Any]) -> None:
        """Note changes of tokens, the reasons of nacks, and publications."""
        for command, outcome in zip(batch.commands, outcomes, strict=True):
            if type(command) is Nack and isinstance(outcome, tuple | Deferred):
                done = outcome.done if isinstance(outcome, Deferred) else outcome
                returned = len(done) - done.count(Nacked.REFUSED)
                self._counters.nack_reasons.add(batch.now_ms, command.queue, command.reason, returned)
            elif type(command) is NackById and outcome is True:
                self._counters.nack_reasons.add(batch.now_ms, command.queue, None, 1)
            elif type(command) is Publish and isinstance(outcome, Published):
                self._counters.publications += outcome.published
            elif command.traits.noted is Noted.TOKENS:
                self.announced.token_changes += 1

    def _serve(self, receiver_id: int, deliveries: tuple[Delivery, ...], batch: Batch) -> None:
        """Resolve a parked receiver; if it has left, release its messages."""
        call = self.parked.find(receiver_id)
        if call is None:
            queues = batch.receivers.items()
            (queue,) = [queue for queue, line in queues if any(each.id == receiver_id for each in line)]
            self._release_abandoned(queue, deliveries)
        else:
            self.parked.remove(call)
            self._answer(call, deliveries)

    def _answer(self, call: Call[Any], outcome: Any) -> None:
        command = call.command
        if type(outcome) is Deferred:
            call.go_on(outcome.done)
            self._defer(call)
        elif outcome == () and type(command) is Claim and command.wait_ms > 0 and not call.abandoned:
            self._park(call, command, command.wait_ms / 1_000)
        elif not call.resolve(outcome) and type(command) is Claim and isinstance(outcome, tuple) and outcome:
            self._release_abandoned(command.queue, outcome)

    def _defer(self, call: Call[Any]) -> None:
        """Run a call in the next batch because this one was full. A claim is parked, so that it delays no others."""
        command = call.command
        if type(command) is Claim:
            if not call.abandoned:
                self._park(call, command, max(command.wait_ms / 1_000, limits.DEFERRED_CLAIM_SECONDS))
        else:
            self._postponed.append(call)

    def _park(self, call: Call[Any], claim: Claim, seconds: float) -> None:
        if self._phase >= _Phase.DRAINS:
            call.resolve(())
        elif not self.parked.add(call, claim, trio.current_time() + seconds):
            call.resolve(Overloaded())

    def _release_abandoned(self, queue: str, deliveries: tuple[Delivery, ...]) -> None:
        """Release the messages of an abandoned claim, ahead of all waiting calls."""
        receipts = tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)
        self._inbox.post_first(Call(Release(queue, receipts), posted=True))

    def _refuse(self, calls: list[Call[Any]], error: StorageUnavailable) -> None:
        """Answer calls that the database refused; those without a caller are postponed and tried again."""
        log(LogEvent.STORAGE_ERROR, error=str(error), calls=len(calls))
        fail([call for call in calls if not call.posted], type(error), str(error))
        self._postponed.extendleft(reversed([call for call in calls if call.posted]))
        self._timer.note_refusal()

    def _wake(self) -> None:
        self.post(Tick())
