"""The real actor system on simulated time, with words for making dead letters and finding out where messages are."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from faces.running import real_deadline
from forq_trio.broker.broker import Broker
from forq_trio.model.commands import Redrive
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, MessageInfo
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import System, open_system
from support.actors import T0, ObservedEngine, TrioClock, all_idle, on_the_loop, tell_answers, until
from support.results import oks

QUEUE = "orders"
DEAD = "orders-dlq"
REAL_SECONDS_MAX = 120.0


class Workbench:
    """broker: what is tested. engine: what was asked of it."""

    def __init__(self, system: System, engine: ObservedEngine) -> None:
        self.system = system
        self.broker: Broker = system.broker
        self.engine = engine
        self._refused = 0

    async def advance(self, seconds: float) -> None:
        """Let simulated time pass, and have the writer settle what fell due."""
        trio.lowlevel.current_clock().jump(seconds)
        await self.broker.healthcheck()

    async def fail(
        self,
        *contents: str,
        queue: str = QUEUE,
        dead: str = DEAD,
        reason: str | None = "broken",
        **fields: Any,
    ) -> list[str]:
        """Send messages that fail at their only attempt; returns their ids once they are dead letters."""
        before = self.count(dead)
        messages = [NewMessage(content, max_attempts=1, **fields) for content in contents]
        sent = await self.broker.produce_many(queue, messages)
        while deliveries := await self.broker.receive(queue, max_messages=100, wait_ms=0):
            await self.nack(deliveries, queue, reason)
        await self.all_dead(before + len(contents), dead)
        return [each.id for each in sent]

    async def all_dead(self, count: int, dead: str = DEAD) -> None:
        """Return once so many messages are dead letters."""
        await until(lambda: self.count(dead) == count)

    async def nack(
        self, deliveries: Sequence[Delivery], queue: str = QUEUE, reason: str | None = "broken"
    ) -> None:
        receipts = [delivery.receipt for delivery in deliveries]
        assert all(oks(await self.broker.nack(queue, receipts, delay_ms=0, reason=reason)))

    async def advance_without_looking(self, seconds: float) -> None:
        """Let simulated time pass; for when the database answers nobody."""
        trio.lowlevel.current_clock().jump(seconds)
        await all_idle()

    async def until_refused(self) -> None:
        """Return once the database has refused a redrive that was not counted here yet."""
        await until(lambda: len(self.moves()) > self._refused)
        self._refused = len(self.moves())
        await all_idle()

    def count(self, queue: str) -> int:
        """Messages of a queue, whatever their status."""
        counts = self.broker.known.counts().get(queue)
        return 0 if counts is None else counts.total

    async def all_of(self, queue: str) -> list[MessageInfo]:
        """Every message of a queue, newest first, however many pages that takes."""
        messages: list[MessageInfo] = []
        before: int | None = None
        while True:
            page = await self.broker.lists.search(queue, before_sequence=before, limit=100)
            messages += page.messages
            before = page.next_before
            if before is None:
                return messages

    async def ids(self, queue: str) -> list[str]:
        return [message.id for message in await self.all_of(queue)]

    async def redriven(self, wanted: MessageFilter | None = None, **options: Any) -> RedriveTask:
        """A redrive of all that match, once it has ended."""
        task = await self.broker.redrive_tasks.start(DEAD, wanted, **options)
        return await self.broker.redrive_tasks.wait(task.id)

    def task(self, started: RedriveTask) -> RedriveTask:
        return self.broker.redrive_tasks.get(started.id)

    def moves(self) -> list[tuple[float, int]]:
        """Each redrive that the engine was asked for: at which second, and of how many messages."""
        return [
            ((batch.now_ms - T0) / 1_000, len(command.message_ids))
            for batch in self.engine.batches
            for command in batch.commands
            if isinstance(command, Redrive)
        ]

    async def until_seen(self, started: RedriveTask, seen: Callable[[RedriveTask], bool]) -> None:
        await until(lambda: seen(self.task(started)))


@asynccontextmanager
async def open_workbench(url: str) -> AsyncIterator[Workbench]:
    """A workbench on the database at `url`. Hanging is the failure of a test, in real time."""
    engine = ObservedEngine(open_engine(url, EngineSettings(), "normal"))
    with real_deadline(REAL_SECONDS_MAX):
        async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
            tell_answers(engine, system.writer)
            yield Workbench(system, engine)
