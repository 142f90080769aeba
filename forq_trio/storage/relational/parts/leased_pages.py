"""What is known without a query about leased messages that are only in a page (operations/moved_pages.py)."""

from typing import Any

from forq_trio.model import limits
from forq_trio.storage.relational.parts.part import Part

Shipped = tuple[int, dict[str, int]]
"""The time of the batch (epoch ms), and until when the messages of each queue that was looked at stay in the table."""


class LeasedPages(Part):
    """Queues whose leased messages stay in the table for a while, because somebody looked at some."""

    shipped = Shipped

    def __init__(self) -> None:
        self._committed: dict[str, int] = {}  # by queue, until when (epoch ms)
        self._looked: dict[str, int] = {}  # the same, by this batch
        self._looked_ms = 0  # the time of this batch, where it looked
        self.last: dict[str, tuple[int, str]] = {}
        """Sequence number and id of the last message that is only in a page, by queue, once they were read."""

    def are_looked_at(self, queue: str, now_ms: int) -> bool:
        """True while leased messages of a queue stay in the table."""
        return queue in self._looked or self._committed.get(queue, 0) > now_ms

    def look_at(self, queue: str, now_ms: int) -> None:
        """Note that somebody looks at leased messages of a queue, so that they stay in the table for a while."""
        self._looked_ms = now_ms
        self._looked[queue] = now_ms + limits.CONSUMER_LOOKED_MS

    def copy(self) -> Any:
        return self._looked.copy(), self.last.copy()

    def restore(self, copied: Any) -> None:
        self._looked, self.last = copied

    def adopt(self) -> None:
        if self._looked:
            self._committed = {
                queue: until for queue, until in self._committed.items() if until > self._looked_ms
            }
            self._committed.update(self._looked)
        self.discard()

    def discard(self) -> None:
        if self._looked:
            self._looked = {}
        if self.last:
            self.last = {}

    def ship(self) -> Shipped | None:
        return (self._looked_ms, self._looked) if self._looked else None

    def take_over(self, shipped: Shipped) -> None:
        self._looked_ms, self._looked = shipped
