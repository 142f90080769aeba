"""Counts what happens in each queue, for the monitor: counters that only grow, and the latest reasons of nacks.

It costs the writer nothing beside /metrics, because an `Activity` has the same counter objects. Reasons are noted only
for batches with nacks. At most SERIES_QUEUES_MAX existing queues have an activity; a queue with a label in /metrics has
one as long as it has the label.
"""

from collections import Counter, deque
from collections.abc import Container

from forq_trio.model import limits
from forq_trio.storage.engine import (
    ACKED,
    CLEANED_UP,
    CONSUMED,
    NACKED,
    OFFERED,
    PRODUCED,
    STALE_RECOVERED,
    BatchResult,
)
from forq_trio.telemetry.log import LogEvent, log

DLQ_FULL = "dlq_full"
"""The reason of a message that was deleted because its dead-letter queue was full."""


class Series:
    """One counter. queue: the label, the queue's name or "other" past the bound; reason: "" without one.

    before: what was counted under "other", before its queue got a label. text: its labels in /metrics, made when they
    are first written.
    """

    __slots__ = ("before", "count", "is_dlq", "kind", "queue", "reason", "text")

    def __init__(self, kind: str, queue: str, is_dlq: bool, reason: str) -> None:
        self.kind = kind
        self.queue = queue
        self.is_dlq = is_dlq
        self.reason = reason
        self.count = self.before = 0
        self.text = ""

    @property
    def shown(self) -> int:
        """Its value in /metrics."""
        return self.count - self.before

    def show_as(self, queue: str) -> None:
        """Count under the label that the queue has got, from 0."""
        self.queue, self.before, self.text = queue, self.count, ""


_NOTHING = Series("", "", False, "")


class Activity:
    """The counters of one queue since the start: messages sent, delivered, acked and nacked, leases that ended.

    lost: messages deleted because the dead-letter queue was full. refused: sends refused because the queue was full.
    moved_in: messages that came from other queues: dead letters, and what was redriven.
    created, updated, ignored: offers, by what became of them.
    """

    __slots__ = (
        "acked",
        "all",
        "created",
        "delivered",
        "ended",
        "ignored",
        "lost",
        "moved_in",
        "nacked",
        "refused",
        "sent",
        "updated",
    )

    def __init__(self) -> None:
        self.all: list[tuple[str, Series]] = []
        self.sent = self.delivered = self.acked = self.nacked = self.ended = self.lost = _NOTHING
        self.created = self.updated = self.ignored = _NOTHING
        self.refused = self.moved_in = 0

    @property
    def offered(self) -> int:
        """How many offers there were."""
        return self.created.count + self.updated.count + self.ignored.count

    def add(self, series: Series) -> None:
        """Add a new counter of this queue."""
        self.all.append((series.kind, series))
        name = _NAMES.get((series.kind, series.reason))
        if name is not None:
            setattr(self, name, series)


_NAMES = {
    (PRODUCED, ""): "sent",
    (CONSUMED, ""): "delivered",
    (ACKED, ""): "acked",
    (NACKED, ""): "nacked",
    (STALE_RECOVERED, ""): "ended",
    (CLEANED_UP, DLQ_FULL): "lost",
    (OFFERED, "created"): "created",
    (OFFERED, "updated"): "updated",
    (OFFERED, "ignored"): "ignored",
}

NO_ACTIVITY = Activity()
"""The activity of a queue in which nothing has happened yet."""


class NackReasons:
    """How many nacks gave which reason, by queue, in buckets of a minute.

    A bucket has at most SERIES_QUEUES_MAX queues with NACK_REASONS_MAX reasons each; others count under the reason "".
    """

    def __init__(self) -> None:
        self._buckets: deque[tuple[int, dict[str, Counter[str]]]] = deque(maxlen=limits.NACK_REASONS_MINUTES)

    def add(self, now_ms: int, queue: str, reason: str | None, count: int) -> None:
        """Note `count` nacks. reason: None for none. A time before the latest one counts as the latest."""
        if not count:
            return
        minute = now_ms // limits.MINUTE_MS
        if not self._buckets or minute > self._buckets[-1][0]:
            self._buckets.append((minute, {}))
        queues = self._buckets[-1][1]
        reasons = queues.get(queue)
        if reasons is None:
            if len(queues) >= limits.SERIES_QUEUES_MAX:
                return
            reasons = queues[queue] = Counter()
        text = (reason or "")[: limits.NACK_REASON_LENGTH_MAX]
        if text not in reasons and len(reasons) >= limits.NACK_REASONS_MAX:
            text = ""
        reasons[text] += count

    def keep(self, queues: Container[str]) -> None:
        """Forget all queues but these."""
        for _, noted in self._buckets:
            for queue in [queue for queue in noted if queue not in queues]:
                del noted[queue]

    def latest(self, now_ms: int, queue: str) -> Counter[str]:
        """The nacks of the running minute and of those before it, by reason."""
        oldest = now_ms // limits.MINUTE_MS - limits.NACK_REASONS_MINUTES
        found: Counter[str] = Counter()
        for minute, queues in self._buckets:
            if minute > oldest and queue in queues:
                found.update(queues[queue])
        return found


def log_losses(result: BatchResult) -> None:
    """Log messages that were set aside, and those deleted because their dead-letter queue was full."""
    for queue, sequence, error in result.set_aside:
        log(LogEvent.MESSAGE_SET_ASIDE, queue=queue, sequence=sequence, error=error)
    for event in result.events:
        if event.kind == CLEANED_UP and event.reason == DLQ_FULL:
            log(LogEvent.DEAD_LETTERS_LOST, queue=event.queue, messages=event.count)
