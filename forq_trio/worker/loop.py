"""The loop of one queue: take free slots, claim as many messages in one request, run the handler, settle.

    free slots -> receive -> Run (cancel scope, bounded by the leases) -> Settlement -> free slots

A slot is busy from the claim until the settlement is answered, so no more messages are in process than there are slots.
Draining only cancels the claim, and running handlers go on. Cancelling the loop cancels the handlers and releases their
messages, the attempt uncounted.

Messages that were claimed together are handled by one task, one after the other, as long as no handler waits: a task of
its own for each would cost as much again. While one waits, other tasks take the rest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import anyio
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.types import Delivery
from forq_trio.worker.calls import HandlerCalls
from forq_trio.worker.exception_groups import causes_of, plain, reason_in_words
from forq_trio.worker.handlers import Handler
from forq_trio.worker.jobs import Job, Run, is_last
from forq_trio.worker.leases import JobLeases
from forq_trio.worker.outcomes import RELEASE, Discard, Settlement, frames_of, reason_of
from forq_trio.worker.program_end import ProgramEnds, end_of_program
from forq_trio.worker.retries import AttemptBounds
from forq_trio.worker.settle import Settler
from forq_trio.worker.slots import Slots
from forq_trio.worker.source import Source, gives_up_at, patiently

logger = logging.getLogger("forq_trio.worker")

INTERRUPTED = object()
"""The result of a handler that was cancelled because a lease was lost."""


class QueueStats(Struct):
    """Counts of a queue's messages by outcome, since the worker started. lost: their lease ended, or somebody removed
    them, while a handler had them."""

    handled: int = 0
    failed: int = 0
    discarded: int = 0
    dead: int = 0
    lost: int = 0
    running: int = 0
    slots: int = 0

    @property
    def finished(self) -> int:
        """Messages that left a slot."""
        return self.handled + self.failed + self.discarded + self.dead + self.lost

    def count(self, what: str, messages: int, dead: int) -> None:
        """Count messages that were settled in this way. dead: how many of them failed for good."""
        match what:
            case "ack":
                self.handled += messages
            case "discard":
                self.discarded += messages
            case "nack":
                self.dead += dead
                self.failed += messages - dead


class QueueLoop:
    """Runs the handler of one queue.

    lease_ms: the queue's. bounds: on the attempts of its messages.
    """

    def __init__(
        self,
        handler: Handler[Any, ..., Any],
        source: Source,
        slots: Slots,
        stats: QueueStats,
        calls: HandlerCalls,
        *,
        lease_ms: int,
        bounds: AttemptBounds,
    ) -> None:
        self.handler = handler
        self.stats = stats
        self.leases = JobLeases(source, handler.queue, lease_ms)
        self._source = source
        self._slots = slots
        self._bounds = bounds
        self._calls = calls
        self._claiming = anyio.CancelScope()
        self._ready: deque[list[Job]] = deque()  # claimed, and not begun: the jobs of one slot each
        self._resting: list[anyio.Event] = []  # tasks that wait for jobs
        self._sharing: dict[Job, list[Job]] = {}  # jobs that are not settled, with those that share the slot
        self._tasks = anyio.create_task_group()
        self._settler = Settler(source, handler.queue, self._tasks, self._settled, handler.without_result)
        self._failed: Callable[[Exception], None]  # see `run`
        stats.slots = slots.most

    @property
    def queue(self) -> str:
        """The name of the queue."""
        return self.handler.queue

    def drain(self) -> None:
        """Stop claiming; `run` returns when all running handlers are done."""
        self._claiming.cancel()

    def abandon_threads(self) -> None:
        """Stop waiting for handlers that run in threads, as `HandlerCalls` does."""
        self._calls.abandon_threads()

    async def run(self, stop_when_empty: bool, failed: Callable[[Exception], None]) -> None:
        """Claim and handle until `drain`, or until nothing is claimable and nothing runs.

        A handler with processes waits for its first one; other queues do not.

        failed: called at once with the error of a claim that cannot be repeated, or with ProgramEnds; running handlers
        may finish. Cancelled: handlers are cancelled, and their messages released.
        """
        self._failed = failed
        try:
            async with self._tasks:
                self._tasks.start_soon(self.leases.run)
                try:
                    with self._claiming:
                        await self._calls.prepare()
                        await self._claim_all(stop_when_empty=stop_when_empty)
                except (ForqError, ProgramEnds) as error:
                    failed(error)
                finally:
                    await self._until_idle()  # noqa: ASYNC102  cancelled, what runs is cancelled, too
                self._tasks.cancel_scope.cancel()
        finally:
            self.stats.running = 0
            self._calls.close()

    async def until_idle(self) -> None:
        """Wait until no handler runs."""
        while self.stats.running:
            await self._slots.one_freed()

    async def _until_idle(self) -> None:
        while self._slots.busy:
            await self._slots.one_freed()

    async def _claim_all(self, *, stop_when_empty: bool) -> None:
        batch = self.handler.options.batch
        asked = self._slots.worth_asking(full=True)
        while True:
            asked = await self._slots.take(1 if batch else min(asked, limits.RECEIVE_BATCH_MAX))
            filled = 0
            asked_at = anyio.current_time()
            try:
                found = await self._receive(batch or asked, stop_when_empty=stop_when_empty)
                filled = min(asked, len(found))
            finally:
                self._free_slots(asked - filled)
            if found:
                await self._take_on(self._jobs(found))
            elif stop_when_empty:
                if self._slots.busy:
                    await self._slots.one_freed()
                elif anyio.current_time() < asked_at + limits.DEFERRED_CLAIM_SECONDS:
                    return  # a claim that took longer may not have seen the whole queue
            asked = self._slots.worth_asking(full=filled == asked)

    async def _receive(self, most: int, *, stop_when_empty: bool) -> list[Delivery]:
        """Claim up to `most` messages. After an error it waits for none, so that the log soon says how it goes."""
        tries = count()
        until = gives_up_at(stop_when_empty=stop_when_empty)
        return await patiently(
            self._source,
            lambda: self._source.receive(
                self.queue,
                max_messages=most,
                wait_ms=0 if next(tries) or stop_when_empty else limits.WAIT_MS_MAX,
                lease_ms=self.leases.lease_ms,
                where=self.handler.options.where,
            ),
            f"{self.queue}: messages could not be received",
            until=lambda: until,
        )

    def _jobs(self, deliveries: Sequence[Delivery]) -> list[Job]:
        ends_at = self.leases.end_of_new()
        return [
            Job(
                self.queue,
                each,
                ends_at,
                attempts=self._bounds.of(each.max_attempts),
                shorten=self.leases.shorten,
            )
            for each in deliveries
        ]

    async def _take_on(self, jobs: list[Job]) -> None:
        """Have claimed jobs handled.

        If handlers wait, as far as calls have shown since the last claim, each slot gets a task. Else one task begins,
        and others take what it leaves when its handler does wait.
        """
        self.leases.hold(jobs)
        self.stats.running += len(jobs)
        slots = [jobs] if self.handler.options.batch else [[job] for job in jobs]
        self._sharing.update((job, sharing) for sharing in slots for job in sharing)
        self._ready.extend(slots)
        self._wake(len(slots) if self._calls.overlapped else 1)
        self._calls.overlapped = False
        try:
            for _ in range(2):  # tasks take turns in any order: after two passes of the loop it has begun
                await anyio.lowlevel.checkpoint()
        finally:
            self._wake(len(self._ready))

    def _wake(self, tasks: int) -> None:
        for _ in range(tasks):
            if self._resting:
                self._resting.pop().set()
            else:
                self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        """Process claimed jobs, then sleep until there are more: it costs more to start a task than to wake one."""
        while True:
            run = Run(self.handler.timeout_seconds)
            try:
                with run.scope:
                    await anyio.lowlevel.checkpoint_if_cancelled()  # then none of them is begun
                    while self._ready:
                        await self._process(self._ready.popleft(), run)
                if run.jobs:
                    self._settle(run, self._interruption(run))
                else:
                    await self._rest()
            except BaseException:
                self._resting.clear()  # all are cancelled: jobs that are claimed just now need a new task
                for job in chain(run.jobs, *self._ready):
                    self._settler.settle(job, RELEASE)
                self._ready.clear()
                raise

    async def _rest(self) -> None:
        """Wait until there are jobs."""
        wake = anyio.Event()
        self._resting.append(wake)
        try:
            await wake.wait()
        except anyio.get_cancelled_exc_class():  # noqa: ASYNC103  in asyncio, by a handler that has ended
            await anyio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC102  raises if the worker is cancelled
            _forget_cancellation()
            if wake in self._resting:
                self._resting.remove(wake)

    async def _process(self, jobs: list[Job], run: Run) -> None:
        """Process the jobs of one slot. Only the cancellation of the run or of the worker is raised."""
        readable, payloads = self._read(jobs)
        if not readable:
            return
        run.begin(readable)
        try:
            result = await self._calls.call(run, payloads)
            if not any(job.lease.stops for job in run.jobs):  # a thread was waited for, and has done its work
                await anyio.lowlevel.checkpoint_if_cancelled()  # the handler may have swallowed it
        except BaseException as error:  # noqa: ASYNC103  a bad message ends no worker
            if (end := end_of_program(error)) is not None:
                self._end_program(run, end)
                return  # noqa: ASYNC104  the worker raises it when it has ended
            await anyio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC102  raises if the call is cancelled
            result = error
            if isinstance(error, anyio.get_cancelled_exc_class()):  # in asyncio any code may cancel a task
                _forget_cancellation()
                result = RuntimeError("the handler was cancelled, but not by its worker")
        self._settle(run, result)

    def _end_program(self, run: Run, error: BaseException) -> None:
        """Give the jobs of a call back, and have the worker stop and raise the error."""
        jobs = run.end()
        kind = type(error).__name__
        logger.error("%s: the call for %s raised %s: the worker ends", self.queue, jobs[0].id, kind)
        for job in jobs:
            self._settler.settle(job, RELEASE)
        self._failed(ProgramEnds(error))

    def _read(self, jobs: list[Job]) -> tuple[list[Job], list[Any]]:
        """The jobs whose contents fit, with their payloads. The others have failed, or were lost before."""
        readable: list[Job] = []
        payloads: list[Any] = []
        now = anyio.current_time()
        for job in tuple(jobs):  # `_end` takes one out of the list of its slot, which this may be
            if job.lost or now >= job.lease.ends_at:  # while it waited for its slot
                self._note_lost(job)
                self._end([job])
                continue
            try:
                payloads.append(self.handler.payload.decode(job.content))
                readable.append(job)
            except Exception as error:
                settlement = self.handler.unreadable(error, job)
                what = "is a dead letter" if is_last(settlement, job) else "is tried again"
                logger.error("%s: message %s %s: %s", self.queue, job.id, what, settlement.reason)
                self._settler.settle(job, settlement)
        return readable, payloads

    def _interruption(self, run: Run) -> object:
        """The result of a call that its run cancelled."""
        if run.note_lost_leases():
            return INTERRUPTED  # for the rest of a batch, too: what the handler has done is not known
        if anyio.current_time() < run.timeout_at:
            return TimeoutError("the lease was extended too late")
        return TimeoutError(f"the handler took longer than {self.handler.timeout_seconds:g} s")

    def _settle(self, run: Run, result: object) -> None:
        """Settle the jobs of a call by what it returned or raised."""
        jobs = run.end()
        result = plain(result)
        results = self.handler.returned_for_each(result, len(jobs))
        settled = [
            (job, None if job.lost else self._settlement(each, job))
            for job, each in zip(jobs, results, strict=True)
        ]
        if isinstance(result, BaseException):
            first, settlement = settled[0]
            self._log(first, result, last=settlement is not None and is_last(settlement, first))
        for job, settlement in settled:
            if settlement is None:
                self._note_lost(job)
                self._end([job])
            else:
                self._settler.settle(job, settlement)

    def _log(self, first: Job, result: BaseException, *, last: bool) -> None:
        if isinstance(result, Discard):
            logger.warning(
                "%s: %s is discarded: %s", self.queue, first.id, storable_reason(result.reason_or(""))
            )
        else:
            logger.warning(
                "%s: attempt %d of %s failed%s: %s%s",
                self.queue,
                first.attempt,
                first.id,
                ", and is the last" if last else "",
                reason_in_words(result),
                frames_of(causes_of(result)[0]) or frames_of(result),
            )

    def _settlement(self, result: object, job: Job) -> Settlement:
        if result is INTERRUPTED:
            return RELEASE
        try:
            return self.handler.settlement(result, job)
        except Exception as error:  # an outcome of the program's own may be anything
            return self.handler.retries.after(error, reason_of(error), job)

    def _settled(self, settlement: Settlement, jobs: list[Job], current: Mapping[str, bool]) -> None:
        refused = [job for job in jobs if job.receipt not in current]
        for job in refused:
            self._note_lost(job)
        dead = sum(current[job.receipt] for job in jobs if job.receipt in current)
        self.stats.count(settlement.what, len(jobs) - len(refused), dead)
        self._end(jobs)

    def _note_lost(self, job: Job) -> None:
        job.lease.lost = True
        self.stats.lost += 1
        logger.warning(
            "%s: %s in attempt %d; its result is refused", self.queue, job.loss_in_words(), job.attempt
        )

    def _end(self, jobs: list[Job]) -> None:
        """Let go of jobs, and free the slots in which none is left."""
        self.leases.let_go(jobs)
        freed = 0
        for job in jobs:
            sharing = self._sharing.pop(job)
            sharing.remove(job)
            freed += not sharing
            self.stats.running -= 1
        self._free_slots(freed)

    def _free_slots(self, number: int) -> None:
        if number:
            self._slots.release(number)


def _forget_cancellation() -> None:
    """In asyncio: have a cancellation that came from nobody of ours count no longer, for the task's next handler."""
    if (
        anyio.get_cancelled_exc_class() is asyncio.CancelledError
        and (task := asyncio.current_task()) is not None
    ):
        task.uncancel()
