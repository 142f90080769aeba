"""One trial: a few lives of the application on one store, then a last one in which everything is consumed.

In each life two to six random clients use it, connections break, the database refuses some batches, the wall clock is
set, and at some moment the life ends: in order, by a kill, or by a commit that fails. The books are checked at every
commit, whenever a batch was answered, when a life has become quiet, when the store is opened again, and at the end.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio

from forq_trio.broker.broker import Broker
from forq_trio.commit_policy import CommitPolicy
from forq_trio.http.access import Access
from forq_trio.http.forq_api import answer_error, forq_routes
from forq_trio.http.message import Handler
from forq_trio.http.router import HttpRouter
from forq_trio.http.sqs_api import SqsAccount, sqs_routes
from forq_trio.http.throttle import Throttle
from forq_trio.model import limits
from forq_trio.storage.engine import Engine
from forq_trio.store import CommitFailed
from forq_trio.system import System, open_system
from reliability.whole_app.books import Books
from reliability.whole_app.clients import Clients
from reliability.whole_app.engine import NO_FAULTS, Faults, LabEngine
from reliability.whole_app.front import SECRET, Front
from reliability.whole_app.stores import Store
from reliability.whole_app.violations import Clause, Violation
from support.actors import TrioClock, elapse, tell_answers

QUIET_SECONDS = limits.CLOCK_CHECK_SECONDS_MAX + 5
JUMPS_MS = (-3_600_000, -2_000, 500, 40_000, 3_600_000, 90_000_000)
SMALL_BOUNDS = {
    "DUE_BATCH_MAX": 3,
    "PURGE_BATCH_MAX": 2,
    "COMMIT_CALLS_MAX": 2,
    "SWEEP_BATCH_MAX": 2,
    "FAILED_MOVED_MAX": 1,
}
ROUNDS_MAX = 200
SQS_ACCOUNT = SqsAccount("000000000000", "us-east-1")
TRIAL_SECONDS_MAX = 7 * 86_400


class WallClock(TrioClock):
    """Follows trio's clock at a distance that changes when somebody sets it."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


class SeededPolicy(CommitPolicy):
    """Where a commit runs is drawn, instead of measured."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._share = rng.choice((0.0, 0.5, 0.8, 1.0))
        super().__init__()

    @property
    def inline(self) -> bool:
        return self._rng.random() < self._share

    @inline.setter
    def inline(self, _: bool) -> None:
        """Nobody else decides."""


class App:
    """The application in one life."""

    def __init__(self, system: System, front: Front, engine: LabEngine, clients: Clients) -> None:
        self.system = system
        self.front = front
        self.engine = engine
        self.clients = clients

    def allow_sends(self) -> None:
        """As the disk guard does when there is room again."""
        self.system.writer.storage.sends_refused = False


class Trial:
    """wrap_engine, wrap_handler: what to put around them in each life; a test of the checker breaks them there.

    batches: somebody opens message batches, too.
    """

    def __init__(
        self,
        rng: random.Random,
        store: Store,
        wrap_engine: Callable[[Engine], Engine] = lambda engine: engine,
        wrap_handler: Callable[[Handler], Handler] = lambda handler: handler,
        *,
        batches: bool = False,
    ) -> None:
        self.books = Books()
        self._rng = rng
        self._store = store
        self._wrap_engine = wrap_engine
        self._wrap_handler = wrap_handler
        self._batches = batches
        self._clock = WallClock()

    async def run(self) -> Books:
        """Raises what was wrong first: a Violation, or whatever else ended it."""
        self.books.seen["trials"] += 1
        try:
            with trio.fail_after(TRIAL_SECONDS_MAX), self._bounds():
                for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
                    await self._live()
                    self._check_violations()
                await self._consume_all()
        except BaseExceptionGroup as group:
            self._check_violations()
            raise _first_violation(group) or group from None
        finally:
            self._check_violations()
        return self.books

    def _check_violations(self) -> None:
        if self.books.violations:
            raise self.books.violations[0]

    @contextmanager
    def _bounds(self) -> Iterator[None]:
        """In some trials the bounds of a batch are small, so that they play a part."""
        small = SMALL_BOUNDS if self._rng.random() < 0.3 else {}
        normal = {name: getattr(limits, name) for name in small}
        try:
            for name, bound in small.items():
                setattr(limits, name, bound)
            yield
        finally:
            for name, bound in normal.items():
                setattr(limits, name, bound)

    @asynccontextmanager
    async def _app(self, faults: Faults) -> AsyncIterator[App]:
        engine = LabEngine(self._wrap_engine(self._store.open()), self._store, self.books, faults)
        self.books.begin_life(self._store.table())
        self.books.check_counts(engine.snapshot().counts)
        policy = SeededPolicy(self._rng)
        async with open_system(engine, self._clock, reader_pool_size=2, policy=policy) as system:
            tell_answers(engine, system.writer)
            engine.after_answers = lambda: self._check_parked(system, engine.batch_ms, engine.more_at_once)
            access = Access(SECRET, system.broker.keys, Throttle())
            routes = forq_routes(system.broker, access, system.monitor)
            routes += sqs_routes(system.broker, SQS_ACCOUNT, None, answer_error)
            handler = HttpRouter(routes, answer_error)
            front = Front(handler.admit, self._wrap_handler(handler), self._rng, self.books)
            clients = Clients(self._rng, front, self.books, self._clock.now_ms)
            yield App(system, front, engine, clients)
            await front.close(system.writer.drain_receivers, limits.SHUTDOWN_SECONDS_MAX)

    def _check_parked(self, system: System, now_ms: int, more_at_once: bool = False) -> None:
        """now_ms: of the last batch, or of a time when nothing goes on.

        more_at_once: the batch left work for another one that follows at once, after which this is asked again.
        """
        if more_at_once:
            return
        try:
            self.books.check_parked(
                system.writer.parked, lambda queue: self._withholds(system.broker, queue, now_ms)
            )
        except Violation as violation:
            self.books.violations.append(violation)

    def _withholds(self, broker: Broker, queue: str, now_ms: int) -> bool:
        """Whether the queue may deliver nothing: it is paused, or one of its own limits is reached."""
        rules = broker.known.rules(queue)
        bound, rate = rules.in_flight_max, rules.queue_rate
        is_full = bound is not None and broker.known.counts_of(queue).processing >= bound
        lacks_token = rate is not None and rate.turn_ms(1, broker.known.rate_full_at(queue), now_ms) > 0
        return rules.paused or is_full or lacks_token

    def _faults(self) -> Faults:
        """Runs of one or two batches that the database does not take, and perhaps a commit that ends the life."""
        rng = self._rng

        def some() -> frozenset[int]:
            starts = [rng.randrange(1, 60) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
            return frozenset(
                number for start in starts for number in range(start, start + rng.randrange(1, 3))
            )

        failing = rng.randrange(1, 80) if rng.random() < 0.3 else None
        return Faults(some(), some(), some(), failing, durable=rng.random() < 0.5)

    async def _live(self) -> None:
        engine = None
        with trio.CancelScope() as life:
            try:
                async with self._app(self._faults()) as app:
                    engine = app.engine
                    await self._use(app, life)
                    await self._become_quiet(app)
            except* CommitFailed:
                assert engine is not None
                assert engine.failed
                self.books.seen["failed commits"] += 1

    async def _use(self, app: App, life: trio.CancelScope) -> None:
        """Random clients until they are done, or until something ends them."""
        rng, clients = self._rng, app.clients
        app.front.restlessness = rng.choice((0.0, 0.1, 0.4))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clients.set_up)
            for _ in range(rng.randrange(1, 3)):
                nursery.start_soon(clients.produce)
            for _ in range(rng.randrange(1, 4)):
                nursery.start_soon(clients.consume)
            if rng.random() < 0.5:
                nursery.start_soon(clients.administer)
            if rng.random() < 0.2:
                nursery.start_soon(clients.look)
            if self._batches and rng.random() < 0.4:
                nursery.start_soon(clients.batch)
                nursery.start_soon(clients.batch)
            nursery.start_soon(self._disturb, app)
            if rng.random() < 0.5:
                return
            await elapse(rng.choice((0.0005, 0.05, 2, 20)))
            if rng.random() < 0.5:
                app.engine.killed = True
                self.books.seen["kills"] += 1
                life.cancel()
            else:
                nursery.cancel_scope.cancel()

    async def _disturb(self, app: App) -> None:
        """Break connections, make room on the disk, and set the clock."""
        for _ in range(self._rng.randrange(8)):
            await app.clients.pause()
            if self._rng.random() < 0.5:
                app.front.cut_one()
            if self._rng.random() < 0.3:
                app.allow_sends()
            if self._rng.random() < 0.2:
                self._clock.ahead_ms += self._rng.choice(JUMPS_MS)

    async def _become_quiet(self, app: App) -> None:
        """Nobody does anything any more, and the database works: see what is left after a while."""
        app.engine.faults = NO_FAULTS
        app.front.restlessness = 0.0
        app.allow_sends()
        await elapse(QUIET_SECONDS)
        self.books.check_quiet(self._clock.now_ms(), app.system.broker.known.rules)
        self.books.check_counts(app.engine.snapshot().counts)
        self._check_parked(app.system, self._clock.now_ms())

    async def _consume_all(self) -> None:
        """A last life, without faults: everything can be received and acknowledged. Time is not waited for but set."""
        async with self._app(NO_FAULTS) as app:
            for _ in range(ROUNDS_MAX):
                queues = sorted({row.queue for row in self.books.table.values()})
                if await app.clients.consume_all(queues):
                    continue
                if not self.books.table or self.books.violations:
                    break
                due = [row.due_at for row in self.books.table.values() if row.due_at is not None]
                self._clock.ahead_ms += max(min(due, default=0) - self._clock.now_ms(), 0)
                await elapse(QUIET_SECONDS)
            else:
                raise Violation(Clause.HUNG, f"cannot be consumed: {self.books.table}")
            self.books.check_counts(app.engine.snapshot().counts)
            self.books.check_end()


def _first_violation(group: BaseExceptionGroup) -> Violation | None:
    """What a client found out, taken out of the groups of the nurseries."""
    for error in group.exceptions:
        found = _first_violation(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, Violation):
            return found
    return None
