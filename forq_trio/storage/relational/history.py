"""What a batch changes of the history: how much is kept of each queue, and which ids.

An entry of a queue has how many messages of it ended so far and their bytes, as in its newest row, and how much of that
is kept. A queue of which nothing is kept has none, and counts from zero again.
"""

from collections.abc import Sequence
from typing import Self

from forq_trio.model.history import HistoryCounts
from forq_trio.storage.relational.cache import Cache, QueueHistory
from forq_trio.storage.relational.changes import Changes
from forq_trio.storage.relational.row import Row, clamped

_NOTHING = QueueHistory(0, 0, HistoryCounts())


class HistoryChanges(Changes[QueueHistory]):
    """log: the whole history, as of the last command."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache.history, {})
        self._cache = cache
        self.log = cache.logs["history"]

    def copy(self) -> Self:
        copied = type(self)(self._cache)
        copied.changed = self.changed.copy()
        copied.log = self.log
        return copied

    def add(self, messages: Sequence[Row]) -> list[tuple[int, int, int]]:
        """Note messages that ended; returns the id of each, and its `number` and `total` in its queue."""
        noted = []
        _, _, last, _, added = self.log
        for message in messages:
            size = message.bytes
            number, total, kept = self.get(message.queue, _NOTHING)
            total = clamped(total + size)
            number, last, added = number + 1, last + 1, added + size
            counts = HistoryCounts(kept.messages + 1, kept.bytes + size)
            self[message.queue] = QueueHistory(number, total, counts)
            noted.append((last, number, total))
        self.log = self.log._replace(last=last, bytes_to_last=added)
        return noted

    def remove(self, queue: str, size: int) -> None:
        """Note that the oldest message of a queue is removed."""
        number, total, kept = self[queue]
        if kept.messages == 1:
            del self[queue]
        else:
            self[queue] = QueueHistory(number, total, HistoryCounts(kept.messages - 1, kept.bytes - size))

    def adopt(self) -> None:
        """Move the changes into the cache: they were committed."""
        self._cache.logs["history"] = self.log
        for queue, now in self.changed.items():
            if now is None:
                self._cache.history.pop(queue, None)
            else:
                self._cache.history[queue] = now
