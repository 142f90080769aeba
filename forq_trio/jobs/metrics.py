"""The gauges of the queues (F13): refreshed every 30 s, so that a scrape never touches the database.

Depths come from the cache. The age of the oldest ready message has to be read: for queues that have ready messages and
a label in the metrics, through the reader pool, a few queues at a time, and only after a commit. An idle server runs no
query for it.
"""

from collections.abc import Sequence
from functools import partial

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.readers.ages import claimable_since
from forq_trio.readers.pool import ReaderPool
from forq_trio.telemetry.counters import Counters

GAUGES_INTERVAL_SECONDS = 30.0


class QueueGauges:
    """Refreshes the gauges of `counters`. clock: the wall clock of the messages."""

    def __init__(self, broker: Broker, readers: ReaderPool, counters: Counters, clock: Clock) -> None:
        self._broker = broker
        self._readers = readers
        self._counters = counters
        self._clock = clock
        self._commits_seen = -1
        self._claimable_since: dict[str, int] = {}

    async def refresh(self) -> str:
        """Refresh all gauges, those from the cache first; says of how many queues.

        Raises ReadDeadlineExceeded or StorageUnavailable; the ages are not changed then.
        """
        commits = self._counters.commit_calls.count
        counts = self._broker.counts()
        self._counters.refresh_counts(counts)
        named = [(key, key[0]) for key in self._counters.counts if key[0] in counts]
        dead_letters = self._counters.dead_letters = {}
        for key, queue in named:
            target = self._broker.rules(queue).dead_letter_queue
            if target:
                dead_letters[key] = counts[target].total if target in counts else 0
        if commits != self._commits_seen:
            await self._read([queue for _, queue in named if counts[queue].ready])
            self._commits_seen = commits
        now_ms = self._clock.now_ms()
        self._counters.oldest_seconds = {
            key: max(0, now_ms - self._claimable_since[queue]) / 1_000
            for key, queue in named
            if queue in self._claimable_since
        }
        return counted(len(counts), "queue", "queues")

    async def _read(self, queues: Sequence[str]) -> None:
        since: dict[str, int] = {}
        for start in range(0, len(queues), limits.METRIC_QUEUES_READ_MAX):
            part = queues[start : start + limits.METRIC_QUEUES_READ_MAX]
            since |= await self._readers.run(partial(claimable_since, part))
        self._claimable_since = since


def gauges_job(gauges: QueueGauges) -> Periodic:
    """The job that refreshes `gauges` now and every 30 s."""
    return Periodic(
        "metrics.depth", GAUGES_INTERVAL_SECONDS, gauges.refresh, title="Count bytes and ages", nudged=True
    )
