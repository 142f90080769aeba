"""The backends of queues: a queue's messages are in the server's own database, or in a table that it is bound to.

The broker gives the backend of a queue the commands about its messages, and reads them through it. `Backends.of`
chooses the backend, and nothing else in the broker knows which one it is. Commands about the queue itself (its
settings, its binding) go to the writer, and so do commands about several queues; engines refuse to store messages in a
bound queue.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import trio
from msgspec import Struct

from forq_trio.broker.bound import BoundQueues
from forq_trio.broker.parts import ItemT, execute_in_parts
from forq_trio.model.commands import Command, OutcomeT
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import MessageInfo, QueueCounts, Receipt
from forq_trio.readers.pool import ReaderPool
from forq_trio.writer_actor import WriterActor


class QueueBackend(Protocol):
    """Executes commands about the messages of its queues, and reads them."""

    async def execute(self, command: Command[OutcomeT]) -> OutcomeT:
        """Execute a command and return its outcome, or raise it if it is an error. Cancelled: see `Broker`."""
        ...

    async def execute_in_parts(
        self, items: Sequence[ItemT], command_of: Callable[[tuple[ItemT, ...]], Command[tuple[OutcomeT, ...]]]
    ) -> tuple[OutcomeT, ...]:
        """`execute` for any number of items, in several commands if needed; returns an outcome for each item."""
        ...

    def post(self, command: Command[Any]) -> None:
        """Have a command executed without waiting for its outcome."""
        ...

    def parse_receipt(self, text: str) -> Receipt:
        """Read a receipt of a message of this backend. Raises MalformedReceipt."""
        ...

    def check_message(self, message: NewMessage) -> None:
        """Raise a CallerError for a message that this backend can never store."""
        ...

    async def queue(self, queue: str) -> tuple[QueueCounts, int | None]:
        """The counts of a queue, and when its oldest ready message was received; None if that is not known."""
        ...

    async def message(self, queue: str, message_id: str) -> MessageInfo | None: ...

    async def present(self, queue: str, receipts: Sequence[Receipt]) -> list[bool]:
        """Whether the message of each receipt is in the queue, even if it was received again since."""
        ...

    async def peek(self, queue: str, limit: int, *, shuffle: bool, wait_ms: int) -> list[MessageInfo]: ...


class OwnBackend:
    """The server's own database: the writer changes messages, the readers read them."""

    def __init__(self, writer: WriterActor, readers: ReaderPool) -> None:
        self._writer = writer
        self._readers = readers
        # The methods themselves, to save one call in each send and receive.
        self.execute = writer.execute
        self.post = writer.post
        self.parse_receipt = Receipt.parse
        self.check_message: Callable[[Struct], None] = writer.check_texts or _check_nothing

    def execute_in_parts(
        self, items: Sequence[ItemT], command_of: Callable[[tuple[ItemT, ...]], Command[tuple[OutcomeT, ...]]]
    ) -> Coroutine[Any, Any, tuple[OutcomeT, ...]]:
        return execute_in_parts(self._writer, items, command_of)

    async def queue(self, queue: str) -> tuple[QueueCounts, int | None]:
        return await self._readers.run(lambda reader: reader.queue(queue))

    async def message(self, queue: str, message_id: str) -> MessageInfo | None:
        return await self._readers.run(lambda reader: reader.message(queue, message_id))

    async def present(self, queue: str, receipts: Sequence[Receipt]) -> list[bool]:
        sequences = [receipt.seq for receipt in receipts]
        queues = await self._readers.run(lambda reader: reader.queues_of(sequences))
        return [queues.get(sequence) == queue for sequence in sequences]

    async def peek(self, queue: str, limit: int, *, shuffle: bool, wait_ms: int) -> list[MessageInfo]:
        """See `QueueBackend`. The wait ends early when the server stops."""
        deadline = trio.current_time() + wait_ms / 1_000
        with self._writer.announced.ready.on(queue) as watcher:
            while True:
                watcher.mark()
                found = await self._peek(queue, limit, shuffle)
                if found or trio.current_time() >= deadline or self._writer.announced.ready.closed:
                    return found
                with trio.move_on_at(deadline):
                    await watcher.wait()

    async def _peek(self, queue: str, limit: int, shuffle: bool) -> list[MessageInfo]:
        if shuffle:
            return await self._readers.run(lambda reader: reader.peek_shuffled(queue, limit))
        return await self._readers.run(lambda reader: reader.peek(queue, limit))


class Backends:
    """The backends of all queues. tables: the backend of queues that are bound to tables; None if none can be."""

    def __init__(self, writer: WriterActor, readers: ReaderPool, tables: BoundQueues | None = None) -> None:
        self.tables = tables
        self.own = OwnBackend(writer, readers)

    def of(self, queue: str | None) -> QueueBackend:
        """The backend of a queue. None: the backend for commands that name no queue."""
        if self.tables is None or queue is None or self.tables.table_of(queue) is None:
            return self.own
        return self.tables

    def last_counts_of(self, queue: str) -> QueueCounts | None:
        """The last known counts of a bound queue; None for any other queue, or before the first count."""
        return None if self.tables is None else self.tables.last_counts_of(queue)

    def last_counts(self) -> Mapping[str, QueueCounts]:
        """`last_counts_of` for all queues that have them."""
        return {} if self.tables is None else self.tables.last_counts()

    def close(self) -> None:
        """Close the connections to applications' tables."""
        if self.tables is not None:
            self.tables.close()


def _check_nothing(_: Struct) -> None:
    """Nothing to do: the database can store any text."""
