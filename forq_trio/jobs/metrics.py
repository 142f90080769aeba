"""The gauges of the queues (F13), every 30 s, so that a scrape never touches the database; samples of the monitor.

Depths come from the cache. The age of the oldest ready message has to be read (monitor/ages.py): for queues that have
ready messages, a few queues at a time, and only after a commit. An idle server runs no query for it; on PostgreSQL one,
which counts what applications sent.
"""

from collections.abc import Awaitable, Callable, Iterator
from math import floor

import trio

from forq_trio.broker.known import Known
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.monitor import Monitor
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import Family, QueueKey, by_queue, gauge

GAUGES_INTERVAL_SECONDS = 30.0


class QueueGauges:
    """Refreshes the counts of `counters`, and the ages that the monitor and the UI read.

    read_sent: reads the figures of forq.send (`Lists.sent_figures`); None where there is no such function.
    """

    def __init__(
        self,
        known: Known,
        ages: Ages,
        counters: Counters,
        read_sent: Callable[[], Awaitable[tuple[int, int, int | None]]] | None = None,
    ) -> None:
        self._known = known
        self._ages = ages
        self._counters = counters
        self._commits_seen = -1
        # As of the last refresh, as the next two: messages in each queue's dead-letter queue.
        self.dead_letters: dict[QueueKey, int] = {}
        # For how long the oldest ready message could have been claimed; queues without one are left out.
        self.oldest_seconds: dict[QueueKey, float] = {}
        self.set_aside = 0  # this and the next: messages of forq.send
        self._waiting = 0
        self._oldest: tuple[int, float] | None = None  # the lowest id of those, and when it was seen first
        self._read_sent = read_sent

    async def refresh(self) -> str:
        """Refresh all gauges, those from the cache first; says for how many queues.

        Raises ReadDeadlineExceeded or StorageUnavailable; the ages are not changed then.
        """
        commits = self._counters.commits.count
        counts = self._known.counts()
        self._counters.refresh_counts(counts)
        named = [(key, key[0]) for key in self._counters.counts if key[0] in counts]
        dead_letters = self.dead_letters = {}
        for key, queue in named:
            target = self._known.rules(queue).dead_letter_queue
            if target:
                dead_letters[key] = counts[target].total if target in counts else 0
        if commits != self._commits_seen:
            self._ages.keep(counts)
            ready = [queue for queue, count in counts.items() if count.ready]
            await self._ages.read(ready[: limits.SERIES_QUEUES_MAX])
            self._commits_seen = commits
        ages = ((key, self._ages.age_ms(queue)) for key, queue in named)
        self.oldest_seconds = {key: age / 1_000 for key, age in ages if age is not None}
        if self._read_sent is not None:
            self.set_aside, self._waiting, oldest = await self._read_sent()
            if oldest is None:
                self._oldest = None
            elif self._oldest is None or self._oldest[0] != oldest:
                self._oldest = oldest, trio.current_time()
        return counted(len(counts), "queue", "queues")

    def families(self) -> Iterator[Family]:
        """What is refreshed of each queue."""
        yield gauge(
            "forq_queue_dead_letters",
            "Messages in the dead-letter queue of a queue, refreshed every 30 seconds.",
            by_queue(self.dead_letters),
        )
        yield gauge(
            "forq_queue_oldest_claimable_age_seconds",
            "How long the oldest ready message of a queue could have been claimed, refreshed every 30 seconds.",
            by_queue(self.oldest_seconds),
        )

    def sent_families(self) -> Iterator[Family]:
        """What is refreshed of forq.send."""
        yield gauge(
            "forq_sent_set_aside",
            "Messages of forq.send that were refused and wait for somebody to decide, refreshed every 30 seconds.",
            self.set_aside,
        )
        yield gauge(
            "forq_sent_waiting",
            "Messages of forq.send that are committed and in no queue yet, refreshed every 30 seconds; at most "
            f"{limits.SENT_COUNTED_MAX:,} are counted.",
            self._waiting,
        )
        yield gauge(
            "forq_sent_waiting_seconds",
            "For how long the oldest of them has been seen waiting; 0 without one.",
            0.0 if self._oldest is None else trio.current_time() - self._oldest[1],
        )


def gauges_job(gauges: QueueGauges) -> Periodic:
    """The job that refreshes `gauges` now and every 30 s."""
    return Periodic(
        "metrics.depth", GAUGES_INTERVAL_SECONDS, gauges.refresh, title="Count bytes and ages", nudged=True
    )


class Sampler:
    """Lets the monitor sample once a second, at whole ones: each step of a chart has as many samples as the others."""

    name = "monitor.sample"

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    async def run(self) -> None:
        self._monitor.begin()
        while True:
            await trio.sleep_until(floor(trio.current_time()) + 1)
            self._monitor.sample()
