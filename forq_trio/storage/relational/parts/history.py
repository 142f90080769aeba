"""The extent of the history, for each queue and as a whole.

While the history is on, the commit that removes a message for good adds it to the history. So every message that was
ever stored is in a queue or in the history, exactly once, until the history is trimmed or purged. Ids in the history
grow by one in the order in which messages ended. A message that is acknowledged with a result is added while the
history is off, too (operations/results.py).

The entry of a queue says how many of its messages have ended so far and their bytes, as in its newest row, and how many
of them are still in the history. A queue with nothing in the history has no entry, and counts from zero again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from forq_trio.model import limits
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.logs.types import Log
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row, clamped
from forq_trio.storage.relational.statements import Query


class QueueHistory(NamedTuple):
    """The history of one queue."""

    number: int  # how many messages of the queue have ended so far
    total: int  # the bytes of those
    kept: HistoryCounts  # those that are still in the history


_NOTHING = QueueHistory(0, 0, HistoryCounts())

Shipped = tuple[dict[str, QueueHistory | None], Log]


class HistoryLog(Part):
    """The history by queue, and as a whole."""

    shipped = Shipped

    def __init__(self, *, enabled: bool) -> None:
        self.committed: dict[str, QueueHistory] = {}  # by queue
        self.committed_log = Log(enabled)
        self.log = Log(enabled)  # the whole history, as of the last command
        self._changed: dict[
            str, QueueHistory | None
        ] = {}  # by this batch; None where nothing is kept any more
        self._newest_without_result: int | None = None  # its id, 0 for none; None: it has to be read

    def committed_of(self, queue: str | None) -> HistoryCounts:
        """The history of a queue (None: of all) as of the last commit. Callable from any thread."""
        if queue is None:
            messages = sum([each.kept.messages for each in list(self.committed.values())])
            return HistoryCounts(messages, self.committed_log.bytes)
        found = self.committed.get(queue)
        return HistoryCounts() if found is None else found.kept

    def add(self, messages: Sequence[Row]) -> list[tuple[int, int, int]]:
        """Note messages that ended; returns the id of each, and its `number` and `total` in its queue."""
        noted = []
        _, _, last, _, added = self.log
        for message in messages:
            size = message.bytes
            number, total, kept = self._of(message.queue) or _NOTHING
            total = clamped(total + size)
            number, last, added = number + 1, last + 1, added + size
            counts = HistoryCounts(kept.messages + 1, kept.bytes + size)
            self._changed[message.queue] = QueueHistory(number, total, counts)
            noted.append((last, number, total))
        self.log = self.log._replace(last=last, bytes_to_last=added)
        return noted

    def remove(self, queue: str, size: int) -> None:
        """Note that the oldest message of a queue is removed."""
        found = self._of(queue)
        if found is None:
            raise KeyError(queue)
        number, total, kept = found
        counts = HistoryCounts(kept.messages - 1, kept.bytes - size)
        self._changed[queue] = QueueHistory(number, total, counts) if kept.messages > 1 else None

    def results(self, query: Query, added: int = 0) -> int:
        """How many finished messages there are for their results alone, with so many more; of few, all that are stored.

        Only while the history is off.
        """
        stored = self.log.last - self.log.first + 1
        if stored + added <= limits.RESULTS_STORED_MAX:
            return stored + added
        if self._newest_without_result is None:
            # There are not many more of them than may be: of two such ranges one is enough.
            after = max(self.log.first - 1, self.log.last - 2 * limits.RESULTS_STORED_MAX)
            found = query("newest_without_result", after)
            self._newest_without_result = found[0][0] if found else 0
        return self.log.last - max(self._newest_without_result, self.log.first - 1) + added

    def _of(self, queue: str) -> QueueHistory | None:
        return self._changed[queue] if queue in self._changed else self.committed.get(queue)

    def load(self, query: Query, path: str) -> None:
        for queue, number, total, *kept in query("load_history"):
            self._changed[queue] = QueueHistory(number, total, HistoryCounts(*kept))
        ((gone, last),) = query("load_history_ends")
        size = sum(each.kept.bytes for each in self._changed.values() if each is not None)
        self.log = Log(self.log.enabled, gone + 1, last, 0, size)
        self.adopt()

    def copy(self) -> Any:
        return self._changed.copy(), self.log

    def restore(self, copied: Any) -> None:
        self._changed, self.log = copied

    def adopt(self) -> None:
        self.committed_log = self.log
        for queue, now in self._changed.items():
            if now is None:
                self.committed.pop(queue, None)
            else:
                self.committed[queue] = now
        self.discard()

    def discard(self) -> None:
        self.log = self.committed_log
        if self._changed:
            self._changed = {}

    def ship(self) -> Shipped | None:
        return None if self.log is self.committed_log and not self._changed else (self._changed, self.log)

    def take_over(self, shipped: Shipped) -> None:
        self._changed, log = shipped
        if log.enabled and log.last != self.log.last:
            self._newest_without_result = None  # while it is off, the other process adds results alone
        self.log = log._replace(enabled=self.log.enabled)  # each process has its own setting
