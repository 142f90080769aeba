"""Queues that are bound to tables of applications: what the broker does for one is done on its table. `Broker.bound`.

The table is the truth: whoever else publishes or consumes there sees the same messages. These calls go neither through
the writer nor into a batch: a table that somebody has locked, or dropped, delays nobody but those who use that queue.
Sends and moves that reach the engine all the same (by schedules, publications, redrives) are refused there: QueueBound.

Calls share the budget of the writer's inbox with all others, and waits that of parked receivers.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

import trio
from msgspec.structs import replace

from forq_trio.broker.bound_counts import TableCounts
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.errors import FeatureUnavailable, ForqError, MalformedReceipt, Overloaded, QueueBound
from forq_trio.model.holders import HOLDER
from forq_trio.model.messages import Delivery, MessageInfo, NewMessage, Produced, QueueCounts
from forq_trio.model.where import Wanted
from forq_trio.storage.engine import CONSUMED, PRODUCED, Event
from forq_trio.telemetry.counters import Counters
from forq_trio.wire.consuming import Consuming
from forq_trio.wire.receipts import ReceiptResult, refused
from forq_trio.writer_actor import WriterActor

AnswerT = TypeVar("AnswerT")


class BoundTables(Consuming, Protocol):
    """Tables of applications, as `forq_trio.pgq` has them. Cancelled, a method ends what it does and returns."""

    def bounded(self, attempts_max: int) -> "BoundTables":
        """The same tables with this bound on deliveries."""
        ...

    async def check(self, queue: str) -> None: ...

    def check_message(self, message: NewMessage) -> None: ...

    async def produce_each(
        self, queue: str, messages: Sequence[NewMessage]
    ) -> Sequence[Produced | ForqError]: ...

    async def counts(self, queue: str) -> QueueCounts: ...

    async def peek(self, queue: str, limit: int) -> list[MessageInfo]: ...

    async def message(self, queue: str, message_id: str) -> MessageInfo | None: ...

    def is_receipt(self, text: str) -> bool: ...

    async def listen(self) -> None: ...

    def close(self) -> None: ...


class TableSettlement(NamedTuple):
    """How receipts of a table are settled. event, reason: what is counted for each that was current, "" for nothing."""

    settle: Callable[[Consuming, str, list[str]], Awaitable[list[ReceiptResult]]]
    event: str = ""
    reason: str = ""


class BoundQueues:
    """Which queues are bound, and what is done for them. A job: `run` until cancelled.

    tables: None where the database has no tables of applications, so no queue can be bound.
    """

    name = "tables"

    def __init__(self, writer: WriterActor, tables: BoundTables | None, counters: Counters | None) -> None:
        self._writer = writer
        self._tables = tables
        self._counters = counters
        self.counted = TableCounts(self._bound, self._counts)
        self._calls: Counter[str] = Counter()
        self._undelivered: deque[tuple[str, list[str]]] = deque()
        self._has_work = trio.Event()
        self._is_used = trio.Event()

    @property
    def possible(self) -> bool:
        """Whether the database has tables of applications."""
        return self._tables is not None

    def table_of(self, queue: str) -> str | None:
        """The table to which a queue is bound, as of the last commit; None for one that is not."""
        if self._tables is None:
            return None
        settings = self._writer.snapshot().settings.get(queue)
        return None if settings is None or settings.table is None else settings.table.table

    def _bound(self) -> dict[str, str]:
        found = self._writer.snapshot().settings.items()
        return {queue: settings.table.table for queue, settings in found if settings.table is not None}

    def refuse(self, queue: str, what: str) -> None:
        """Raise QueueBound for a queue that is bound. what: that cannot be done then."""
        table = self.table_of(queue)
        if table is not None:
            raise QueueBound(f"the queue is bound to the table {table!r}: {what} is not possible")

    async def check(self, table: str) -> None:
        """Raise FeatureUnavailable where there are no tables, and what `BoundTables.check` raises."""
        if self._tables is None:
            raise FeatureUnavailable
        with self._share("inbox"):
            await self._opened.check(table)

    def check_message(self, message: NewMessage) -> None:
        """Raise InvalidPayload, or InvalidRequest for options that tables do not have."""
        self._opened.check_message(message)

    async def produce(
        self, queue: str, table: str, messages: Sequence[NewMessage]
    ) -> Sequence[Produced | ForqError]:
        """Send to the table; what it refuses is refused alone, the others are stored, all or none.

        Raises InvalidPayload, InvalidRequest for options that tables do not have.
        """
        results = await self._call(queue, lambda tables: tables.produce_each(table, messages))
        self._count(Event(PRODUCED, queue, sum(isinstance(each, Produced) for each in results)))
        return results

    async def receive(
        self,
        queue: str,
        table: str,
        *,
        max_messages: int,
        wait_ms: int,
        lease_ms: int | None,
        where: Wanted | None,
    ) -> list[Delivery]:
        """Claim rows of the table. Cancelled: gives back what it claimed. The end of the server ends the wait."""
        rules = self._writer.snapshot().rules(queue)
        tables = self._bounded(queue)
        found: list[Delivery] = []
        failure: ForqError | None = None

        async def claim(wait_ms: int) -> None:
            nonlocal failure, found
            try:
                found = await tables.receive(
                    table,
                    max_messages=max_messages,
                    wait_ms=wait_ms,
                    lease_ms=rules.lease_ms if lease_ms is None else lease_ms,
                    where=where,
                )
            except ForqError as error:  # raised below, in no group
                failure = error

        try:
            if not wait_ms or self._writer.watches.closed:
                with self._share("inbox"):
                    await claim(0)
            else:
                with self._share("parked"), self._writer.watches.on(queue):
                    async with trio.open_nursery() as nursery:

                        async def end() -> None:
                            await self._writer.watches.wait_closed()
                            nursery.cancel_scope.cancel()

                        nursery.start_soon(end)
                        await claim(wait_ms)
                        nursery.cancel_scope.cancel()
        except BaseException:
            if found:
                self.undeliver(table, [delivery.receipt for delivery in found])
            raise
        if failure is not None:
            raise failure
        self._count(Event(CONSUMED, queue, len(found)))
        return found

    def undeliver(self, table: str, receipts: list[str]) -> None:
        """Give back what a consumer that has left did not get, the attempt uncounted. Does not wait."""
        self._undelivered.append((table, receipts))
        self._has_work.set()

    def check_receipt(self, text: str) -> None:
        """Raise MalformedReceipt for what is no receipt of a table."""
        if not self._opened.is_receipt(text):
            raise MalformedReceipt

    async def settle(
        self, queue: str, table: str, receipts: Sequence[str], settlement: TableSettlement
    ) -> list[ReceiptResult]:
        """Settle these receipts; one that is malformed is refused alone."""
        known = list(dict.fromkeys(text for text in receipts if self._opened.is_receipt(text)))
        done = (
            await self._call(queue, lambda tables: settlement.settle(tables, table, known)) if known else []
        )
        by_receipt = {result.receipt: result for result in done}
        if settlement.event:
            number = sum(result.ok for result in done)
            self._count(Event(settlement.event, queue, number, settlement.reason))
        return [by_receipt.get(text) or refused(text, MalformedReceipt()) for text in receipts]

    async def counts(self, queue: str, table: str) -> QueueCounts:
        """The messages of the table that are not finished; of a moment ago where counting takes long."""
        return await self.counted.read(queue, table)

    async def peek(self, queue: str, table: str, limit: int) -> list[MessageInfo]:
        """The next messages in the order of claims."""
        found = await self._call(queue, lambda tables: tables.peek(table, limit))
        return [replace(message, queue=queue) for message in found]

    async def message(self, queue: str, table: str, message_id: str) -> MessageInfo | None:
        """A message that is not finished."""
        found = await self._call(queue, lambda tables: tables.message(table, message_id))
        return None if found is None else replace(found, queue=queue)

    async def run(self) -> None:
        """Listen for new messages once a queue is used that is bound, and give back what was not delivered."""
        tables = self._opened
        await self._is_used.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tables.listen)
            while True:
                await self._has_work.wait()
                self._has_work = trio.Event()
                while self._undelivered:
                    table, receipts = self._undelivered.popleft()
                    try:
                        await tables.release(table, receipts)
                    except ForqError:  # their locks end
                        continue

    def close(self) -> None:
        """Close the connections."""
        if self._tables is not None:
            self._tables.close()

    @property
    def _opened(self) -> BoundTables:
        assert self._tables is not None
        self._is_used.set()
        return self._tables

    def _bounded(self, queue: str) -> BoundTables:
        """The tables with the bound on deliveries that the queue has."""
        return self._opened.bounded(self._writer.snapshot().rules(queue).max_attempts)

    async def _call(self, queue: str, call: Callable[[BoundTables], Awaitable[AnswerT]]) -> AnswerT:
        if self._calls[queue] >= limits.BOUND_CALLS_MAX:
            raise Overloaded(f"too many calls wait for the table of {queue}")
        self._calls[queue] += 1
        try:
            with self._share("inbox"):
                return await call(self._bounded(queue))
        finally:
            self._calls[queue] -= 1
            if not self._calls[queue]:
                del self._calls[queue]

    async def _counts(self, queue: str, table: str) -> QueueCounts:
        return await self._call(queue, lambda tables: tables.counts(table))

    @contextmanager
    def _share(self, name: str) -> Iterator[None]:
        """A place among the calls that wait. Raises Overloaded."""
        budget: Budget = self._writer.budgets[name]
        holder = HOLDER.get()
        if not budget.take(holder):
            raise Overloaded
        try:
            yield
        finally:
            budget.change(holder, -1)

    def _count(self, event: Event) -> None:
        if event.count and self._counters is not None:
            self._counters.queues.record([event])
