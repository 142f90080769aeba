"""What `Worker.testing` yields: the application on a queue in memory, with a clock that the test moves."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.errors import ForqError, MessageBatchNotFound
from forq_trio.model.extras import needing
from forq_trio.model.json_text import loads
from forq_trio.model.message_batches.types import AddressedMessage, MessageBatch, NewMessageBatch
from forq_trio.model.messages.types import Delivery, Produced
from forq_trio.worker.handlers import Handler
from forq_trio.worker.loop import QueueLoop, QueueStats
from forq_trio.worker.source import Source

if TYPE_CHECKING:
    from forq_trio.broker.broker import Broker

START_MS = 1_800_000_000_000
STEP_MS_MAX = limits.LEASE_MS_MAX // 2
"""The clock moves in such steps: each extends the leases of handlers that run, which have a bound."""
ENDING_MEMBERS = frozenset({"ack", "nack", "discard", "close_batch"})
"""The calls of a worker after which batches send their messages."""


class WorkerUnderTest(Protocol):
    """The members of a Worker that its test uses."""

    handlers: dict[str, Handler[Any, ..., Any]]
    stats: dict[str, QueueStats]

    @property
    def is_running(self) -> bool: ...

    @property
    def running_loops(self) -> list[QueueLoop]: ...

    async def drain(self) -> int: ...


class MovedClock:
    """A clock that stands still, or goes as another one does, until it is moved."""

    def __init__(self, clock: Clock | None) -> None:
        self.moved_ms = 0
        self._clock = clock

    def now_ms(self) -> int:
        return (START_MS if self._clock is None else self._clock.now_ms()) + self.moved_ms


class WatchedSource:
    """A broker that notes what its worker sends, also by batches, and which queues the worker has found empty."""

    def __init__(self, broker: "Broker") -> None:
        self.broker = broker
        self.sent: dict[str, list[str]] = {}  # contents by queue
        self.received = 0  # how many claims have found messages
        self._waits: dict[
            str, anyio.CancelScope
        ] = {}  # of claims that wait, by queue: a worker has one at a time
        self._changed = anyio.Event()  # set when another claim waits
        # By the id of a batch that has not ended what it has not sent yet, by the field of its message's id.
        self._unsent: dict[str, dict[str, AddressedMessage]] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.broker, name)
        if name == "add_to_batch":
            return self._add
        if name == "open_batch":
            return self._open
        if name in ENDING_MEMBERS:
            return partial(self._end_members, method)
        return partial(self._send, method) if name in ("produce", "offer") else method

    @property
    def as_source(self) -> Source:
        """Itself: the methods that it has not are the broker's."""
        return cast("Source", self)

    async def _send(
        self, method: Callable[..., Awaitable[Any]], queue: str, *given: str, **options: Any
    ) -> Any:
        sent = await method(queue, *given, **options)
        self._note(queue, given[-1])
        return sent

    def _note(self, queue: str, content: str) -> None:
        self.sent.setdefault(queue, []).append(content)

    async def _add(self, batch_id: str, members: Sequence[AddressedMessage]) -> list[Produced | ForqError]:
        results = await self.broker.add_to_batch(batch_id, members)
        for each, result in zip(members, results, strict=True):
            if isinstance(result, Produced):
                self._note(each.queue, each.message.content)
        return results

    async def _open(self, batch: NewMessageBatch, **options: Any) -> MessageBatch:
        opened = await self.broker.open_batch(batch, **options)
        both = {"then_id": batch.then, "on_dead_id": batch.on_dead}
        self._unsent[opened.id] = {name: each for name, each in both.items() if each is not None}
        return opened

    async def _end_members(self, method: Callable[..., Awaitable[Any]], *given: Any, **options: Any) -> Any:
        answer = await method(*given, **options)
        await self.note_what_batches_sent()
        return answer

    async def note_what_batches_sent(self) -> None:
        """Note the messages that batches of the worker have sent meanwhile: the broker sends them itself."""
        for batch_id, unsent in tuple(self._unsent.items()):
            try:
                known = await self.broker.batch(batch_id)
            except MessageBatchNotFound:  # it ended so long ago that it was removed
                self._unsent.pop(batch_id, None)
                continue
            for name in ("on_dead_id", "then_id"):
                if getattr(known, name) is not None and name in unsent:
                    message = unsent.pop(name)
                    self._note(message.queue, message.message.content)
            if known.state == "ended" and (known.outcome != "sent" or "then_id" not in unsent):
                self._unsent.pop(batch_id, None)

    async def receive(
        self, queue: str, *, wait_ms: int = limits.WAIT_MS_MAX, **options: Any
    ) -> list[Delivery]:
        """As the broker does; but a claim that waits looks again when it is told to."""
        found = await self.broker.receive(queue, wait_ms=0, **options)
        try:
            while wait_ms and not found:
                with anyio.CancelScope() as scope:
                    self._waits[queue] = scope
                    self._changed.set()
                    found = await self.broker.receive(queue, wait_ms=wait_ms, **options)
                if not scope.cancelled_caught:
                    break
                found = await self.broker.receive(queue, wait_ms=0, **options)
        finally:
            self._waits.pop(queue, None)
        self.received += bool(found)
        return found

    def look_again(self) -> None:
        """Have all claims that wait look again."""
        while self._waits:
            self._waits.popitem()[1].cancel()

    async def found_empty(self, queue: str) -> None:
        """Wait until a claim has found this queue empty since `look_again`, and waits."""
        while queue not in self._waits:
            self._changed = anyio.Event()
            await self._changed.wait()


class WorkerTest:
    """An application in a test. broker: its queue, for what else a test looks at.

    The clock of the test is that of the queue: delays, back-offs, leases. What a handler itself waits for,
    and its `timeout`, are on the clock of the event loop.
    """

    def __init__(self, app: WorkerUnderTest, source: WatchedSource, clock: MovedClock) -> None:
        self.broker = source.broker
        self._app = app
        self._source = source
        self._clock = clock
        self._counted = self._finished()

    def sent(self, queue: str) -> list[Any]:
        """The payloads that the application has sent to a queue, in their order, as the queue's handler reads them.

        Those that its batches and chains have sent are among them.

        Of a queue without a handler: as JSON, or as text where that is none.
        """
        handler = self._app.handlers.get(queue)
        read = _json_or_text if handler is None else handler.payload.decode
        return [read(content) for content in self._source.sent.get(queue, ())]

    async def drain(self) -> int:
        """Have all messages handled that are due, and those that handlers send meanwhile.

        If the worker runs beside the test, this waits until that has nothing to do. Returns how many messages were
        handled since the drain before.
        """
        if self._app.is_running:
            await self._until_idle()
        else:
            await self._app.drain()
        await self._source.note_what_batches_sent()
        before, self._counted = self._counted, self._finished()
        return self._counted - before

    async def _until_idle(self) -> None:
        for queue in self._app.handlers:
            await self._source.found_empty(queue)  # so that all loops have begun
        loops = self._app.running_loops
        was_idle = False
        while not was_idle:
            received = self._source.received
            was_idle = not any(each.stats.running for each in loops)
            self._source.look_again()
            for loop in loops:
                await self._source.found_empty(loop.queue)
                await loop.until_idle()
            was_idle = was_idle and received == self._source.received

    def _finished(self) -> int:
        return sum(each.finished for each in self._app.stats.values())

    async def advance(self, by: Duration) -> None:
        """Move the clock. A worker that runs gets what is due then. Leases of handlers that run do not end by it."""
        left = ms_of(by)
        if left < 0:
            raise ValueError(f"a clock moves by 0 or more, not {by!r}")
        while left:
            step = min(left, STEP_MS_MAX)
            for loop in self._app.running_loops:
                await self._extend(loop, step)
            self._clock.moved_ms += step
            await self.broker.healthcheck()  # the batch that answers it finds what is due now
            await self._source.note_what_batches_sent()
            left -= step

    async def _extend(self, loop: QueueLoop, step_ms: int) -> None:
        receipts = [*loop.leases.jobs]
        lease_ms = min(loop.leases.lease_ms + step_ms, limits.LEASE_MS_MAX)
        for start in range(0, len(receipts), limits.RECEIPTS_BATCH_MAX):
            part = receipts[start : start + limits.RECEIPTS_BATCH_MAX]
            await self.broker.extend(loop.queue, part, lease_ms)


@asynccontextmanager
async def open_in_memory(clock: Clock | None) -> AsyncIterator[tuple[WatchedSource, MovedClock]]:
    """A broker in memory, and its clock. clock: None for one that stands still until it is moved."""
    with needing("embed", "a test of a worker"):
        from forq_trio.system import open_broker
    moved = MovedClock(clock)
    async with open_broker("memory:", clock=moved) as broker:
        yield WatchedSource(broker), moved


def _json_or_text(content: str) -> Any:
    try:
        return loads(content)
    except ValueError:
        return content
