"""The monitor: samples the counters once a second, and gives each queue a verdict.

Rules
- `sample` runs no query and reads only the clock that it was given. It does a fixed share of its work each second: it
  samples a fifth of the queues, and judges those among them that were judged longest ago, or that have changed.
- At most SERIES_QUEUES_MAX queues are watched, first come first served; a queue that is gone leaves its place.
- The first fifth of a queue's seconds is its slice: each step of 5 s has one sample of each queue. Seconds that were
  missed, because the loop was busy, are sampled later; a gap of more than a step is a gap in the charts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from forq_trio.broker.known import Known
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.bodies import QueueHealth
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.health import FactGatherer, Holding, WorkersOf, no_workers
from forq_trio.monitor.history import MetricHistory
from forq_trio.monitor.rings import Values
from forq_trio.monitor.totals import Now, Totals
from forq_trio.monitor.verdicts import HEALTHY
from forq_trio.monitor.watched import STEP_SECONDS, Watched
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import QUEUE_LABELS, QUEUE_TEXTS, Family, Labelled, gauge

JUDGED_SECONDS = 15.0
JUDGED_SECONDS_STILL = 60.0
_HOUR_MINUTES = 60

NOT_WATCHED = QueueHealth("fine", f"Not watched, there are more than {limits.SERIES_QUEUES_MAX:,} queues")


class _Judged:
    """The verdict on a queue, and the queue's state when it was judged."""

    __slots__ = ("at", "dead_letters", "grew_at", "health", "holding", "paused", "snapshot")

    def __init__(self) -> None:
        self.at = float("-inf")
        self.health = HEALTHY
        self.holding = Holding()
        self.snapshot: Values | None = None
        self.paused = False
        self.dead_letters = False
        self.grew_at: float | None = None

    def is_due(self, watched: Watched, now: float) -> bool:
        """Whether to judge the queue now. An empty, idle queue is judged less often.

        One that was paused is judged at once, and one that got dead letters.
        """
        if watched.pause.is_on != self.paused or self.misses_growth(watched):
            return True
        passed = now - self.at
        if passed < JUDGED_SECONDS:
            return False
        is_still = watched.is_empty and watched.snapshot == self.snapshot and not self.holding.causes
        return not is_still or passed >= JUDGED_SECONDS_STILL

    def misses_growth(self, watched: Watched) -> bool:
        """Whether dead letters came that the verdict does not know of."""
        return self.dead_letters and watched.growth.at != self.grew_at


class _Slice:
    """The queues that are sampled in the same second."""

    __slots__ = ("oldest_seconds", "watched")

    def __init__(self) -> None:
        self.watched: dict[str, Watched] = {}
        self.oldest_seconds = 0.0  # how long its oldest message, without dead letters, has been ready


class Monitor:
    """Samples and judges the queues. history: for charts."""

    def __init__(
        self,
        known: Known,
        counters: Counters,
        ages: Ages,
        seconds: Callable[[], float],
        clock: Clock,
        workers: WorkersOf = no_workers,
    ) -> None:
        """seconds: a clock that only goes forward. clock: the wall clock. workers: returns those of a queue."""
        self._known = known
        self._counters = counters
        self._ages = ages
        self._seconds = seconds
        self._clock = clock
        self._gatherer = FactGatherer(known, counters, ages, clock, workers)
        self._watched: dict[str, Watched] = {}
        self._slices = [_Slice() for _ in range(STEP_SECONDS)]
        self._judged: dict[str, _Judged] = {}
        self._levels: dict[str, str] = {}
        self._watches_all = False  # whether the last search left no queue unwatched
        self._started_at = seconds()
        self._second = int(self._started_at)  # of the last sample
        self._totals = Totals(counters, self._started_at)
        self.history = MetricHistory(self._watched, seconds, clock)

    # What is known

    def now(self, queue: str) -> Now:
        """What happens in a queue now; zeros for one that is not watched."""
        watched = self._watched.get(queue)
        activity = self._counters.queues.activity(queue)
        sent = 0 if activity is None else activity.sent.count
        if watched is None:
            return Now(0.0, 0.0, 0.0, None, None, None, sent)
        p50 = p99 = p90 = None
        times, rates = watched.times, watched.rates
        if times.waits is not None:
            p50, p99 = times.waits.quantile(0.5), times.waits.quantile(0.99)
        if times.handling is not None:
            p90 = times.handling.quantile(0.9)
        hour = watched.window(_HOUR_MINUTES)
        offers = (rates.offered, hour.offered, hour.created)
        return Now(rates.sent, rates.delivered, rates.acked, p50, p99, p90, sent, *offers)

    def rates(self, queue: str) -> tuple[float, float, float]:
        """How many messages a second are sent, delivered and acked; zeros for a queue that is not watched."""
        watched = self._watched.get(queue)
        return (0.0, 0.0, 0.0) if watched is None else watched.rates[:3]

    def total_now(self) -> Now:
        """What happens in all queues now."""
        return self._totals.now()

    def health(self, queue: str) -> QueueHealth:
        """The verdict on a queue; a queue that is not known is healthy.

        It is up to a minute old, but that of a dead-letter queue never says that nothing came where something did.
        """
        judged = self._judged.get(queue)
        if judged is not None:
            if judged.dead_letters:
                now, watched = self._seconds(), self._watched[queue]
                watched.note_growth(now, self._known.counts_of(queue).total)
                if judged.misses_growth(watched):
                    self._judge(watched, judged, now, dead_letters=True)
            return judged.health
        return HEALTHY if self._counters.queues.activity(queue) is not None else NOT_WATCHED

    def healths(self) -> Mapping[str, QueueHealth]:
        """The verdict on each queue that is watched."""
        return {queue: judged.health for queue, judged in self._judged.items()}

    def grown(self, queue: str) -> int:
        """By how many messages a queue grew in the last hour, or since the start; 0 if it did not."""
        watched = self._watched.get(queue)
        if watched is None or watched.first_at is None:
            return 0
        return max(0, self._known.counts_of(queue).total - watched.marks.at(60)[1])

    def oldest_age_ms(self, queue: str) -> int | None:
        """How long the oldest ready message of a queue could have been claimed; None without one.

        It was read at most 30 s ago, or by `refresh_ages`.
        """
        return self._ages.age_ms(queue)

    async def refresh_ages(self, queues: Sequence[str], max_age_seconds: float) -> None:
        """Read the ages of queues whose last read is older than `max_age_seconds`, of 100 queues at most.

        Raises ReadDeadlineExceeded, StorageUnavailable or Stopping. Cancelled, the read is interrupted.
        """
        await self._ages.refresh(queues, max_age_seconds)

    def families(self) -> Iterator[Family]:
        """Queues by label and level: one series for a queue, so that only the present level has one."""
        label = self._counters.queues.key
        counted = Counter((label(queue), level) for queue, level in self._levels.items())
        yield gauge(
            "forq_queue_health",
            "1 for the level of a queue's health; among other queues, how many have it.",
            Labelled(
                (*QUEUE_LABELS, "level"),
                [(f'{QUEUE_TEXTS[key]},level="{level}"', count) for (key, level), count in counted.items()],
            ),
        )

    # Sampling

    def begin(self) -> None:
        """Watch the queues that there are: whatever they get from now on is new."""
        self._find_queues(self._seconds())

    def sample(self) -> int:
        """Note what happened since the last call; returns how many queues were sampled.

        Call it once a second, soon after the second began.
        """
        now = self._seconds()
        second = int(now)
        if second <= self._second:
            return 0
        looked_at = 0
        for due in range(max(self._second + 1, second - STEP_SECONDS + 1), second + 1):
            if due % STEP_SECONDS == 0:
                self._find_queues(now)
            looked_at += self._sample_slice(due, now)
        self._second = second
        values = self._totals.sample(now, self._known, max(each.oldest_seconds for each in self._slices))
        self.history.add_total(second, values)
        return looked_at

    def _find_queues(self, now: float) -> None:
        """Watch queues that are new, and forget those that are gone."""
        counts = self._known.counts()
        for queue in [queue for queue in self._watched if queue not in counts]:
            watched = self._watched.pop(queue)
            del self._slices[watched.slice].watched[queue]
            del self._judged[queue]
            self._levels.pop(queue, None)
        self._counters.keep(counts)
        for queue in counts:
            if len(self._watched) >= limits.SERIES_QUEUES_MAX:
                break
            if queue not in self._watched and self._counters.queues.activity(queue) is not None:
                place = min(range(STEP_SECONDS), key=lambda each: len(self._slices[each].watched))
                watched = Watched(
                    queue,
                    self._counters,
                    max(self._started_at, now - STEP_SECONDS),
                    place,
                    QueueCounts() if self._watches_all else counts[queue],
                )
                self._watched[queue] = self._slices[place].watched[queue] = watched
                self._judged[queue] = _Judged()
        self._watches_all = len(self._watched) == len(counts)

    def _sample_slice(self, second: int, now: float) -> int:
        """Sample the part of the queues that is due this second."""
        part, step = self._slices[second % STEP_SECONDS], second // STEP_SECONDS
        known, age_ms = self._known, self._ages.age_ms
        oldest = 0
        takers: set[str] | None = None
        for queue, watched in part.watched.items():
            age = age_ms(queue)
            counts = known.counts_of(queue)
            rules = known.rules(queue)
            held = 0
            if rules.rate is not None:
                held = rules.rate.holds(
                    counts.ready, counts.held, known.rate_full_at(queue), self._clock.now_ms()
                )
            watched.sample(now, step, counts, age, paused=rules.paused, held_by_rate=held)
            judged = self._judged[queue]
            is_oldest, is_due = age is not None and age > oldest, judged.is_due(watched, now)
            if not is_oldest and not is_due:
                continue
            takers = self._takers() if takers is None else takers
            takes_dead_letters = queue in takers or is_dead_letter_queue(queue)
            if age is not None and is_oldest and not takes_dead_letters:
                oldest = age
            if is_due:
                self._judge(watched, judged, now, dead_letters=takes_dead_letters)
        part.oldest_seconds = oldest / limits.SECOND_MS
        return len(part.watched)

    def _takers(self) -> set[str]:
        """The queues that settings name as a dead-letter queue."""
        return {settings.dead_letter_queue or "" for settings in self._known.settings().values()}

    def _judge(self, watched: Watched, judged: _Judged, now: float, *, dead_letters: bool) -> None:
        facts = self._gatherer.facts(watched, now, dead_letters=dead_letters)
        judged.health = judged.holding.judge(facts, now, self._clock.now_ms())
        judged.at = now
        judged.dead_letters, judged.grew_at = dead_letters, watched.growth.at
        judged.snapshot, judged.paused = watched.snapshot, bool(watched.pause.is_on)
        self._levels[watched.name] = judged.health.level
