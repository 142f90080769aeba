"""Queues that are bound to tables of applications: the broker executes their commands on the table.

The table is the only place of the messages: everybody else who publishes or consumes there sees the same ones. A bound
queue takes the same commands as other queues, but they go neither through the writer nor into a batch. So a table that
somebody has locked or dropped delays only those who use that queue. Commands that tables do not support are refused
(bound_commands.py). Sends and moves that reach the engine in another way (by schedules, publications, redrives) are
refused there with QueueBound.

Calls share the budget of the writer's inbox with all others, and waits share that of parked receivers.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

import trio
from msgspec.structs import replace

from forq_trio.broker.bound_commands import (
    SETTLEMENTS,
    TableReceipt,
    TableSettlement,
    not_possible,
    refusal_of,
    table_outcome,
)
from forq_trio.broker.bound_counts import TableCounts
from forq_trio.broker.parts import ItemT
from forq_trio.in_place import require_task
from forq_trio.model import commands, limits
from forq_trio.model.commands import Command, OutcomeT
from forq_trio.model.consumers.consuming import Consuming
from forq_trio.model.errors import ForqError, MalformedReceipt, Overloaded, QueueNotBound
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced, QueueCounts, Receipt
from forq_trio.model.messages.where import json_of
from forq_trio.storage.engine import CONSUMED, PRODUCED, Event
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor

AnswerT = TypeVar("AnswerT")


class BoundTables(Consuming, Protocol):
    """Tables of applications, as in `forq_trio.pgq`. A cancelled method finishes what it is doing and returns."""

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


class BoundQueues:
    """Which queues are bound, and their backend: `backends.QueueBackend`. A job: `run` until cancelled."""

    name = "tables"

    def __init__(self, writer: WriterActor, tables: BoundTables, counters: Counters) -> None:
        self._writer = writer
        self._tables = tables
        self._counters = counters
        self.counted = TableCounts(self._bound, self._counts)
        self._calls: Counter[str] = Counter()
        self._undelivered: deque[tuple[str, list[str]]] = deque()
        self._has_work = trio.Event()
        self._is_used = trio.Event()

    def table_of(self, queue: str) -> str | None:
        """The table to which a queue is bound, as of the last commit; None if it is not bound."""
        settings = self._writer.snapshot().settings.get(queue)
        return None if settings is None or settings.table is None else settings.table.table

    def _table(self, queue: str) -> str:
        """`table_of` for a queue that was bound a moment ago. Raises if it is not any more."""
        table = self.table_of(queue)
        if table is None:
            raise QueueNotBound
        return table

    def _bound(self) -> dict[str, str]:
        found = self._writer.snapshot().settings.items()
        return {queue: settings.table.table for queue, settings in found if settings.table is not None}

    async def check(self, table: str) -> None:
        """Check that a queue can be bound to this table. Raises the errors of `BoundTables.check`."""
        with self._writer.budgets["inbox"].one_used():
            await self._opened.check(table)

    # Commands

    async def execute(self, command: Command[OutcomeT]) -> OutcomeT:
        """Execute a command on the table. Raises QueueBound for a command that tables do not support."""
        return cast("OutcomeT", await self._execute(command))

    async def _execute(self, command: Any) -> Any:
        match command:
            case commands.Produce():
                (produced,) = await self._produce(command.queue, [command.message])
                if isinstance(produced, ForqError):
                    raise produced
                return produced
            case commands.ProduceMany():
                return tuple(await self._produce(command.queue, command.messages))
            case commands.Claim() if not command.shuffle and command.redrive_policy is None:
                return tuple(await self._receive(command))
        settlement = SETTLEMENTS.get(type(command))
        if settlement is None:
            raise refusal_of(command, self._table(command.queue))
        return await self._settle(command, settlement)

    async def execute_in_parts(
        self, items: Sequence[ItemT], command_of: Callable[[tuple[ItemT, ...]], Command[tuple[OutcomeT, ...]]]
    ) -> tuple[OutcomeT, ...]:
        """See `QueueBackend`. One command is enough, because one statement settles all items."""
        return await self.execute(command_of(tuple(items))) if items else ()

    def post(self, command: Command[Any]) -> None:
        """Release messages that did not reach their consumer before it left, the attempt uncounted. Does not wait."""
        assert isinstance(command, commands.Release)
        self._undeliver(self._table(command.queue), [str(receipt) for receipt in command.receipts])

    def parse_receipt(self, text: str) -> Receipt:
        """Read a receipt. Raises MalformedReceipt if it is not one of a table."""
        if not self._opened.is_receipt(text):
            raise MalformedReceipt
        return TableReceipt.of(text)

    def check_message(self, message: NewMessage) -> None:
        """Raise InvalidPayload, or InvalidRequest for options that tables do not support."""
        self._opened.check_message(message)

    async def _produce(self, queue: str, messages: Sequence[NewMessage]) -> Sequence[Produced | ForqError]:
        """Send messages to the table. Refused ones get their error as result; the others are stored, all or none.

        Raises InvalidPayload, and InvalidRequest for options that tables do not support.
        """
        table = self._table(queue)
        results = await self._call(queue, lambda tables: tables.produce_each(table, messages))
        self._count(Event(PRODUCED, queue, sum(isinstance(each, Produced) for each in results)))
        return results

    async def _receive(self, command: commands.Claim) -> list[Delivery]:
        """Claim rows of the table. Cancelled, it releases what it claimed. The wait ends when the server stops."""
        require_task()
        queue, wait_ms, table = command.queue, command.wait_ms, self._table(command.queue)
        rules = self._writer.snapshot().rules(queue)
        tables = self._bounded(queue)
        found: list[Delivery] = []
        failure: ForqError | None = None

        async def claim(wait_ms: int) -> None:
            nonlocal failure, found
            try:
                found = await tables.receive(
                    table,
                    max_messages=command.max_messages,
                    wait_ms=wait_ms,
                    lease_ms=rules.lease_ms if command.lease_ms is None else command.lease_ms,
                    where=json_of(command.where),
                )
            except ForqError as error:  # raised below, outside of the nursery's group
                failure = error

        try:
            if not wait_ms or self._writer.announced.ready.closed:
                with self._writer.budgets["inbox"].one_used():
                    await claim(0)
            else:
                with self._writer.budgets["parked"].one_used(), self._writer.announced.ready.on(queue):
                    async with trio.open_nursery() as nursery:

                        async def end() -> None:
                            await self._writer.announced.ready.wait_closed()
                            nursery.cancel_scope.cancel()

                        nursery.start_soon(end)
                        await claim(wait_ms)
                        nursery.cancel_scope.cancel()
        except BaseException:
            if found:
                self._undeliver(table, [delivery.receipt for delivery in found])
            raise
        if failure is not None:
            raise failure
        self._count(Event(CONSUMED, queue, len(found)))
        return found

    def _undeliver(self, table: str, receipts: list[str]) -> None:
        self._undelivered.append((table, receipts))
        self._has_work.set()

    async def _settle(self, command: Any, settlement: TableSettlement) -> tuple[bool | int | None, ...]:
        """Settle the receipts of a command; returns an outcome for each. A receipt that comes twice is settled once."""
        queue, message_id = command.queue, getattr(command, "message_id", None)
        texts = [str(receipt) for receipt in command.receipts]
        if message_id is not None and not texts[0].startswith(message_id):
            return (False,)
        once, table = list(dict.fromkeys(texts)), self._table(queue)
        done = await self._call(queue, lambda tables: settlement.settle(tables, table, once, command))
        if settlement.event:
            number = sum(result.ok for result in done)
            self._count(Event(settlement.event, queue, number, settlement.reason))
        outcomes = {result.receipt: table_outcome(result) for result in done}
        return tuple([outcomes[text] for text in texts])

    # Reads

    async def queue(self, queue: str) -> tuple[QueueCounts, None]:
        """The counts of unfinished messages of the table; from a moment ago if counting takes long."""
        return await self.counted.read(queue, self._table(queue)), None

    def last_counts_of(self, queue: str) -> QueueCounts | None:
        """The counts when the table was last counted; None if it never was, or if the queue is not bound."""
        table = self.table_of(queue)
        return None if table is None else self.counted.of(queue, table)

    def last_counts(self) -> dict[str, QueueCounts]:
        """`last_counts_of` for all queues that have them."""
        found = {queue: self.last_counts_of(queue) for queue in self.counted.queues()}
        return {queue: counts for queue, counts in found.items() if counts is not None}

    async def peek(self, queue: str, limit: int, *, shuffle: bool, wait_ms: int) -> list[MessageInfo]:
        """The next messages in the order of claims."""
        table = self._table(queue)
        if shuffle or wait_ms:
            raise not_possible("a look at random, or one that waits,", table)
        found = await self._call(queue, lambda tables: tables.peek(table, limit))
        return [replace(message, queue=queue) for message in found]

    async def message(self, queue: str, message_id: str) -> MessageInfo | None:
        """A message that is not finished; None if there is none of this id."""
        table = self._table(queue)
        found = await self._call(queue, lambda tables: tables.message(table, message_id))
        return None if found is None else replace(found, queue=queue)

    async def present(self, queue: str, receipts: Sequence[Receipt]) -> list[bool]:
        """Whether the message of each receipt is there and not finished."""
        return [
            isinstance(receipt, TableReceipt) and await self.message(queue, receipt.message_id) is not None
            for receipt in receipts
        ]

    # The job

    async def run(self) -> None:
        """Release messages that were not delivered, and listen for new ones once a bound queue is used."""
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
                    except ForqError:  # they become available when their locks end
                        continue

    def close(self) -> None:
        """Close the connections."""
        self._tables.close()

    @property
    def _opened(self) -> BoundTables:
        self._is_used.set()
        return self._tables

    def _bounded(self, queue: str) -> BoundTables:
        """The tables with this queue's bound on deliveries."""
        return self._opened.bounded(self._writer.snapshot().rules(queue).max_attempts)

    async def _call(self, queue: str, call: Callable[[BoundTables], Awaitable[AnswerT]]) -> AnswerT:
        require_task()
        if self._calls[queue] >= limits.BOUND_CALLS_MAX:
            raise Overloaded(f"too many calls wait for the table of {queue}")
        self._calls[queue] += 1
        try:
            with self._writer.budgets["inbox"].one_used():
                return await call(self._bounded(queue))
        finally:
            self._calls[queue] -= 1
            if not self._calls[queue]:
                del self._calls[queue]

    async def _counts(self, queue: str, table: str) -> QueueCounts:
        return await self._call(queue, lambda tables: tables.counts(table))

    def _count(self, event: Event) -> None:
        if event.count:
            self._counters.queues.record([event])
