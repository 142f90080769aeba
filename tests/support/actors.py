"""Running actors under a test's control: one clock for waiting and for messages, and an engine one can disturb."""

import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import trio
import trio.testing

from forq_trio.commit_policy import CommitPolicy
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Ping
from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import Batch, BatchResult, Engine, EngineFacts, Snapshot
from forq_trio.storage.reader import Reader
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor, WriterListener

T0 = 1_700_000_000_000


class TrioClock:
    """A wall clock that follows trio's: under a MockClock, messages and waiting live in the same time."""

    def now_ms(self) -> int:
        return T0 + math.floor(trio.current_time() * 1_000 + 1e-3)


async def elapse(seconds: float) -> None:
    """Let simulated time pass. On an autojump clock this ends at the exact moment, without any real wait."""
    with trio.move_on_after(seconds):
        await trio.sleep_forever()


def on_the_loop() -> CommitPolicy:
    """A policy by which every commit runs on the event loop, however slow the disk is: with simulated time, a task that
    waits for a thread looks as if it waited for time to pass."""
    return CommitPolicy(inf, inf)


def in_a_thread() -> CommitPolicy:
    """A policy by which every commit runs in a worker thread."""
    policy = CommitPolicy(-1.0, -1.0)
    policy.inline = False
    return policy


class ObservedEngine:
    """A real engine behind notes of what was asked of it, and faults where a test wants them.

    refusals: how many of the next batches the database refuses. before_commit: called in each commit before the real
    one; what it raises is the commit's failure. after_answers: called by the writer's task in the same step in which it
    resolved the calls of a batch, so before any of their callers runs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.durability = engine.durability
        self.log = engine.log
        self.listen = engine.listen
        self.tables_urls = engine.tables_urls
        self.check_texts = engine.check_texts
        self.clock = engine.clock
        self.batches: list[Batch] = []
        self.commits = 0
        self.closes = 0
        self.refusals = 0
        self.before_commit: Callable[[], None] = lambda: None
        self.after_answers: Callable[[], None] = lambda: None

    def execute_batch(self, batch: Batch) -> BatchResult:
        self.batches.append(batch)
        if self.refusals > 0:
            self.refusals -= 1
            raise StorageUnavailable("disk I/O error")
        return self._engine.execute_batch(batch)

    def commit(self) -> bool:
        self.before_commit()
        changed = self._engine.commit()
        self.commits += changed
        return changed

    def snapshot(self) -> Snapshot:
        return self._engine.snapshot()

    def facts(self) -> EngineFacts:
        return self._engine.facts()

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        return self._engine.copy_to(path, on_step)

    def open_reader(self) -> Reader:
        return self._engine.open_reader()

    def close(self) -> None:
        self.closes += 1
        self._engine.close()


class Observing(WriterListener):
    """Calls `after_answers` of an observed engine when its writer has answered a batch."""

    def __init__(self, engine: ObservedEngine) -> None:
        self._engine = engine

    def committed(self) -> None:
        self._engine.after_answers()


def tell_answers(engine: ObservedEngine, writer: WriterActor) -> None:
    """Call `after_answers` of an observed engine when a writer that has a listener already has answered a batch."""
    listener = writer._listener
    committed = listener.committed

    def tell() -> None:
        engine.after_answers()
        committed()

    listener.committed = tell


class SlowCommit:
    """Stops the next commit, which must run in a worker thread, until the test lets it go on (or fail)."""

    def __init__(self, engine: ObservedEngine) -> None:
        self._engine = engine
        self._reached = trio.Event()
        self._go_on = threading.Event()
        self.failure: Exception | None = None
        engine.before_commit = self._stop

    def _stop(self) -> None:
        self._engine.before_commit = lambda: None
        trio.from_thread.run_sync(self._reached.set)
        assert self._go_on.wait(timeout=120), "the test never let the commit go on"
        if self.failure is not None:
            raise self.failure

    async def reached(self) -> None:
        await self._reached.wait()

    def go_on(self) -> None:
        self._go_on.set()


@asynccontextmanager
async def running_writer(
    engine: Engine,
    *,
    clock: Clock | None = None,
    policy: CommitPolicy | None = None,
    listener: WriterListener | None = None,
    counters: Counters | None = None,
    inbox_calls_max: int = 4_096,
    parked_max: int = 20_000,
) -> AsyncIterator[WriterActor]:
    """A writer around `engine`, past its first batch; stopped in order when the body ends, cancelled when it fails."""
    writer = WriterActor(
        Store(engine, policy or on_the_loop()),
        clock or TrioClock(),
        counters or Counters(),
        listener or (Observing(engine) if isinstance(engine, ObservedEngine) else None),
        inbox_calls_max=inbox_calls_max,
        parked_max=parked_max,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        await writer.execute(Ping())
        if isinstance(engine, ObservedEngine):
            engine.batches.clear()
            engine.commits = 0
        yield writer
        writer.stop()


@asynccontextmanager
async def recorded(engine: Engine, **options: Any) -> AsyncIterator[tuple[WriterActor, Counters]]:
    """A running writer with the counters it feeds. options: those of `running_writer`."""
    counters = Counters()
    async with running_writer(engine, counters=counters, **options) as writer:
        yield writer, counters


async def until(condition: Callable[[], bool]) -> None:
    """Let everybody else run until `condition` holds: for what ends in a worker thread, which nothing else tells."""
    while not condition():
        await trio.testing.wait_all_tasks_blocked()


async def all_idle() -> None:
    """Let everybody go on who can, in worker threads too, until all wait for something from outside."""
    await trio.testing.wait_all_tasks_blocked()
    while trio.testing.active_thread_count():
        await trio.testing.wait_all_threads_completed()
        await trio.testing.wait_all_tasks_blocked()
