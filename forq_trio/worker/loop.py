"""The loop of one queue: take free slots, claim as many messages in one request, run the handler, settle.

    free slots -> receive -> Run (cancel scope, bounded by the leases) -> Settlement -> free slots

A slot is busy from the claim until the settlement is answered, so no more messages are in process than there are slots.
Draining only cancels the claim, and running handlers go on. Cancelling the loop cancels the handlers and releases their
messages, the attempt uncounted.
"""

import inspect
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.types import Delivery
from forq_trio.worker.handlers import Handler
from forq_trio.worker.jobs import Job, Run
from forq_trio.worker.leases import JobLeases
from forq_trio.worker.outcomes import RELEASE, Discard, Settlement, frames_of, reason_of, text_of
from forq_trio.worker.settle import Settler
from forq_trio.worker.slots import Slots
from forq_trio.worker.source import Source, gives_up_at, patiently

logger = logging.getLogger("forq_trio.worker")

RELEASE_SECONDS = 2.0
"""For how long a cancelled worker tries to release its messages, and to settle those that are done."""

INTERRUPTED = object()
"""The result of a handler that was cancelled because a lease was lost."""

CallNext = Callable[[], Awaitable[object]]
Middleware = Callable[[Job, CallNext], Awaitable[object]]


class QueueStats(Struct):
    """Counts of a queue's messages by outcome, since the worker started. lost: their lease ended too early."""

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

    def count(self, settlement: Settlement) -> None:
        """Count a message that was settled."""
        match settlement:
            case Settlement(what="ack"):
                self.handled += 1
            case Settlement(what="discard"):
                self.discarded += 1
            case Settlement(what="nack", final=True):
                self.dead += 1
            case Settlement(what="nack"):
                self.failed += 1


class QueueLoop:
    """Runs the handler of one queue.

    lease_ms, attempts_max: the queue's. tries_max: how often the handler's retries allow a message. None: no bound.
    """

    def __init__(
        self,
        handler: Handler[..., Any],
        source: Source,
        slots: Slots,
        stats: QueueStats,
        *,
        lease_ms: int,
        attempts_max: int | None,
        tries_max: int | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self.handler = handler
        self.queue = handler.queue
        self.stats = stats
        self.leases = JobLeases(source, handler.queue, lease_ms)
        self._source = source
        self._slots = slots
        self._attempts_max = attempts_max
        self._tries_max = tries_max
        self._middleware = tuple(middleware)
        self._claiming = anyio.CancelScope()
        self._idle = anyio.Event()
        self._ready: deque[list[Job]] = deque()
        self._resting: list[anyio.Event] = []
        self._threads = anyio.CapacityLimiter(slots.most)
        self._thread_scopes: set[anyio.CancelScope] = set()
        stats.slots = slots.most

    def drain(self) -> None:
        """Stop claiming; `run` returns when all running handlers are done."""
        self._claiming.cancel()

    def abandon_threads(self) -> None:
        """Stop waiting for handlers that run in threads."""
        for scope in tuple(self._thread_scopes):
            scope.cancel()

    async def run(self, stop_when_empty: bool, failed: Callable[[ForqError], None]) -> None:
        """Claim and handle until `drain`, or until nothing is claimable and nothing runs.

        failed: called at once with the error of a claim that cannot be repeated; running handlers may finish.
        Cancelled: handlers are cancelled, and their messages released.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.leases.run)
            settler = Settler(self._source, self.queue, tasks)
            try:
                with self._claiming:
                    await self._claim_all(tasks, settler, stop_when_empty=stop_when_empty)
            except ForqError as error:
                failed(error)
            finally:
                await self._until_idle()  # noqa: ASYNC102  cancelled, what runs is cancelled, too
            tasks.cancel_scope.cancel()

    async def _until_idle(self) -> None:
        while self._slots.busy:
            idle = self._idle = anyio.Event()
            await idle.wait()

    async def _claim_all(self, tasks: TaskGroup, settler: Settler, *, stop_when_empty: bool) -> None:
        batch = self.handler.options.batch
        asked = self._slots.worth_asking(full=True)
        while True:
            asked = await self._slots.take(1 if batch else min(asked, limits.RECEIVE_BATCH_MAX))
            runs: list[list[Delivery]] = []
            asked_at = anyio.current_time()
            try:
                found = await self._receive(batch or asked, stop_when_empty=stop_when_empty)
                runs = [found] if batch and found else [[each] for each in found]
            finally:
                for _ in range(asked - len(runs)):
                    self._free_slot()
            for jobs in map(self._jobs, runs):
                self.leases.hold(jobs)
                self._ready.append(jobs)
                if self._resting:
                    self._resting.pop().set()
                else:
                    tasks.start_soon(self._work, settler)
            if stop_when_empty and not runs:
                if self._slots.busy:
                    await self._slots.one_freed()
                elif anyio.current_time() < asked_at + limits.DEFERRED_CLAIM_SECONDS:
                    return  # a claim that took longer may not have seen the whole queue
            asked = self._slots.worth_asking(full=len(runs) == asked)

    async def _receive(self, most: int, *, stop_when_empty: bool) -> list[Delivery]:
        """Claim up to `most` messages."""
        until = gives_up_at(stop_when_empty=stop_when_empty)
        return await patiently(
            self._source,
            lambda: self._source.receive(
                self.queue,
                max_messages=most,
                wait_ms=0 if stop_when_empty else limits.WAIT_MS_MAX,
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
                last_attempt=each.attempts >= self._attempts_of(each),
                shorten=self.leases.shorten,
            )
            for each in deliveries
        ]

    def _attempts_of(self, delivery: Delivery) -> float:
        """How often a message may be tried: the smaller of its own bound (or the queue's) and the handler's."""
        bounds = (
            self._attempts_max if delivery.max_attempts is None else delivery.max_attempts,
            self._tries_max,
        )
        return min((bound for bound in bounds if bound is not None), default=math.inf)

    async def _work(self, settler: Settler) -> None:
        """Process claimed messages, then sleep until there are more: it costs more to start a task than to wake one."""
        while True:
            while self._ready:
                await self._process(self._ready.popleft(), settler)
            wake = anyio.Event()
            self._resting.append(wake)
            try:
                await wake.wait()
            except BaseException:  # cancelled while it was being woken: the claimed messages are released
                while self._ready:
                    await self._process(self._ready.popleft(), settler)  # noqa: ASYNC102  cancelled as well
                raise

    async def _process(self, jobs: list[Job], settler: Settler) -> None:
        """Process the jobs of one slot. No error of a handler leaves this method."""
        self.stats.running += len(jobs)
        settlements = dict.fromkeys(jobs, RELEASE)
        try:
            settlements = await self._handle(jobs)
            await self._settle(settlements, settler)
        except BaseException:
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                await settler.settle_now({job: said for job, said in settlements.items() if not job.lost})
            raise
        finally:
            self.leases.let_go(jobs)
            self.stats.running -= len(jobs)
            self._free_slot()

    def _free_slot(self) -> None:
        self._slots.release(1)
        if self._slots.busy == 0:
            self._idle.set()

    async def _handle(self, jobs: list[Job]) -> dict[Job, Settlement]:
        """Call the handler; returns the settlement of each job whose lease was not lost."""
        settlements: dict[Job, Settlement] = {}
        payloads: list[Any] = []
        readable: list[Job] = []
        for job in jobs:
            try:
                payloads.append(self.handler.payload.decode(job.content))
                readable.append(job)
            except Exception as error:
                settlements[job] = self._misfit(job, error)
        if readable:
            results = await self._call(readable, payloads)
            for job, result in zip(readable, results, strict=True):
                if job.lost:
                    self._note_lost(job)
                else:
                    settlements[job] = self._settlement(result, job)
        return settlements

    def _settlement(self, result: object, job: Job) -> Settlement:
        if result is INTERRUPTED:
            return RELEASE
        return self.handler.settlement(result, job)

    def _misfit(self, job: Job, error: Exception) -> Settlement:
        reason = storable_reason(f"the content does not fit the handler's payload: {text_of(error)}")
        logger.error("%s: message %s is a dead letter: %s", self.queue, job.id, reason)
        return Settlement("nack", reason=reason, final=True)

    async def _call(self, jobs: list[Job], payloads: list[Any]) -> list[object]:
        """Call the handler; returns its result or error for each job. Only the worker's cancellation is raised."""
        timeout = self.handler.options.timeout
        run = Run(jobs, math.inf if timeout is None else timeout)
        result: object = None
        try:
            with run.scope:
                result = await self._through_middleware(run, payloads)
            await anyio.lowlevel.checkpoint_if_cancelled()  # the handler may have swallowed it
        except BaseException as error:  # noqa: ASYNC103  a bad message ends no worker
            if _ends_program(error):
                raise
            await anyio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC102  raises if the worker is cancelled
            result = error
            if isinstance(error, anyio.get_cancelled_exc_class()):  # in asyncio any code may cancel a task
                result = RuntimeError("the handler was cancelled, but not by its worker")
        if run.scope.cancel_called:
            if run.note_lost_leases():
                # This includes the rest of a batch: what the handler has done is not known.
                return [INTERRUPTED] * len(jobs)
            if anyio.current_time() < run.timeout_at:
                result = TimeoutError("the lease was extended too late")
            else:
                result = TimeoutError(f"the handler took longer than {timeout:g} s")
        first = jobs[0]
        if isinstance(result, Discard):
            logger.warning(
                "%s: %s is discarded: %s", self.queue, first.id, storable_reason(result.reason or "")
            )
        elif isinstance(result, BaseException):
            logger.warning(
                "%s: attempt %d of %s failed: %s%s",
                self.queue,
                first.attempt,
                first.id,
                reason_of(result),
                frames_of(result),
            )
        return self.handler.results(result, len(jobs))

    async def _through_middleware(self, run: Run, payloads: list[Any]) -> object:
        if not self._middleware:
            return await self._call_function(run, payloads)
        first = run.jobs[0]

        async def call_next(index: int) -> object:
            if index == len(self._middleware):
                return await self._call_function(run, payloads)
            return await self._middleware[index](first, lambda: call_next(index + 1))

        return await call_next(0)

    async def _call_function(self, run: Run, payloads: list[Any]) -> object:
        handler = self.handler
        given: list[Any] = [payloads, run.jobs] if handler.options.batch else [payloads[0], run.jobs[0]]
        arguments = given if handler.takes_job else given[:1]
        if not handler.in_thread:
            return await handler.function(*arguments)
        for result in await self._call_in_thread(run, arguments):
            return (
                await result if inspect.isawaitable(result) else result
            )  # a plain function around an async one
        return None

    async def _call_in_thread(self, run: Run, arguments: list[Any]) -> list[object]:
        """The result in a list; an empty list if the worker no longer waits for the thread.

        Nothing can stop a thread, so its slot stays busy until it ends: a lost lease only refuses its result.
        """
        run.in_thread = True
        with anyio.CancelScope(shield=True) as scope:
            self._thread_scopes.add(scope)
            try:
                return await anyio.to_thread.run_sync(
                    lambda: [self.handler.function(*arguments)], limiter=self._threads, abandon_on_cancel=True
                )
            finally:
                self._thread_scopes.discard(scope)
        for job in run.jobs:  # their thread goes on: nobody else gets them before the lease ends
            logger.error("%s: %s is left to its thread, until its lease ends", self.queue, job.id)
            job.lease.lost = True
        return []

    def _note_lost(self, job: Job) -> None:
        job.lease.lost = True
        self.stats.lost += 1
        logger.warning(
            "%s: the lease of %s was lost in attempt %d; its result is refused",
            self.queue,
            job.id,
            job.attempt,
        )

    async def _settle(self, settlements: dict[Job, Settlement], settler: Settler) -> None:
        if len(settlements) == 1:
            ((job, settlement),) = settlements.items()
            await self._settle_one(job, settlement, settler)
            return
        async with anyio.create_task_group() as tasks:
            for job, settlement in settlements.items():
                tasks.start_soon(self._settle_one, job, settlement, settler)

    async def _settle_one(self, job: Job, settlement: Settlement, settler: Settler) -> None:
        if await settler.settle(job, settlement):
            self.stats.count(settlement)
        else:
            self._note_lost(job)


def _ends_program(error: BaseException) -> bool:
    """Whether an error does not come from the handler: Ctrl-C, or the garbage collection that ends its task."""
    ends = (KeyboardInterrupt, GeneratorExit)
    return isinstance(error, ends) or (
        isinstance(error, BaseExceptionGroup) and error.subgroup(ends) is not None
    )
