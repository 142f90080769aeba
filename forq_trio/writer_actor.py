"""The writer actor: the only task that changes the database.

Everybody else sends it commands through a bounded memory channel and waits for the outcome. The loop is short:

    take every call that waits (up to a cap) -> execute them as one transaction -> commit -> resolve them

While a batch is made durable the next one gathers, so commits are shared without any artificial delay: one caller
alone gets a commit of its own, a hundred share one.

Rules
- Nothing is answered before the commit that contains it returned, and there is no checkpoint between that return and
  the answers: nobody can be told "stopped" about a change that is on disk.
- A claim that finds nothing and may wait is parked (waiters.py). A batch that makes messages of its queue ready serves
  it in the same transaction.
- One timer: the engine says when the next thing falls due; the writer sleeps until then, until a receiver's time is
  over, or until the next call, whichever is first. Without any of them it runs nothing at all.
- A caller who left (cancelled) after its call was taken has its claim released in the next batch, the attempt
  uncounted.
- The inbox is bounded. When it stays full for INBOX_FULL_WAIT_SECONDS the caller gets Overloaded.
- A batch that the database refuses (StorageUnavailable) is answered so and changed nothing; the writer goes on, and
  tries again what nobody waits for: what fell due, and the claims to release. A commit that fails otherwise leaves the
  truth unknown: its callers get OutcomeUnknown and the writer ends with CommitFailed, which ends the process; the next
  one reads the truth from the database.
- A batch that finds the disk full (StorageFull) runs again without its sends, in the space kept for that. From then on
  sends are refused, until whoever watches over the disk (disk_guard.py) allows them again.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import trio

from forq_trio.commit_policy import CommitPolicy
from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.clock import Clock
from forq_trio.model.commands import (
    Claim,
    Command,
    NoteTokenUse,
    OutcomeT,
    Produce,
    ProduceEach,
    ProduceMany,
    Release,
    Resubmit,
    RevokeToken,
    SaveToken,
    message_count,
)
from forq_trio.model.errors import (
    OutcomeUnknown,
    Overloaded,
    ServiceError,
    Stopping,
    StorageFull,
    StorageUnavailable,
)
from forq_trio.model.messages import Delivery, QueueCounts, Receipt
from forq_trio.model.queue_settings import QueueRules, QueueSettings
from forq_trio.storage.engine import CLEANED_UP, Batch, Engine, Event
from forq_trio.telemetry.counters import Tally
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.waiters import Call, ParkedReceivers, Watches

_SENDS = frozenset({Produce, ProduceMany, ProduceEach, Resubmit})
_CHANGING_TOKENS = frozenset({SaveToken, RevokeToken, NoteTokenUse})

DLQ_FULL = "dlq_full"
"""Why a message was deleted that found no room in the dead-letter queue it was meant for."""


class CommitFailed(Exception):
    """A commit failed, so what is on disk is unknown; only a restart can tell"""


class _Hold(Command[None], frozen=True, gc=False):
    """Asks the writer to pause between two batches."""


class _Tick(Command[None], frozen=True, gc=False):
    """Wakes the writer: something may have fallen due."""


class WriterActor:
    """Owns the engine's write side. `run` is its task; `execute` and `post` are how others reach it.

    on_failed_queued: called when failed messages wait for a sweep; on_committed: after each commit, with the pages
    of the write-ahead log; on_storage_full: when the disk is full, returns True if it made some room. They are called
    from the writer's task and must not wait. sends_refused: everything that stores new messages is answered
    StorageFull; set by the writer when the disk is full, by the disk guard before that, and taken back by the guard.
    token_changes: grows with every commit that may have changed access tokens, so that what is derived from them can be
    kept until it does.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        tally: Tally,
        *,
        policy: CommitPolicy | None = None,
        inbox_calls_max: int = limits.INBOX_CALLS_MAX,
        parked_max: int = limits.PARKED_RECEIVERS_MAX,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._tally = tally
        self._policy = policy or CommitPolicy()
        self._thread_limiter = trio.CapacityLimiter(1)
        self._send, self._receive = trio.open_memory_channel[Call[Any]](inbox_calls_max)
        self._overflow: deque[Call[Any]] = deque()
        self._postponed: list[Call[Any]] = []
        self._holds: list[Call[None]] = []
        self._resume = trio.Event()
        self._timer = trio.CancelScope()
        self._next_due_ms: int | None = clock.now_ms()
        self._retry_at = inf  # trio's time, which nobody sets; finite after a batch that the database refused
        self._draining = False
        self._stopping = False
        self._finished = False
        self._overload_told = float("-inf")
        self.parked = ParkedReceivers(parked_max)
        self.watches = Watches()
        self.token_changes = 0
        self.sends_refused = False
        self.on_failed_queued: Callable[[], None] = lambda: None
        self.on_committed: Callable[[int], None] = lambda _: None
        self.on_storage_full: Callable[[], bool] = lambda: False
        tally.parked = self.parked
        tally.inbox_calls = self._inbox_calls

    async def execute(self, command: Command[OutcomeT]) -> OutcomeT:
        """Have `command` executed and return its outcome; raises what failed it, Overloaded or Stopping.

        Cancelled before the writer took the command, nothing happens. Cancelled later, it is executed, and what it
        claimed is given back.
        """
        call = Call(command)
        try:
            if self._stopping:
                raise Stopping
            try:
                self._send.send_nowait(call)
            except trio.WouldBlock:
                await self._send_when_room(call)
            outcome = await call.wait()
        except ServiceError as error:
            self._tally.record_rejection(error)
            raise
        if type(command) is ProduceEach:
            self._count_rejected(outcome)
        return outcome

    def _count_rejected(self, outcomes: Any) -> None:
        for outcome in outcomes:
            if isinstance(outcome, ServiceError):
                self._tally.record_rejection(outcome)

    async def _send_when_room(self, call: Call[Any]) -> None:
        with trio.move_on_after(limits.INBOX_FULL_WAIT_SECONDS):
            try:
                await self._send.send(call)
            except trio.ClosedResourceError:
                raise Stopping from None
            return
        if trio.current_time() >= self._overload_told + limits.OVERLOAD_LOG_SECONDS:
            self._overload_told = trio.current_time()
            log(LogEvent.WRITER_OVERLOADED, parked=self.parked.total)
        raise Overloaded

    def post(self, command: Command[Any]) -> None:
        """Have `command` executed without waiting for its outcome. Never refused while the writer runs."""
        if self._finished:
            return
        call = Call(command, posted=True)
        try:
            self._send.send_nowait(call)
        except (trio.WouldBlock, trio.ClosedResourceError):
            self._overflow.append(call)

    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue, as of the last commit: a copy, for the next one may be running."""
        return dict(self._engine.counts())

    def counts_of(self, queue: str) -> QueueCounts | None:
        """Messages by status of one queue, as of the last commit; None for one that is not known."""
        return self._engine.counts().get(queue)

    def settings(self) -> Mapping[str, QueueSettings]:
        """The queues for which something is set, as of the last commit."""
        return dict(self._engine.settings())

    def settings_of(self, queue: str) -> QueueSettings | None:
        """What is set for one queue, as of the last commit; None if nothing is."""
        return self._engine.settings().get(queue)

    def rules(self, queue: str) -> QueueRules:
        """What holds for a queue, as of the last commit."""
        return self._engine.rules(queue)

    def tokens(self) -> Mapping[str, AccessToken]:
        """All access tokens by name, as of the last commit."""
        return dict(self._engine.tokens())

    def last_sequence(self) -> int:
        """The highest sequence number given out, as of the last commit."""
        return self._engine.last_sequence()

    def _inbox_calls(self) -> int:
        """How many calls wait to be taken into a batch."""
        return self._receive.statistics().current_buffer_used + len(self._overflow)

    @property
    def average_commit_seconds(self) -> float:
        return self._policy.average_seconds

    def drain_receivers(self) -> None:
        """Answer all parked receivers with nothing, and from now on park none: the first step of a shutdown."""
        self._draining = True
        self.parked.give_up(float("inf"))
        self.watches.close()

    def stop(self) -> None:
        """Refuse new calls, finish those that were sent, then let `run` return."""
        if not self._stopping:
            self._stopping = True
            self.drain_receivers()
            self._send.close()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """While inside, no batch runs. For a final checkpoint, which must be short; calls gather meanwhile."""
        await self.execute(_Hold())
        resume = self._resume
        try:
            yield
        finally:
            resume.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The actor's life, until `stop` (returns) or a failed commit (raises CommitFailed).

        Cancelled, it finishes the commit under way, answers it, refuses the rest with Stopping, and closes the
        engine.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_time)
            task_status.started()
            error = await self._work()
            nursery.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _work(self) -> Exception | None:
        """The loop. Returns what ended it; raised, it would leave the nursery in a group."""
        self._set_timer()
        try:
            while (calls := await self._gather()) is not None:
                await self._execute_batch(calls)
                while self._holds:
                    await self._pause(self._holds.pop())
                self._set_timer()
        except Exception as error:
            return error
        finally:
            self._stopping = self._finished = True
            self._send.close()
            self._refuse_waiting()
            self._engine.close()
        return None

    async def _gather(self) -> list[Call[Any]] | None:
        """Wait for something to do and take all there is. None: stopped and nothing is left."""
        if self._overflow:
            await trio.lowlevel.checkpoint()
            calls = [self._overflow.popleft()]
        else:
            try:
                calls = [await self._receive.receive()]
            except trio.EndOfChannel:
                return [self._overflow.popleft()] if self._overflow else None
        self._take_waiting(calls)
        self.parked.give_up(trio.current_time())
        return calls

    def _take_waiting(self, calls: list[Call[Any]]) -> None:
        """Add what else waits, up to the caps of one commit."""
        messages = message_count(calls[0].command)
        while len(calls) < limits.COMMIT_CALLS_MAX and messages < limits.COMMIT_MESSAGES_MAX:
            if self._overflow:
                call = self._overflow.popleft()
            else:
                try:
                    call = self._receive.receive_nowait()
                except (trio.WouldBlock, trio.EndOfChannel):
                    return
            calls.append(call)
            messages += message_count(call.command)

    async def _keep_time(self) -> None:
        """The one timer: sleeps until the time that `_set_timer` says, then wakes the writer, and again."""
        while True:
            with self._timer:
                await trio.sleep_forever()
            self._timer = trio.CancelScope()
            self.post(_Tick())

    def _set_timer(self) -> None:
        """Have the writer woken when something falls due or a receiver's time is over.

        The timer is only ever moved to an earlier time; one that fires too early finds nothing and is set anew.
        """
        wake_at = min(self.parked.next_deadline(), self._retry_at)
        if self._next_due_ms is not None and self._retry_at == inf:
            due_seconds = (self._next_due_ms - self._clock.now_ms()) / 1_000
            # The wall clock can be set while we sleep: look at it again now and then. That runs no query.
            wake_at = min(wake_at, trio.current_time() + min(due_seconds, limits.CLOCK_CHECK_SECONDS_MAX))
        if wake_at < self._timer.deadline:
            self._timer.deadline = wake_at

    def _is_due(self) -> bool:
        """Whether there is work even without calls: something fell due, or is to be tried again."""
        if self._retry_at < inf:
            return trio.current_time() >= self._retry_at
        return self._next_due_ms is not None and self._next_due_ms <= self._clock.now_ms()

    async def _execute_batch(self, calls: list[Call[Any]]) -> None:
        live, self._postponed = self._postponed, []
        for call in calls:
            if type(call.command) is _Hold:
                self._holds.append(call)
            elif not call.abandoned and type(call.command) is not _Tick:
                live.append(call)
        await self._run_batch(live)

    async def _run_batch(self, live: list[Call[Any]]) -> None:
        """Have the calls executed, committed and answered; if the disk turns out full, those that are not sends."""
        if self.sends_refused:
            live = _refuse_sends(live)
        if not live and not self._is_due():
            return
        try:
            await self._commit_together(live)
        except StorageFull as error:
            self.sends_refused = True
            # There is a point in trying again, and it comes to an end: there are fewer calls then, or more room.
            if self.on_storage_full() or any(type(call.command) in _SENDS for call in live):
                await self._run_batch(live)
            else:
                self._refuse(live, error)
        except StorageUnavailable as error:
            self._refuse(live, error)

    def _refuse(self, live: list[Call[Any]], error: StorageUnavailable) -> None:
        """Answer calls that the database did not execute, and try again later what nobody waits for."""
        log(LogEvent.STORAGE_ERROR, error=str(error), calls=len(live))
        _fail([call for call in live if not call.posted], type(error), str(error))
        self._postponed = [call for call in live if call.posted]
        self._retry_at = trio.current_time() + limits.STORAGE_RETRY_SECONDS

    async def _commit_together(self, live: list[Call[Any]]) -> None:
        """Execute the calls as one transaction, commit it, and answer them. Raises StorageUnavailable, having
        changed nothing and answered nobody, or what ends the writer."""
        batch = Batch([call.command for call in live], self._clock.now_ms(), self.parked)
        try:
            result = self._engine.execute_batch(batch)
        except StorageUnavailable:
            raise
        except Exception as error:
            # Nobody foresaw it, so the writer ends with it; but nothing was committed and nobody may hang.
            _fail(live, StorageUnavailable, f"{type(error).__name__}: {error}")
            raise
        served = [
            (self.parked[queue].offered[index], deliveries)
            for queue, shares in result.served.items()
            for index, deliveries in shares
        ]
        try:
            commit_seconds = await self._commit()
        except StorageUnavailable:
            raise
        except Exception as error:
            _fail(live, OutcomeUnknown)
            _fail([call for call, _ in served], OutcomeUnknown)
            raise CommitFailed(str(error)) from error
        # No checkpoint from here to the last answer.
        self._next_due_ms, self._retry_at = result.next_due_ms, inf
        self._tally.record(result.events)
        self._tally.record_durations(result.durations)
        self.watches.notify(result.woken)
        if not _CHANGING_TOKENS.isdisjoint(map(type, batch.commands)):
            self.token_changes += 1
        for call, deliveries in served:
            self.parked.remove(call)
            self._answer(call, deliveries)
        for call, outcome in zip(live, result.outcomes, strict=True):
            self._answer(call, outcome)
        if result.failed_queued:
            self.on_failed_queued()
        if commit_seconds is not None:
            self._tally.record_commit(len(live), commit_seconds)
            self.on_committed(self._engine.log_pages())
        _tell_losses(result.events)

    async def _commit(self) -> float | None:
        """Make the open transaction durable, where the policy says; returns how long it took, None for nothing to do.

        Cancellation waits until it is done.
        """
        if self._policy.inline:
            return self._timed_commit()
        # The shield closes the window before the thread starts; the thread itself is never abandoned.
        with trio.CancelScope(shield=True):
            seconds = await trio.to_thread.run_sync(
                self._timed_commit, abandon_on_cancel=False, limiter=self._thread_limiter
            )
        return seconds

    def _timed_commit(self) -> float | None:
        started = time.perf_counter()
        if not self._engine.commit():
            return None
        seconds = time.perf_counter() - started
        self._policy.record(seconds)
        return seconds

    def _answer(self, call: Call[Any], outcome: Any) -> None:
        command = call.command
        if outcome == () and type(command) is Claim and command.wait_ms > 0 and not call.abandoned:
            self._park(call, command)
        elif not call.resolve(outcome) and type(command) is Claim and isinstance(outcome, tuple) and outcome:
            self._give_back(command.queue, outcome)

    def _park(self, call: Call[Any], claim: Claim) -> None:
        if self._draining:
            call.resolve(())
        elif self.parked.full:
            call.resolve(Overloaded())
        else:
            self.parked.add(call, claim, trio.current_time() + claim.wait_ms / 1_000)

    def _give_back(self, queue: str, deliveries: tuple[Delivery, ...]) -> None:
        """Undo a claim whose caller has left, before anything else that waits."""
        receipts = tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)
        self._overflow.append(Call(Release(queue, receipts), posted=True))

    async def _pause(self, hold: Call[None]) -> None:
        """Run nothing until the holder resumes us."""
        self._resume = trio.Event()
        if hold.resolve(None):
            await self._resume.wait()

    def _refuse_waiting(self) -> None:
        waiting = list(self._overflow)
        while True:
            try:
                waiting.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        _fail(waiting + self._holds, Stopping)
        self.parked.give_up(float("inf"))


def _fail(calls: list[Call[Any]], kind: type[ServiceError], *args: str) -> None:
    """Resolve every call with an exception of its own: a shared one would collect the tracebacks of all tasks."""
    for call in calls:
        call.resolve(kind(*args))


def _refuse_sends(calls: list[Call[Any]]) -> list[Call[Any]]:
    """Answer those that store new messages with StorageFull, and return the others."""
    _fail([call for call in calls if type(call.command) in _SENDS], StorageFull)
    return [call for call in calls if type(call.command) not in _SENDS]


def _tell_losses(events: Sequence[Event]) -> None:
    """Log what was deleted because there was no room for it where failed messages are kept."""
    for event in events:
        if event.kind == CLEANED_UP and event.reason == DLQ_FULL:
            log(LogEvent.DEAD_LETTERS_LOST, queue=event.queue, messages=event.count)
