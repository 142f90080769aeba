"""One queue as the monitor knows it: its rings, what happened within the last minutes, and its recent durations."""

from array import array
from enum import StrEnum
from math import nan
from operator import sub

from forq_trio.model import limits
from forq_trio.model.messages import QueueCounts
from forq_trio.monitor.quantiles import Recent, added
from forq_trio.monitor.rings import NOTHING, Cascade, Ring, Values
from forq_trio.storage.engine import HANDLING, WAIT
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.histogram import quantile


class Metric(StrEnum):
    """What charts draw. Rates are per second, LEASES_ENDED per minute; the age and the time to ack are in seconds.

    HELD_BY_RATE: how many messages wait for the rate of their queue or group. OFFERED: offers of messages with a key.
    Neither is known of all queues together.
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
_MARKED = ("sent", "delivered", "acked", "ended", "lost", "refused", "offered", "created", "ready", "total")
"""The columns of the marks: counters, then messages."""
_COUNTERS = 8
_MARKS = 61


class Window:
    """What happened in a queue within the last minutes. created: offers that were stored. seconds: how long."""

    __slots__ = ("acked", "created", "delivered", "ended", "lost", "offered", "refused", "seconds", "sent")

    def __init__(self, now: Values, then: Values | None, seconds: float) -> None:
        counts = now if then is None else list(map(sub, now, then))
        counters = map(int, counts[:_COUNTERS])
        self.sent, self.delivered, self.acked, self.ended, self.lost, self.refused, *offers = counters
        self.offered, self.created = offers
        self.seconds = max(seconds, 1.0)


class Watched:
    """A queue that is watched. Times are seconds of the monitor's clock.

    is_new: it was not there when the monitor last looked for queues, so all its messages came since then.
    first_at: of the first sample. active_at: when a message was last sent or delivered; grew_at: when it last got more
    messages; paused_at: when it was paused; None if that was before the start.
    """

    __slots__ = (
        "_counters",
        "_handled",
        "_since",
        "active_at",
        "first_at",
        "grew_at",
        "handling",
        "is_new",
        "marks",
        "name",
        "offers_per_second",
        "paused",
        "paused_at",
        "rates",
        "rings",
        "slice",
        "snapshot",
        "started_at",
        "total",
        "waits",
    )

    def __init__(
        self, name: str, counters: Counters, started_at: float, slice_: int, *, is_new: bool = False
    ) -> None:
        self.name = name
        self.is_new = is_new
        self.slice = slice_
        self.started_at = started_at
        self.rings = Cascade((POINTS, POINTS, POINTS), _RATIOS, len(COLUMNS))
        self.marks = Ring(_MARKS, len(_MARKED), "d")
        self.rates = (0.0, 0.0, 0.0)
        self.offers_per_second = 0.0
        self.snapshot = array("d", [0.0] * len(_MARKED))
        self.first_at: float | None = None
        self.active_at: float | None = None
        self.grew_at: float | None = None
        self.paused: bool | None = None
        self.paused_at: float | None = None
        self.total = 0
        self.waits: Recent | None = None
        self.handling: Recent | None = None
        self._counters = counters
        self._handled: list[int] | None = None
        self._since = started_at

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
        elapsed = now - self._since
        if elapsed > 0:
            self.rates = (
                (sent - before[0]) / elapsed,
                (delivered - before[1]) / elapsed,
                (acked - before[2]) / elapsed,
            )
            self.offers_per_second = (offered - before[6]) / elapsed
        age = nan if oldest_ms is None and counts.ready else (oldest_ms or 0) / limits.SECOND_MS
        ended_a_minute = (ended - before[3]) * 60 / elapsed if elapsed > 0 else 0.0
        acks = self._ack_p90() if acked != before[2] else nan
        values = (*self.rates, counts.ready, age, ended_a_minute, acks, held_by_rate, self.offers_per_second)
        self.rings.put(step, array("f", values))
        if sent + delivered > before[0] + before[1]:
            self.active_at = now
        if total > self.total and (self.is_new or self.first_at is not None):
            self.grew_at = now
        if paused is not self.paused:
            self.paused_at = now if paused and self.paused is not None else None
            self.paused = paused
        self.first_at = now if self.first_at is None else self.first_at
        self.total = total
        self._since = now
        self.snapshot = array(
            "d",
            (
                *(sent, delivered, acked, ended, activity.lost.count, activity.refused),
                *(offered, activity.created.count, counts.ready, total),
            ),
        )
        minute = step * STEP_SECONDS // 60
        if minute > self.marks.last:
            self._mark(minute)

    @property
    def is_empty(self) -> bool:
        """There was no message at the last sample."""
        return self.total == 0

    def _mark(self, minute: int) -> None:
        """A minute began: what happens from now on can be told from what happened before."""
        if self.marks.last == NOTHING:  # the counters of a queue begin with it
            messages = (0.0, 0.0) if self.is_new else self.snapshot[_COUNTERS:]
            self.marks.put(minute, array("d", (*[0.0] * _COUNTERS, *messages)))
        else:
            self.marks.put(minute, self.snapshot)
        if self.handling is None:
            found = self._counters.durations.histogram(HANDLING, self.name)
            self.handling = None if found is None else Recent(found)
        else:
            self.handling.mark()
        if self.waits is None:
            found = self._counters.durations.histogram(WAIT, self.name)
            self.waits = None if found is None else Recent(found)
        else:
            self.waits.mark()

    def _ack_p90(self) -> float:
        """Of the messages that were acknowledged since the last sample; NaN where it is not known."""
        histogram = self._counters.durations.histogram(HANDLING, self.name)
        if histogram is None:
            return nan
        counts = [*histogram.counts]
        new = counts if self._handled is None else added(counts, self._handled)
        self._handled = counts
        found = quantile(histogram.bounds, new, 0.9)
        return nan if found is None else found / limits.SECOND_MS

    def window(self, minutes: int) -> Window:
        """What happened since the mark of `minutes` ago, or since the first one."""
        minute = self._marked(minutes)
        seconds = self._since - max(minute * 60, self.started_at)
        return Window(self.snapshot, self.marks.get(minute), seconds)

    def before(self, minutes: int) -> tuple[int, int] | None:
        """How many messages were ready then, and how many there were; None if it was not watched yet."""
        if self._marked(minutes) > self.marks.last - minutes:
            return None
        return self.at_mark(minutes)

    def at_mark(self, minutes: int) -> tuple[int, int]:
        """How many messages were ready then, and how many there were; or when it was first watched."""
        found = self.marks.get(self._marked(minutes))
        return (0, 0) if found is None else (int(found[_COUNTERS]), int(found[_COUNTERS + 1]))

    def _marked(self, minutes: int) -> int:
        """The first marked minute of the last `minutes`."""
        for minute in range(self.marks.last - minutes, self.marks.last):
            found = self.marks.get(minute)
            if found is not None and found[0] == found[0]:  # NaN: there was no sample
                return minute
        return self.marks.last
