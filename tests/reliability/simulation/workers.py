"""One trial of workers: several at once, whose way to the queue is cut, who are stopped and killed.

The writer has the lives that it has in other trials, too.

Handlers return, raise, take long, hang, end their lease early, clean up slowly and swallow their cancellation. In the
end a worker without trouble handles what is left, and everything that was sent was handled or is a dead letter.
"""

from collections.abc import Callable
from contextlib import suppress

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.errors import ForqUnreachable, OutcomeUnknown, QueueNotFound, ServiceError
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.engine import Engine
from forq_trio.store import CommitFailed
from forq_trio.worker import Backoff, DeadLetter, Job, LeaseLost, Retry, Worker
from reliability.simulation.trial import QUEUES, TRIAL_SECONDS_MAX, Trial
from reliability.simulation.worker_books import Attempt, Books
from support.actors import elapse

CLEAN_UP_SECONDS = 0.5
ROUNDS_MAX = 200


class Link:
    """A worker's way to the broker. cut: calls fail. loses: answers are lost. dead: its process is gone."""

    def __init__(self, trial: "WorkerTrial", worker: int, broker: Broker) -> None:
        self.cut = self.loses = self.dead = False
        self._trial = trial
        self._worker = worker
        self._broker = broker
        self._unknown: set[str] = set()
        self._ending: set[str] = set()
        """Receipts that were given back: an extension before that, whose answer comes later, holds nothing."""
        self.settings = broker.settings

    async def receive(self, queue: str, *, max_messages: int, **options) -> list[Delivery]:
        await self._there()
        self._trial.books.asked(self._worker, queue, max_messages)
        found = await self._broker.receive(queue, max_messages=max_messages, **options)
        self._trial.history.received(queue, found)
        self._trial.deliveries.update((each.receipt, each) for each in found)
        await self._back()
        return found

    async def ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        return await self._settle("ack", queue, receipts)

    async def nack(self, queue: str, receipts: list[str], **options) -> list[ReceiptResult]:
        return await self._settle("nack", queue, receipts, **options)

    async def release(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        return await self._settle("release", queue, receipts)

    async def extend(self, queue: str, receipts: list[str], lease_ms: int) -> list[ReceiptResult]:
        return await self._settle("extend", queue, receipts, lease_ms=lease_ms)

    async def _settle(self, what: str, queue: str, receipts: list[str], **options) -> list[ReceiptResult]:
        await self._there()
        trial = self._trial
        deliveries = [trial.deliveries[receipt] for receipt in receipts]
        noted = [trial.history.settling(queue, each) for each in deliveries]
        if what != "extend":
            self._ending.update(receipts)
        if what == "ack":
            for each in deliveries:
                trial.history.acking(each)
        try:
            results: list[ReceiptResult] = await getattr(self._broker, what)(queue, receipts, **options)
        except (OutcomeUnknown, trio.Cancelled):
            self._unknown.update(receipts)
            raise
        except ServiceError:
            for settled, receipt in zip(noted, receipts, strict=True):
                if (
                    receipt not in self._unknown
                ):  # asked again, it is refused, and may have been carried out before
                    settled.refused()
            raise
        for settled, result in zip(noted, results, strict=True):
            if what == "ack":
                settled.acked(result.ok)
            if what == "extend":
                if result.receipt not in self._ending:
                    settled.extended(result.lease_until)
            elif result.ok:
                trial.books.settled(what, result.receipt)
        await self._back()
        return results

    async def _there(self) -> None:
        if self.dead:
            await trio.sleep_forever()
        if self.cut:
            await elapse(self._trial.rng.choice((0, 0.01, 1)))
            raise ForqUnreachable("cut", sent=False)

    async def _back(self) -> None:
        if self.dead:
            await trio.sleep_forever()
        if self.loses and self._trial.rng.random() < 0.5:
            raise ForqUnreachable("lost", sent=True)


RETRIES = (
    None,
    [0, 1],
    [0] * 7,
    {OSError: [0.1, 5], ValueError: None},
    Backoff(first=0.1, most=5, jitter=1, attempts=8),
    lambda attempt, error: "100 ms" if attempt < 9 else None,
)


class WorkerTrial(Trial):
    """books: what the handlers did. deliveries: by receipt."""

    def __init__(self, seed: int, open_store: Callable[[], Engine]) -> None:
        super().__init__(seed, open_store)
        self.books = Books()
        self.deliveries: dict[str, Delivery] = {}
        self.workers = 0

    async def run(self) -> None:
        with trio.fail_after(TRIAL_SECONDS_MAX):
            for _ in range(self.rng.randrange(1, 4)):
                await self._live()
                if self.history.violations:
                    raise self.history.violations[0]
            async with self._writer() as (engine, broker):
                await self._finish(broker)
                self.books.check_end()
                self.history.check_end(engine)

    async def _live(self) -> None:
        with trio.CancelScope() as life:
            try:
                async with self._writer() as (engine, broker):
                    self.history.begin_life()
                    async with trio.open_nursery() as nursery:
                        for _ in range(self.rng.randrange(1, 4)):
                            nursery.start_soon(self._produce, broker)
                            nursery.start_soon(self._employ, broker)
                        nursery.start_soon(self._administer, broker)
                        nursery.start_soon(self._disturb, engine)
                        await elapse(self.rng.choice((0.05, 5, 100)))
                        match self.rng.randrange(4):
                            case 0:
                                nursery.cancel_scope.cancel()
                            case 1:
                                life.cancel()
                    engine.refusals = 0
            except* CommitFailed:
                pass

    async def _employ(self, broker: Broker) -> None:
        """A worker, from its start to its end: it stops, is killed, or ends with the queue."""
        self.workers += 1
        link = Link(self, self.workers, broker)
        app = self._worker(link, self.workers)
        with trio.CancelScope() as process:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._trouble, link, app, process)
                with suppress(ServiceError):
                    await app.serve(stop_when_empty=self.rng.random() < 0.2)
                nursery.cancel_scope.cancel()

    async def _trouble(self, link: Link, app: Worker, process: trio.CancelScope) -> None:
        for _ in range(self.rng.randrange(4)):
            await elapse(self.rng.choice((0.1, 2, 15)))
            link.cut, link.loses = self.rng.choice(((True, False), (False, True), (True, True)))
            await elapse(self.rng.choice((0.1, 2, 40)))
            link.cut = link.loses = False
        await elapse(self.rng.choice((0.1, 2, 15)))
        if self.rng.random() < 0.5:
            link.dead = True
            process.cancel()
        else:
            app.stop()

    def _worker(self, link: Link, number: int) -> Worker:
        rng = self.rng
        most = rng.choice((None, 3, 5))
        app = Worker(link, concurrency=most, drain_seconds=rng.choice((0, 2, 30)), presence=False)
        self.books.bounds[number, ""] = 1_000 if most is None else most
        for queue in QUEUES:
            concurrency = rng.choice((1, 2, 10))
            self.books.bounds[number, queue] = concurrency
            app.on(
                queue,
                concurrency=concurrency,
                retry=rng.choice(RETRIES),
                lease=rng.choice((1, 5, 30)),
                timeout=rng.choice((None, 20)),
                weight=rng.choice((1, 3)),
            )(self._handler(link, number, queue))
        return app

    def _handler(self, link: Link, worker: int, queue: str):
        async def handle(content: str, job: Job) -> object:
            attempt = self.books.begin(worker, queue, job)
            try:
                return await self._work(attempt)
            except trio.Cancelled:
                self.books.stopped(attempt, "cancelled")
                if link.dead or self.rng.random() < 0.5:
                    raise
                if self.rng.random() < 0.5:
                    return None
                with trio.CancelScope(shield=True):
                    await elapse(CLEAN_UP_SECONDS)
                raise
            except Exception:
                self.books.stopped(attempt, "raised")
                raise
            finally:
                if attempt.result == "runs":
                    self.books.stopped(attempt, "returned")
                self.books.ended(attempt)

        return handle

    async def _work(self, attempt: Attempt) -> object:
        rng, job = self.rng, attempt.job
        match rng.randrange(12):
            case 0:
                raise rng.choice((OSError("no"), ValueError("no"), Retry(2), DeadLetter("no")))
            case 1:
                await elapse(rng.choice((8, 70)))
            case 2 if attempt.worker <= self.workers - 1:
                await trio.sleep_forever()
            case 3:
                with suppress(ValueError, LeaseLost, ServiceError, ForqUnreachable):
                    await job.set_deadline(rng.choice((0, 0.5)))
                await elapse(2)
            case 4 | 5:
                await elapse(rng.choice((0.01, 0.9)))
            case _:
                await trio.lowlevel.checkpoint()
        return None

    async def _finish(self, broker: Broker) -> None:
        """Handle all that is left. What is dead stays."""
        for queue in QUEUES:
            with suppress(QueueNotFound):
                await broker.resume(queue)
        self.workers += 1
        number = self.workers
        app = Worker(Link(self, number, broker), presence=False)
        self.books.bounds[number, ""] = 1_000
        for queue in QUEUES:
            self.books.bounds[number, queue] = 10
            app.on(queue)(self._plain(number, queue))
        for _ in range(ROUNDS_MAX):
            await app.drain()
            if not any([await self._left(broker, queue) for queue in QUEUES]):
                return
            await elapse(20)
        raise AssertionError("messages are left that nobody gets")

    async def _left(self, broker: Broker, queue: str) -> int:
        try:
            return (await broker.queue_stats(queue)).total
        except QueueNotFound:
            return 0

    def _plain(self, worker: int, queue: str):
        async def handle(content: str, job: Job) -> None:
            attempt = self.books.begin(worker, queue, job)
            self.books.stopped(attempt, "returned")
            self.books.ended(attempt)

        return handle
