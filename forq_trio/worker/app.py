"""The worker: handlers by queue, and their loops around one source."""

import importlib.util
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import anyio

from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.durations import exactly, ms_of
from forq_trio.model.errors import CallerError, ForqError, QueueNotFound, WrongKey
from forq_trio.model.messages.types import check_queue_name
from forq_trio.outbox.relay import check_source
from forq_trio.worker.calls import HandlerCalls
from forq_trio.worker.handlers import Handler, WorkerSetupError
from forq_trio.worker.lifespan import Lifespan, check_lifespan
from forq_trio.worker.loop import QueueLoop, QueueStats
from forq_trio.worker.message_batches import BatchOpener, sending_with
from forq_trio.worker.opened import Opened
from forq_trio.worker.opening import Sources, WorkerSource
from forq_trio.worker.outbox import WorkerOutbox
from forq_trio.worker.pools import Pools, refuse_in_process
from forq_trio.worker.presence import Presence
from forq_trio.worker.program_end import raising_at_last
from forq_trio.worker.result_waits import ResultWaits
from forq_trio.worker.retries import AttemptBounds
from forq_trio.worker.router import Router
from forq_trio.worker.send_options import SendOptions, Sent
from forq_trio.worker.sending import Sender
from forq_trio.worker.slots import SharedSlots, Slots
from forq_trio.worker.source import Source, gives_up_at, patiently
from forq_trio.worker.uncaught import tell_in_one_line
from forq_trio.worker.watchdog import watched
from forq_trio.worker.withdrawn import WithdrawnWatch

if TYPE_CHECKING:
    from forq_trio.worker.testing import WorkerTest

logger = logging.getLogger("forq_trio.worker")

DRAIN_SECONDS_DEFAULT = 10.0


class Worker(BatchOpener, Router):
    """An application: functions that run on the messages of queues, and send some (docs/workers.md).

    It is made where a module is imported, and opens nothing there. `open` is for sending alone, `run` and `serve`
    handle messages, `testing` does both on a queue in memory.

    source: a URL (http, https: a server; sqlite, memory, postgresql: a queue inside this process), or a Broker or
    AsyncForqClient that the caller opens and closes; None for the URL in FORQ_URL, else as docs/cli.md says. secret:
    the key for a server; None for FORQ_AUTH_SECRET. name: None for the program's name and the process's number.
    concurrency: how many handlers run at once over all queues, which share these slots by weight while there are not
    enough; None for no such bound. drain_seconds: how long handlers may still run when the worker stops, before they
    are cancelled and their messages released. presence: whether the worker reports to the server, so that the admin UI
    and `workers` show it. outbox: an application's database, whose outbox the worker relays while it runs
    (docs/outbox.md). lifespan: a function below @asynccontextmanager that yields `job.state`; it is entered when the
    source is open, and left when the last handler has ended, with an exception if the worker was cancelled. backend:
    the event loop of `run`; None for trio if it is installed, else asyncio.
    """

    _sender: Sender

    def __init__(
        self,
        source: "str | Source | None" = None,
        *,
        secret: str | None = None,
        name: str | None = None,
        version: str = "",
        concurrency: int | None = None,
        drain_seconds: float = DRAIN_SECONDS_DEFAULT,
        presence: bool = True,
        outbox: str | os.PathLike[str] | None = None,
        lifespan: Lifespan | None = None,
        backend: Literal["trio", "asyncio"] | None = None,
    ) -> None:
        if not isinstance(drain_seconds, (int, float)) or not drain_seconds >= 0:
            raise ValueError(f"drain_seconds: a number of seconds from 0, not {drain_seconds!r}")
        if concurrency is not None and (not isinstance(concurrency, int) or concurrency < 1):
            raise ValueError(f"concurrency: a whole number from 1, not {concurrency!r}")
        if source is not None and not isinstance(source, str):
            check_source(source, "receive")
        check_lifespan(lifespan)
        super().__init__()
        self.version = version
        self.stats: dict[str, QueueStats] = {}  # by queue
        self.relayed = None if outbox is None else WorkerOutbox(outbox)
        self._name = name
        self._presence = presence
        self._lifespan = lifespan
        self._source = WorkerSource(source, secret)
        self._sender = Sender(self._source, self.handlers)
        self._concurrency = concurrency
        self._drain_seconds = drain_seconds
        self._running = False
        self._loops: list[QueueLoop] = []  # while it runs
        self._stopping = anyio.Event()
        self._beside: Any = None  # the context manager that runs it beside a body
        self._backend = backend or ("trio" if _has_trio() else "asyncio")

    @property
    def result_waits(self) -> ResultWaits:
        """For `Handler.result`: waits for the ends of messages."""
        return ResultWaits(self._source)

    @property
    def name(self) -> str:
        """What it is called in the admin UI and in the log."""
        return self._name or f"{Path(sys.argv[0] or 'worker').stem}-{os.getpid()}"

    @staticmethod
    def check_queue(name: str) -> object:
        """Raise a CallerError if `name` cannot be the name of a queue of this source."""
        return check_queue_name(name)

    def attributes(self, function: Callable[[], Mapping[str, str]]) -> Callable[[], Mapping[str, str]]:
        """Add the attributes that `function()` returns to each message that the worker sends.

        Attributes that the caller of `send` or `later` gives have priority, also if a message can have no more.
        """
        self._sender.attributes.append(function)
        return function

    async def send(self, queue: str, payload: Any, **options: Unpack[SendOptions]) -> Sent:
        """Send a payload to a queue; returns once it is durable.

        The payload is written as the queue's handler reads it, or by its own type if this worker has no handler for the
        queue. delay: until it is due, a timedelta, a text such as "5 min", or seconds. key: the message replaces the
        pending one of that key. The other options are those of `produce`, and with a key those of `offer`; durations
        have no `_ms` in their names: `ttl`, `deduplication_window`, `max_wait`.

        Raises RuntimeError if the worker is not open (`async with`, or inside a handler), or only in another event
        loop, TypeError or a validation error for a payload that the handler would not take, TypeError and ValueError
        for what is no duration, and what `produce` and `offer` raise.
        """
        return await self._sender.send(queue, payload, options)

    def send_blocking(self, queue: str, payload: Any, **options: Unpack[SendOptions]) -> Sent:
        """Send a payload to a queue, as `send`, from a thread: in a handler that is a plain `def`, a view, a script.

        Where the worker is open in this process the message goes that way. Elsewhere the first call opens a client, or
        the database, which stays open until the worker is opened or the process ends; a process that was forked
        meanwhile opens its own. Raises RuntimeError in an event loop, which it would block.
        """
        return self._sender.send_blocking(queue, payload, options)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Open source and lifespan while the body runs, to send. Only `serve` and `drain` inside of it receive.

        Raises RuntimeError if the worker is open, WorkerSetupError if its lifespan fails, and what `serve` raises for
        the source.
        """
        async with self._source.open(self._open_source(), self._lifespan):
            yield self

    @asynccontextmanager
    async def testing(
        self, *, clock: Clock | None = None, lifespan: Lifespan | None = None
    ) -> AsyncIterator["WorkerTest"]:
        """Open the application on an empty queue in memory, for a test, with a clock that the test moves.

        Nothing is handled by itself: `drain` of what it yields does that; `async with app` and `serve` run the worker
        on this queue. Handlers in processes run in such, which start when a message needs one and stay until the end;
        what they themselves send goes to the worker's own source.
        clock: None for one that only the test moves. lifespan: in place of the worker's own.
        """
        from forq_trio.worker.testing import WorkerTest, open_in_memory

        async with open_in_memory(clock) as (source, moved):
            both = nullcontext((source.as_source, source.as_source))
            async with self._source.open(both, lifespan or self._lifespan) as opened:
                with closing(Pools(lazy=True)) as opened.pools:
                    yield WorkerTest(self, source, moved)

    def run(
        self, *, stop_when_empty: bool = False, first: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """Run until SIGTERM or SIGINT. Blocks.

        The first signal drains: the worker claims no more, and running handlers have `drain_seconds` to finish. A
        second signal cancels them at once. stop_when_empty: return as soon as nothing is claimable. first: called
        before the first claim, with the source open, once that answers. Raises WorkerSetupError without a handler, and
        what `serve` raises; a program that does not catch such an error ends with one line on stderr.

        A KeyboardInterrupt or GeneratorExit of a handler gives its message back, drains, and is raised.
        """
        self._check()
        try:
            anyio.run(self._run, stop_when_empty, first, backend=self._backend)
        except ForqError as error:
            tell_in_one_line(error)
            raise

    @raising_at_last
    async def serve(self, *, stop_when_empty: bool = False) -> None:
        """Run until `stop` is called, in a program on trio or asyncio.

        Raises the ForqError of a queue that cannot be read: Forbidden, WrongKey, InvalidQueueName; Stopping if an
        embedded broker has stopped. Cancelled, it cancels the handlers and releases their messages, the attempt
        uncounted.
        """
        self._check()
        async with self._open_for_run() as opened:
            await self._serve(opened, stop_when_empty)

    def stop(self) -> None:
        """Begin to drain. To be called from the event loop's thread."""
        self._stopping.set()
        for loop in self._loops:
            loop.drain()

    @raising_at_last
    async def drain(self) -> int:
        """Handle all messages that are claimable now, and those that handlers send meanwhile; returns how many.

        Made for tests. Delayed messages stay, also those that were nacked with a delay. Raises RuntimeError while the
        worker runs.
        """
        self._check()
        async with self._open_for_run() as opened:
            before = self._finished()
            await self._serve(opened, True)
            return self._finished() - before

    @property
    def is_running(self) -> bool:
        """Whether it receives messages, and nobody has stopped it."""
        return self._running and not self._stopping.is_set()

    @property
    def running_loops(self) -> list[QueueLoop]:
        """The loops of the queues, while the worker runs."""
        return self._loops

    async def __aenter__(self) -> Self:
        """Run the worker beside the body; leaving the body drains it."""
        self._check()
        self._beside = self._running_beside()
        await self._beside.__aenter__()
        return self

    @raising_at_last
    async def __aexit__(self, *raised: Any) -> None:
        await self._beside.__aexit__(*raised)  # noqa: ASYNC102  its drain has a bound of its own

    @asynccontextmanager
    async def _running_beside(self) -> AsyncIterator[None]:
        failure: BaseException | None = None
        async with self._open_for_run() as opened:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._serve, opened, False)
                    try:
                        yield
                    except Exception as error:
                        failure = error
                    self.stop()
            except BaseExceptionGroup as group:
                if failure is None and len(group.exceptions) == 1:
                    failure = group.exceptions[0]
                elif failure is None:
                    raise
        if failure is not None:
            raise failure

    @raising_at_last
    async def _run(self, stop_when_empty: bool, first: Callable[[], Awaitable[object]] | None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._obey_signals, tasks.cancel_scope)
            failure: Exception | None = None
            try:
                async with self._open_for_run() as opened:
                    if first is not None and await self._is_answered(opened, stop_when_empty):
                        await first()
                    await self._serve(opened, stop_when_empty)
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _obey_signals(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for each in signals:
                if self._stopping.is_set():
                    logger.warning("%s again: handlers are cancelled", each.name)
                    scope.cancel()
                else:
                    self._tell_of_drain(each)
                    self.stop()

    def _tell_of_drain(self, number: signal.Signals) -> None:
        running = sum(loop.stats.running for loop in self._loops)
        if not running:
            logger.info("%s: no more claims", number.name)
            return
        logger.warning(
            "waiting for %s in process, for at most %g s; %s again ends %s now",
            "1 message" if running == 1 else f"{running:,} messages",
            self._drain_seconds,
            "Ctrl-C" if number == signal.SIGINT else number.name,
            "it" if running == 1 else "them",
        )

    @asynccontextmanager
    async def _open_for_run(self) -> AsyncIterator[Opened]:
        """What is open, or is opened for one run. A `stop` ends this run even if it was called before the run began."""
        if self._running:
            raise RuntimeError("the worker runs already")
        self._running = True
        stopped, self._stopping = self._stopping.is_set(), anyio.Event()  # an event belongs to one event loop
        if stopped:
            self._stopping.set()
        try:
            if (opened := self._source.opened) is not None:
                opened.check_event_loop("run it there, with `serve`")
                yield opened
            else:
                async with self._source.open(self._open_source(), self._lifespan) as opened:
                    yield opened
        finally:
            self._running = False
            self._stopping = anyio.Event()

    def _open_source(self) -> Sources:
        return self._source.sources()

    def _sends(self) -> Self:
        return self

    async def _serve(self, opened: Opened, stop_when_empty: bool) -> None:
        """Relay the outbox and run the loops."""
        pools = opened.pools or Pools(lazy=stop_when_empty)
        with sending_with(self._sender), nullcontext() if opened.pools else closing(pools):
            await self._relay_and_run(opened, pools, stop_when_empty)

    async def _relay_and_run(self, opened: Opened, pools: Pools, stop_when_empty: bool) -> None:
        """With `stop_when_empty` until all queues are found empty."""
        relay = None if self.relayed is None else self.relayed.relay(opened.asking)
        if not stop_when_empty:
            async with relay or nullcontext():
                await self._run_loops(opened, pools, stop_when_empty=False)
            if not self._stopping.is_set():
                raise RuntimeError("the loops of the worker have ended, and nobody stopped it")
            return
        finished = -1
        while finished != (finished := self._finished()) and not self._stopping.is_set():
            if relay is not None:
                await relay.relay_all()
            await self._run_loops(opened, pools, stop_when_empty=True)

    async def _run_loops(self, opened: Opened, pools: Pools, *, stop_when_empty: bool) -> None:
        shared = None if self._concurrency is None else SharedSlots(self._concurrency)
        until = gives_up_at(stop_when_empty=stop_when_empty)
        self._loops = await self._make_loops(opened, pools, shared, until)
        if not self._loops:
            return
        failures: list[Exception] = []

        def failed(error: Exception) -> None:
            failures.append(error)
            self.stop()

        async def run(loop: QueueLoop) -> None:
            await loop.run(stop_when_empty, failed)
            running.remove(loop)
            if not running:
                tasks.cancel_scope.cancel()

        running = [*self._loops]
        try:
            if self._stopping.is_set():
                self.stop()
            # One group for all: in asyncio the end of a task that serves cancels only its innermost one.
            async with watched(self.name, enabled=not stop_when_empty), anyio.create_task_group() as tasks:
                tasks.start_soon(self._bound_drain, tasks.cancel_scope)
                if self._presence and not stop_when_empty:
                    presence = Presence(self.name, socket.gethostname(), self.version)
                    tasks.start_soon(presence.run, opened.asking, self._loops)
                if not stop_when_empty:
                    tasks.start_soon(WithdrawnWatch(self._loops).run, opened.asking)
                for loop in self._loops:
                    tasks.start_soon(run, loop)
        finally:
            self._loops = []
        if failures:
            raise failures[0]

    async def _make_loops(
        self, opened: Opened, pools: Pools, shared: SharedSlots | None, until: float
    ) -> list[QueueLoop]:
        """A loop for each queue; none if the worker is told to stop before the rules of all queues are known."""
        loops: list[QueueLoop] = []
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_at_stop, tasks.cancel_scope)
            try:
                for handler in self.handlers.values():
                    calls = HandlerCalls(handler, [*chain(*handler.around)], opened.state, pools.of(handler))
                    loops.append(await self._loop(handler, opened.asking, calls, shared, until))
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return loops if len(loops) == len(self.handlers) else []

    async def _is_answered(self, opened: Opened, stop_when_empty: bool) -> bool:
        """Wait until the source answers; False if the worker is told to stop before."""
        until = gives_up_at(stop_when_empty=stop_when_empty)
        return bool(await self._make_loops(opened, Pools(lazy=True), None, until))

    async def _cancel_at_stop(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _bound_drain(self, scope: anyio.CancelScope) -> None:
        try:
            await self._stopping.wait()
            await anyio.sleep(self._drain_seconds)
            logger.warning("handlers still run after %g s: they are cancelled", self._drain_seconds)
        finally:  # the worker may be cancelled from outside, and threads do not see that
            for loop in self._loops:
                loop.abandon_threads()
        scope.cancel()

    async def _loop(
        self,
        handler: Handler[Any, ..., Any],
        source: Source,
        calls: HandlerCalls,
        shared: SharedSlots | None,
        until: float,
    ) -> QueueLoop:
        lease_ms, bounds = await self._rules(handler, source, until)
        options = handler.options
        handler.check_source(source)
        return QueueLoop(
            handler,
            source,
            Slots(options.concurrency, shared, options.weight),
            self.stats.setdefault(handler.queue, QueueStats()),
            calls,
            lease_ms=lease_ms if options.lease is None else ms_of(options.lease),
            bounds=bounds,
        )

    async def _rules(
        self, handler: Handler[Any, ..., Any], source: Source, until: float
    ) -> tuple[int, AttemptBounds]:
        """The queue's lease and its bounds on attempts; defaults if it is not there yet, or may not be read."""
        try:
            configuration = await patiently(
                source,
                lambda: source.settings(handler.queue),
                f"{handler.queue}: its settings could not be read",
                until=lambda: until,
            )
        except ForqError as error:
            # A key that is wrong once is always wrong, and a few more tries would lock the address out.
            if isinstance(error, WrongKey) or not (isinstance(error, CallerError) or self._stopping.is_set()):
                raise
            new = isinstance(error, QueueNotFound)
            return limits.LEASE_MS_DEFAULT, AttemptBounds(
                handler.retries, limits.ATTEMPTS_MAX_DEFAULT if new else None
            )
        rules, table = configuration.effective, configuration.settings.table
        handler.check_table(table)
        fixed = table is not None
        if not fixed and handler.retries.outlast(rules.ttl_ms):
            lives = exactly(rules.ttl_ms)
            logger.warning("%s: `retry` goes on longer than messages live (%s)", handler.queue, lives)
        return rules.lease_ms, AttemptBounds(handler.retries, rules.max_attempts, fixed=fixed)

    def _check(self) -> None:
        if not self.handlers:
            raise WorkerSetupError("the worker has no handler: write one with @app.on")
        if self._concurrency is not None and self._concurrency < len(self.handlers):
            raise WorkerSetupError(
                f"concurrency: {self._concurrency} is less than the {len(self.handlers)} queues of the worker"
            )
        refuse_in_process(self.handlers.values())

    def _finished(self) -> int:
        return sum(each.finished for each in self.stats.values())


def _has_trio() -> bool:
    return importlib.util.find_spec("trio") is not None
