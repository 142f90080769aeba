"""One queue as the monitor knows it: its rings, its marks of the last minutes, and its recent durations."""

from array import array
from enum import StrEnum
from math import nan
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.monitor.marks import COUNTERS, MARKED, Marks, Window
from forq_trio.monitor.quantiles import QueueTimes
from forq_trio.monitor.rings import Cascade
from forq_trio.telemetry.counters import Counters


class Metric(StrEnum):
    """The metrics of charts. Rates are per second, LEASES_ENDED per minute; the age and the time to ack are in seconds.

    HELD_BY_RATE: how many messages wait for the rate of their queue or group. OFFERED: offers of messages with a key.
    These two are not known for all queues together.
    """

    SENT = "sent"
    DELIVERED = "delivered"
    ACKED = "acked"
    READY = "ready"
    OLDEST_SECONDS = "oldest_seconds"
    LEASES_ENDED = "leases_ended"
    ACK_P90_SECONDS = "ack_p90_seconds"
    HELD_BY_RATE = "held_by_rate"
    OFFERED = "offered"


COLUMNS = {metric: place for place, metric in enumerate(Metric)}

STEP_SECONDS = 5
POINTS = 120
_RATIOS = (6, 24)
_TOTAL = MARKED.index("total")


class QueueRates(NamedTuple):
    """How many messages a second were sent, delivered and acked, and how many offers there were."""

    sent: float = 0.0
    delivered: float = 0.0
    acked: float = 0.0
    offered: float = 0.0


class PauseState:
    """Whether a queue is paused."""

    __slots__ = ("is_on", "since")

    def __init__(self) -> None:
        self.is_on: bool | None = None  # None before the first sample
        self.since: float | None = None  # on the monitor's clock; None if it was paused before the start

    def note(self, *, paused: bool, now: float) -> None:
        if paused is not self.is_on:
            self.since = now if paused and self.is_on is not None else None
            self.is_on = paused


class Growth:
    """When a queue last got messages."""

    __slots__ = ("_came", "_total", "at")

    def __init__(self, total: int) -> None:
        self.at: float | None = None  # on the monitor's clock; None: it got none since it is watched
        self._came = 0
        self._total = total

    def note(self, now: float, came: int, total: int) -> None:
        """came: how many have come so far, as far as that is counted. total: how many there are now."""
        if came > self._came or total > self._total:
            self.at = now
        self._came, self._total = came, total


class Watched:
    """A queue that is watched. Times are seconds of the monitor's clock."""

    __slots__ = (
        "_counters",
        "_sampled_at",
        "active_at",
        "first_at",
        "growth",
        "marks",
        "name",
        "pause",
        "rates",
        "rings",
        "slice",
        "snapshot",
        "started_at",
        "times",
    )

    def __init__(
        self,
        name: str,
        counters: Counters,
        started_at: float,
        slice_: int,
        messages: QueueCounts = QueueCounts(),  # noqa: B008  it is frozen
    ) -> None:
        """messages: those that are not new: what the queue had when it was found, none if it was made since."""
        self.name = name
        self.slice = slice_
        self.started_at = started_at
        self.rings = Cascade((POINTS, POINTS, POINTS), _RATIOS, len(COLUMNS))
        self.times = QueueTimes(name, counters.durations)
        self.rates = QueueRates()
        # the columns of the marks, at the last sample
        self.snapshot = array("d", (*[0.0] * COUNTERS, messages.ready, messages.total))
        self.marks = Marks(started_at, self.snapshot)
        self.first_at: float | None = None  # when the first sample was
        self.active_at: float | None = None  # when a message was last sent or delivered
        self.growth = Growth(messages.total)
        self.pause = PauseState()
        self._counters = counters
        self._sampled_at = started_at

    def sample(
        self,
        now: float,
        step: int,
        counts: QueueCounts,
        oldest_ms: int | None,
        *,
        paused: bool,
        held_by_rate: int,
    ) -> None:
        """Note what changed since the sample before. step: of the finest ring."""
        activity = self._counters.queues.activity(self.name)
        if activity is None:
            return
        before = self.snapshot
        sent, delivered, acked = activity.sent.count, activity.delivered.count, activity.acked.count
        ended = activity.ended.count
        total, offered = counts.total, activity.offered
        elapsed = now - self._sampled_at
        if elapsed > 0:
            self.rates = QueueRates(
                (sent - before[0]) / elapsed,
                (delivered - before[1]) / elapsed,
                (acked - before[2]) / elapsed,
                (offered - before[6]) / elapsed,
            )
        age = nan if oldest_ms is None and counts.ready else (oldest_ms or 0) / limits.SECOND_MS
        ended_a_minute = (ended - before[3]) * 60 / elapsed if elapsed > 0 else 0.0
        acks = self.times.ack_p90() if acked != before[2] else nan
        *rates, offers = self.rates
        values = (*rates, counts.ready, age, ended_a_minute, acks, held_by_rate, offers)
        self.rings.put(step, array("f", values))
        if sent + delivered > before[0] + before[1]:
            self.active_at = now
        self.note_growth(now, total)
        self.pause.note(paused=paused, now=now)
        self.first_at = now if self.first_at is None else self.first_at
        self._sampled_at = now
        self.snapshot = array(
            "d",
            (
                *(sent, delivered, acked, ended, activity.lost.count, activity.refused),
                *(offered, activity.created.count, counts.ready, total),
            ),
        )
        if self.marks.put(step * STEP_SECONDS // 60, self.snapshot):
            self.times.mark()

    def note_growth(self, now: float, total: int) -> None:
        """Note whether messages came since this was called last. total: how many there are now.

        Of those that come by another process only more than go are seen.
        """
        activity = self._counters.queues.activity(self.name)
        came = 0 if activity is None else activity.sent.count + activity.moved_in
        self.growth.note(now, came, total)

    @property
    def is_empty(self) -> bool:
        """Whether the queue had no message at the last sample."""
        return self.snapshot[_TOTAL] == 0

    def window(self, minutes: int) -> Window:
        """How much happened within the last `minutes`, or since the queue has been watched."""
        return self.marks.window(minutes, self._sampled_at, self.snapshot)
