"""What a batch changes of the history: how much is kept of each queue, and which ids.

An entry of a queue has how many messages of it ended so far and their bytes, as in its newest row, and how much of that
is kept. A queue of which nothing is kept has none, and counts from zero again.
"""

from typing import Self

from forq_trio.model import limits
from forq_trio.model.history import HistoryCounts
from forq_trio.storage.sqlite.cache import Cache, QueueHistory
from forq_trio.storage.sqlite.changes import Changes

_NOTHING = QueueHistory(0, 0, HistoryCounts())


class HistoryChanges(Changes[QueueHistory]):
    """gone: the last id that retention removed; last: the highest id ever given; bytes: of all that are kept."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache.history, {})
        self._cache = cache
        self.on = cache.defaults.history
        self.gone, self.last, self.bytes = cache.history_gone, cache.history_last, cache.history_bytes

    def copy(self) -> Self:
        copied = type(self)(self._cache)
        copied.changed = self.changed.copy()
        copied.gone, copied.last, copied.bytes = self.gone, self.last, self.bytes
        return copied

    def add(self, queue: str, size: int) -> tuple[int, int, int]:
        """Note a message that ended; returns its id, and its `number` and `total` in its queue."""
        number, total, kept = self.get(queue, _NOTHING)
        total = max(
            -limits.SEQUENCE_MAX, min(total + size, limits.SEQUENCE_MAX)
        )  # a damaged row may say anything
        self[queue] = QueueHistory(number + 1, total, HistoryCounts(kept.messages + 1, kept.bytes + size))
        self.last += 1
        self.bytes += size
        return self.last, number + 1, total

    def remove(self, queue: str, size: int) -> None:
        """Note that the oldest message of a queue is removed."""
        number, total, kept = self[queue]
        self.bytes -= size
        if kept.messages == 1:
            del self[queue]
        else:
            self[queue] = QueueHistory(number, total, HistoryCounts(kept.messages - 1, kept.bytes - size))

    def adopt(self) -> None:
        """Move the changes into the cache: they were committed."""
        cache = self._cache
        cache.history_gone, cache.history_last, cache.history_bytes = self.gone, self.last, self.bytes
        for queue, now in self.changed.items():
            if now is None:
                cache.history.pop(queue, None)
            else:
                cache.history[queue] = now
