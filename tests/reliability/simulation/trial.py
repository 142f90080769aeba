"""One trial: a random story of producers, consumers, faults, cancellations and restarts, in simulated time.

A trial is a few lives of the writer on one store. In each life producers send, consumers receive and settle (or hang,
or try a stale receipt), a monkey cancels whatever is going on, and the database refuses some batches. A life ends in
order, by cancellation, or by a commit that fails, after which the store is opened again. One queue has groups, and an
administrator pauses queues, changes the bound on groups and sends dead letters back. Everything random comes from
the seed, trio's own scheduling included, so a trial can be had again.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

import trio
from trio.testing import MockClock

from forq_trio.broker.broker import Broker
from forq_trio.jobs.compaction import Compaction
from forq_trio.model import limits
from forq_trio.model.errors import OutcomeUnknown, QueueNotFound, ServiceError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import Engine
from forq_trio.store import CommitFailed, Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from reliability.simulation.history import History, RecordedEngine
from support.actors import Observing, TrioClock, elapse
from support.results import oks

QUEUES = ("a", "b", "grouped")
GROUPS = ("x", "y")
TRIAL_SECONDS_MAX = 7 * 86_400
ResultT = TypeVar("ResultT")


class InlineReaders(ReaderPool):
    """Reads in the task that asks: while a thread reads, simulated time would run to the next deadline."""

    @staticmethod
    async def _in_thread(work: Callable[[], ResultT]) -> ResultT:
        await trio.lowlevel.checkpoint()
        return work()


class SimulatedStore(Store):
    """A store whose commits sometimes take simulated time, as if they ran in a thread, while others go on."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        super().__init__(engine)
        self.rng = rng

    async def _commit(self) -> float | None:
        if self.rng.random() < 0.4:
            with trio.CancelScope(shield=True):
                await elapse(self.rng.choice((0, 0.001, 0.02)))
        return self._timed_commit()


class Trial:
    """open_store opens the engine, anew or on what an earlier life left; lives: how often."""

    def __init__(self, seed: int, open_store: Callable[[], Engine]) -> None:
        self.rng = random.Random(seed)
        self.history = History()
        self._open_store = open_store
        self._scopes: list[trio.CancelScope] = []
        self._number = 0

    async def run(self) -> None:
        with trio.fail_after(TRIAL_SECONDS_MAX):
            for _ in range(self.rng.randrange(1, 4)):
                await self._live()
                if self.history.violations:
                    raise self.history.violations[0]
            await self._settle_down()

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[tuple[RecordedEngine, Broker]]:
        engine = RecordedEngine(self._open_store(), self.history)
        clock = TrioClock()
        inbox = self.rng.choice((1, 4, 1_000))
        writer = WriterActor(
            SimulatedStore(engine, self.rng),
            clock,
            Counters(),
            Observing(engine),
            inbox_calls_max=inbox,
            parked_max=self.rng.choice((2, 100)),
        )
        engine.after_answers = lambda: self.history.check_parked(engine, writer)
        readers = InlineReaders(engine.open_reader, 1)
        async with trio.open_nursery() as nursery:
            await nursery.start(writer.run)
            yield engine, Broker(writer, readers, clock, Compaction(writer, clock, engine.facts))
            writer.stop()

    async def _live(self) -> None:
        with trio.CancelScope() as life:
            try:
                async with self._writer() as (engine, broker):
                    self.history.begin_life()
                    async with trio.open_nursery() as nursery:
                        for _ in range(self.rng.randrange(1, 4)):
                            nursery.start_soon(self._produce, broker)
                        for _ in range(self.rng.randrange(1, 5)):
                            nursery.start_soon(self._consume, broker)
                        nursery.start_soon(self._administer, broker)
                        nursery.start_soon(self._disturb, engine)
                        await elapse(self.rng.choice((0.05, 5, 400)))
                        # Otherwise it goes on until everybody has done what it wanted.
                        match self.rng.randrange(4):
                            case 0:
                                nursery.cancel_scope.cancel()
                            case 1:
                                life.cancel()
                    engine.refusals = 0
                    await elapse(2 * limits.STORAGE_RETRY_SECONDS)
                    self.history.check_leases(engine)
            except* CommitFailed:
                pass

    async def _pause(self) -> None:
        seconds = self.rng.choice((0, 0, 0.001, 0.1, 2))
        if seconds:
            await elapse(seconds)
        else:
            await trio.lowlevel.checkpoint()

    async def _disturb(self, engine: RecordedEngine) -> None:
        """Cancel whatever is going on, refuse batches, and now and then fail a commit."""
        for _ in range(self.rng.randrange(30)):
            await self._pause()
            if self._scopes and self.rng.random() < 0.6:
                self.rng.choice(self._scopes).cancel()
            if self.rng.random() < 0.2:
                engine.refusals = self.rng.randrange(1, 3)
        if self.rng.random() < 0.4:
            engine.fail_commit = self.rng.choice(("before", "after"))

    @contextmanager
    def _cancellable(self) -> Iterator[trio.CancelScope]:
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                yield scope
            finally:
                self._scopes.remove(scope)

    async def _produce(self, broker: Broker) -> None:
        for _ in range(self.rng.randrange(1, 15)):
            await self._pause()
            queue = self.rng.choice(QUEUES)
            delayed = self.rng.random() < 0.25
            due_ms = TrioClock().now_ms() + self.rng.choice((1, 50, 3_000)) if delayed else None
            contents = [self._next_content() for _ in range(self.rng.choice((1, 1, 1, 3)))]
            group = self.rng.choice(GROUPS) if queue == "grouped" else None
            self.history.sending(queue, contents, group, delayed=delayed)
            with self._cancellable():
                try:
                    messages = [NewMessage(content, due_ms, group=group) for content in contents]
                    produced = await broker.produce_many(queue, messages)
                except OutcomeUnknown:
                    continue
                except ServiceError:
                    self.history.refused(contents)
                else:
                    self.history.sent(contents, produced)

    async def _administer(self, broker: Broker) -> None:
        for _ in range(self.rng.randrange(8)):
            await self._pause()
            queue = self.rng.choice(QUEUES)
            bound = self.rng.choice((None, 1, 1, 2))
            with self._cancellable(), suppress(ServiceError, QueueNotFound):
                match self.rng.randrange(4):
                    case 0:
                        await broker.pause(queue)
                    case 1:
                        await broker.resume(queue)
                    case 2:
                        await broker.configure("grouped", group_in_flight_max=bound)
                    case 3 if self.history.latest:
                        ids = [message_id for message_id, _, _ in self.history.latest.values()]
                        await broker.redrive("a-dlq", ids[-limits.MOVE_BATCH_MAX :])
        for queue in QUEUES:
            with suppress(ServiceError, QueueNotFound):
                await broker.resume(queue)

    def _next_content(self) -> str:
        self._number += 1
        return str(self._number)

    async def _consume(self, broker: Broker) -> None:
        for _ in range(self.rng.randrange(1, 20)):
            await self._pause()
            queue = self.rng.choice((*QUEUES, *QUEUES, "a-dlq"))
            deliveries: tuple[Delivery, ...] = ()
            with self._cancellable():
                try:
                    deliveries = await broker.receive(
                        queue,
                        max_messages=self.rng.choice((1, 1, 2, 10)),
                        wait_ms=self.rng.choice((0, 10, 5_000)),
                        lease_ms=self.rng.choice((0, 5, 1_000, 100_000)),
                    )
                except ServiceError:
                    continue
            self.history.received(queue, deliveries)
            for delivery in deliveries:
                await self._pause()
                with self._cancellable():
                    await self._settle(broker, queue, delivery)

    async def _settle(self, broker: Broker, queue: str, delivery: Delivery) -> None:
        action = self.rng.choice(
            ("ack", "ack", "nack", "fail", "hang", "extend", "release", "stale", "undeliver")
        )
        if action == "hang":
            return
        if action == "stale":
            stale = self.history.stale_receipt(self.rng)
            if stale is not None:
                with suppress(ServiceError):
                    assert oks(await broker.ack(*stale)) == [False], f"a stale receipt worked: {stale}"
            return
        settled = self.history.settling(queue, delivery)
        receipts = [delivery.receipt]
        if action == "undeliver":
            broker.undeliver(queue, [delivery.receipt])
            return
        try:
            if action == "ack":
                self.history.acking(delivery)
                (result,) = await broker.ack(queue, receipts)
                settled.acked(result.ok)
            elif action == "nack":
                await broker.nack(queue, receipts)
            elif action == "fail":
                await broker.nack(queue, receipts, delay_ms=self.rng.choice((0, 10)))
            elif action == "extend":
                (result,) = await broker.extend(queue, receipts, self.rng.choice((0, 10, 5_000)))
                settled.extended(result.lease_until)
            else:
                await broker.release(queue, receipts, delay_ms=self.rng.choice((0, 10)))
        except OutcomeUnknown:
            pass
        except ServiceError:
            settled.refused()

    async def _settle_down(self) -> None:
        """Open the store once more, and compare what is there with what was promised."""
        async with self._writer() as (engine, broker):
            await broker.healthcheck()
            self.history.check_end(engine)


def run_trial(seed: int, open_store: Callable[[], Engine], kind: type[Trial] = Trial) -> None:
    """Run one trial; raises what it found."""
    scheduler = trio._core._run
    deterministic = scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    state = scheduler._r.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    try:
        trio.run(kind(seed, open_store).run, clock=MockClock(autojump_threshold=0))
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = deterministic
        scheduler._r.setstate(state)
