"""Counts the messages in the tables to which queues are bound. `Broker.bound.counted`.

Publishers and consumers of a table keep no counts in it, so a job counts: one table after the other, every
TABLES_COUNTED_SECONDS. After each it rests TABLE_COUNT_REST times as long as the count took, but no longer than
TABLES_COUNTED_SECONDS. So gauges, charts and lists of queues need no query. A table is counted again only after its
whole rest, so counting takes at most 4 % of a connection; the job counts one table at a time, however many there are.
A caller who asks for one queue gets new counts, or, if counting takes long, those of a moment ago.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

import trio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, StorageUnavailable
from forq_trio.model.messages.types import QueueCounts


class _TableCount(NamedTuple):
    """The last count of a table. again_at: when the table may be counted again, on trio's clock."""

    table: str
    counts: QueueCounts
    again_at: float


class TableCounts:
    """The job that counts. bound: the tables by queue. count: counts the messages of a queue in its table.

    `run` it until it is cancelled.
    """

    name = "tables.counts"

    def __init__(
        self, bound: Callable[[], Mapping[str, str]], count: Callable[[str, str], Awaitable[QueueCounts]]
    ) -> None:
        self._bound = bound
        self._count = count
        self._last: dict[str, _TableCount] = {}
        self._turns: WeakValueDictionary[str, trio.Lock] = WeakValueDictionary()

    def queues(self) -> Collection[str]:
        """The queues whose tables were counted at least once."""
        return self._last.keys()

    def of(self, queue: str, table: str) -> QueueCounts | None:
        """The last counts of this table; None if it was never counted."""
        last = self._last.get(queue)
        return None if last is None or last.table != table else last.counts

    async def read(self, queue: str, table: str) -> QueueCounts:
        """The counts as of now, or of a moment ago if counting takes long. Raises the errors of `count`."""
        turn = self._turns.setdefault(queue, trio.Lock())
        async with turn:
            last = self._last.get(queue)
            began = trio.current_time()
            if last is not None and last.table == table and began < last.again_at:
                return last.counts
            try:
                counts = await self._count(queue, table)
            except ForqError as error:
                if not isinstance(error, StorageUnavailable):  # the table no longer exists
                    self._last.pop(queue, None)
                raise
            took = trio.current_time() - began
            rest = took * limits.TABLE_COUNT_REST if took > limits.TABLE_COUNT_QUICK_SECONDS else 0
            self._last[queue] = _TableCount(table, counts, trio.current_time() + rest)
            return counts

    async def run(self) -> None:
        """Count the tables of all bound queues, again and again."""
        while True:
            began = trio.current_time()
            bound = self._bound()
            self._last = {queue: last for queue, last in self._last.items() if bound.get(queue) == last.table}
            for queue, table in bound.items():
                before = trio.current_time()
                with suppress(ForqError):  # callers who use the queue get the error
                    await self.read(queue, table)
                took = trio.current_time() - before
                await trio.sleep(min(took * limits.TABLE_COUNT_REST, limits.TABLES_COUNTED_SECONDS))
            await trio.sleep_until(began + limits.TABLES_COUNTED_SECONDS)
