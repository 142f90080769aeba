"""Current rates and times: of one queue, or of all together."""

from array import array
from collections import deque
from math import nan

from msgspec import Struct

from forq_trio.broker.known import Known
from forq_trio.model import limits
from forq_trio.monitor.quantiles import added
from forq_trio.monitor.rings import Values
from forq_trio.monitor.watched import STEP_SECONDS
from forq_trio.storage.engine import ACKED, CONSUMED, HANDLING, PRODUCED, STALE_RECOVERED, WAIT
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.histogram import MESSAGE_MS, quantile

_MARKS = 5
_COUNTED = (PRODUCED, CONSUMED, ACKED, STALE_RECOVERED)


class Now(Struct, frozen=True, gc=False):
    """Current rates and times. Waits and times to ack are those of the last minutes; None if not known.

    sent_total: messages sent since the start. For one queue also: offers of messages with a key a second, those in the
    last hour (or since the start), and how many of these were stored as a message.
    """

    sent_per_second: float
    delivered_per_second: float
    acked_per_second: float
    wait_p50_ms: float | None
    wait_p99_ms: float | None
    ack_p90_ms: float | None
    sent_total: int
    offered_per_second: float = 0.0
    offers_of_hour: int = 0
    created_of_hour: int = 0


class Totals:
    """The rates of all queues together."""

    def __init__(self, counters: Counters, now: float) -> None:
        self._counters = counters
        self._at = now
        self._commits = -1
        self._counts = [0, 0, 0, 0]
        self._rates = [0.0] * STEP_SECONDS * 3
        self._ready = 0
        self._ready_at = float("-inf")
        self._handled = [0] * (len(MESSAGE_MS) + 1)
        self._marks: deque[dict[str, list[int]]] = deque([self._durations()], maxlen=_MARKS)
        self._minute = int(now // 60)

    def sample(self, now: float, known: Known, oldest_seconds: float) -> Values:
        """The values of the rings' columns. If nothing was committed since the last sample, nothing is summed."""
        elapsed = max(now - self._at, 0.001)
        commits = self._counters.commits.count
        counts, p90 = self._counts, nan
        if commits != self._commits:
            counts = [self._counters.queues.total(kind) for kind in _COUNTED]
            if counts[2] != self._counts[2]:
                handled = self.sums(HANDLING)
                found = quantile(MESSAGE_MS, added(handled, self._handled), 0.9)
                p90 = nan if found is None else found / limits.SECOND_MS
                self._handled = handled
            self._count_ready(now, known)
        sent, delivered, acked, ended = [
            (new - old) / elapsed for new, old in zip(counts, self._counts, strict=True)
        ]
        self._rates = [*self._rates[3:], sent, delivered, acked]
        self._at, self._commits, self._counts = now, commits, counts
        if now // 60 > self._minute:
            self._minute = int(now // 60)
            self._marks.append(self._durations())
        return array("f", (sent, delivered, acked, self._ready, oldest_seconds, 60 * ended, p90, nan, nan))

    def _count_ready(self, now: float, known: Known) -> None:
        """Count the ready messages that are not dead letters.

        Each second for SERIES_QUEUES_MAX queues, less often for more.
        """
        counts = known.counts()
        if now - self._ready_at >= len(counts) / limits.SERIES_QUEUES_MAX:
            dead = known.dead_letter_queues()
            self._ready = sum([each.ready for queue, each in counts.items() if queue not in dead])
            self._ready_at = now

    def sums(self, kind: str) -> list[int]:
        """The buckets of a duration, of all queues together."""
        return self._counters.durations.buckets(kind)

    def _durations(self) -> dict[str, list[int]]:
        return {kind: self.sums(kind) for kind in (WAIT, HANDLING)}

    def now(self) -> Now:
        """The rates of the last five seconds, the times of the last five minutes."""
        sent, delivered, acked = [sum(self._rates[place::3]) / STEP_SECONDS for place in range(3)]
        before, durations = self._marks[0], self._durations()
        waits = added(durations[WAIT], before[WAIT])
        handled = added(durations[HANDLING], before[HANDLING])
        return Now(
            sent,
            delivered,
            acked,
            quantile(MESSAGE_MS, waits, 0.5),
            quantile(MESSAGE_MS, waits, 0.99),
            quantile(MESSAGE_MS, handled, 0.9),
            self._counters.queues.total(PRODUCED),
        )
