"""What is known about the buckets of rates without a query; operations/rate_limit.py reads and writes them."""

from typing import Any

from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.parts.queue_settings import Settings
from forq_trio.storage.relational.statements import Query

Shipped = tuple[bool, dict[str, int]]
"""`has_buckets`, and `full_at`."""


class RateBuckets(Part):
    """When the buckets of queues are full again, and whether there are any buckets at all."""

    shipped = Shipped

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._committed_full_at: dict[str, int] = {}  # by queue, epoch ms
        self._had_buckets = False
        self.has_buckets = False  # tokens were taken, now or before
        self.full_at: dict[str, int] = {}  # by queue, of this batch
        self.limited: set[Group] = set()  # groups whose messages may be held because a token is missing

    def committed_full_at(self, queue: str) -> int:
        """When the bucket of the queue's own rate is full again (epoch ms); 0 if it is full now, or there is none."""
        has_rate = self._settings.committed_rules(queue).queue_rate is not None
        return self._committed_full_at.get(queue, 0) if has_rate else 0

    def load(self, query: Query, path: str) -> None:
        for queue in self._settings.committed:
            rate = self._settings.committed_rules(queue).queue_rate
            if rate is not None:
                found = query("find_bucket", queue, "", rate.count, rate.period_ms)
                self.full_at[queue] = -(-found[0][0] // rate.count) if found else 0
        self.has_buckets = bool(query("has_buckets")[0][0])
        self.adopt()

    def copy(self) -> Any:
        return self.has_buckets, self.full_at.copy(), self.limited.copy()

    def restore(self, copied: Any) -> None:
        self.has_buckets, self.full_at, self.limited = copied

    def adopt(self) -> None:
        self._had_buckets = self.has_buckets
        if len(self._committed_full_at) > len(
            self._settings.committed
        ):  # queues that have no settings any more
            for queue in self._committed_full_at.keys() - self._settings.committed.keys():
                del self._committed_full_at[queue]
        self._committed_full_at.update(self.full_at)
        self.discard()

    def discard(self) -> None:
        self.has_buckets = self._had_buckets
        if self.full_at:
            self.full_at = {}
        if self.limited:
            self.limited = set()

    def ship(self) -> Shipped | None:
        if self.has_buckets == self._had_buckets and not self.full_at:
            return None
        return self.has_buckets, self.full_at

    def take_over(self, shipped: Shipped) -> None:
        self.has_buckets, self.full_at = shipped
