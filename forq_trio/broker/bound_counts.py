"""How many messages are in the tables to which queues are bound, as of the last look. `Broker.bound.counted`.

A table has no counts that its publishers and consumers keep, so they are counted: one table after the other every
TABLES_COUNTED_SECONDS, and after each with a rest of TABLE_COUNT_REST times as long as it took, but no longer than
TABLES_COUNTED_SECONDS. So gauges, charts and lists of queues run no query. A table is counted anew only after the
whole rest, so it takes at most 4 % of a connection; the job counts one table at a time, however many there are.
Who asks for the counts of one queue gets new ones, or those of a moment ago where counting takes long.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

import trio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, StorageUnavailable
from forq_trio.model.messages import QueueCounts


class _Look(NamedTuple):
    """again_at: when the table may be counted again, by trio's clock."""

    table: str
    counts: QueueCounts
    again_at: float


class TableCounts:
    """bound: the tables by queue. count: counts the messages of a queue and its table. A job: `run` until cancelled."""

    name = "tables.counts"

    def __init__(
        self, bound: Callable[[], Mapping[str, str]], count: Callable[[str, str], Awaitable[QueueCounts]]
    ) -> None:
        self._bound = bound
        self._count = count
        self._looks: dict[str, _Look] = {}
        self._turns: WeakValueDictionary[str, trio.Lock] = WeakValueDictionary()

    def queues(self) -> Collection[str]:
        """Those whose tables somebody has looked at."""
        return self._looks.keys()

    def of(self, queue: str, table: str) -> QueueCounts | None:
        """As of the last look at this table; None where nobody has looked yet."""
        look = self._looks.get(queue)
        return None if look is None or look.table != table else look.counts

    async def read(self, queue: str, table: str) -> QueueCounts:
        """As of now, or of a moment ago where counting takes long. Raises what `count` raises."""
        turn = self._turns.setdefault(queue, trio.Lock())
        async with turn:
            look = self._looks.get(queue)
            began = trio.current_time()
            if look is not None and look.table == table and began < look.again_at:
                return look.counts
            try:
                counts = await self._count(queue, table)
            except ForqError as error:
                if not isinstance(error, StorageUnavailable):  # it is not there any more
                    self._looks.pop(queue, None)
                raise
            took = trio.current_time() - began
            rest = took * limits.TABLE_COUNT_REST if took > limits.TABLE_COUNT_QUICK_SECONDS else 0
            self._looks[queue] = _Look(table, counts, trio.current_time() + rest)
            return counts

    async def run(self) -> None:
        """Look at all bound queues, again and again."""
        while True:
            began = trio.current_time()
            bound = self._bound()
            self._looks = {
                queue: look for queue, look in self._looks.items() if bound.get(queue) == look.table
            }
            for queue, table in bound.items():
                before = trio.current_time()
                with suppress(ForqError):  # whoever uses the queue is told
                    await self.read(queue, table)
                took = trio.current_time() - before
                await trio.sleep(min(took * limits.TABLE_COUNT_REST, limits.TABLES_COUNTED_SECONDS))
            await trio.sleep_until(began + limits.TABLES_COUNTED_SECONDS)
