"""The health of each queue: gathers the facts, and holds verdicts so that they do not flicker.

A row of the levels broken and attention is shown after its cause has lasted for 60 s (broken) or 5 min (attention)
without a break, and until the cause has been gone for 60 s. Meanwhile it has the sentences of the last time that it
applied. Every row has its own times: a cause that comes and goes does not restart those of another one.
"""

from collections.abc import Callable
from math import ceil
from typing import TypeAlias

from msgspec.structs import replace

from forq_trio.broker.known import Known
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.queues.bodies import QueueHealth
from forq_trio.model.queues.setting_values import Overflow, Rate
from forq_trio.model.workers.types import QueueWorkers
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.verdicts import HEALTHY, ROWS, Facts, said
from forq_trio.monitor.watched import Watched
from forq_trio.telemetry.counters import Counters

HELD_SECONDS = {"broken": 60.0, "attention": 300.0}
GONE_SECONDS = 60.0
_TROUBLES = [(place, row) for place, row in enumerate(ROWS) if row.level in HELD_SECONDS]
_REST = [(place, row) for place, row in enumerate(ROWS) if row.level not in HELD_SECONDS]
_LATELY_MINUTES = 5


class _Cause:
    """The cause of a row: since when (seconds and epoch ms) it applies, until when it is shown, and its verdict."""

    __slots__ = ("began", "began_ms", "health", "last", "shown")

    def __init__(self, now: float, now_ms: int) -> None:
        self.began = self.last = now
        self.began_ms = now_ms
        self.health = HEALTHY
        self.shown = False


class Holding:
    """The causes of trouble of one queue."""

    def __init__(self) -> None:
        self.causes: dict[int, _Cause] = {}

    def judge(self, facts: Facts, now: float, now_ms: int) -> QueueHealth:
        """The verdict to show. now: seconds of a clock that only goes forward."""
        for place, row in _TROUBLES:
            if row.holds(facts):
                cause = self.causes.get(place)
                if cause is None:
                    cause = self.causes[place] = _Cause(now, now_ms)
                cause.last = now
                cause.health = replace(said(row, facts), since=cause.began_ms)
                cause.shown = cause.shown or now - cause.began >= HELD_SECONDS[row.level]
            elif place in self.causes:
                cause = self.causes[place]
                if not cause.shown or now - cause.last >= GONE_SECONDS:
                    del self.causes[place]
        shown = min((place for place, cause in self.causes.items() if cause.shown), default=len(ROWS))
        for place, row in _REST:
            if place > shown:
                break
            if row.holds(facts):
                health = said(row, facts)
                if facts.paused_ms is None or row.level != "paused":
                    return health
                return replace(health, since=now_ms - facts.paused_ms)
        return self.causes[shown].health


WorkersOf: TypeAlias = Callable[[str], QueueWorkers]
"""The workers of a queue in numbers."""


def no_workers(queue: str) -> QueueWorkers:
    """A `WorkersOf` for brokers to which no workers report."""
    return QueueWorkers()


class FactGatherer:
    """Gathers the facts about a queue; runs no query."""

    def __init__(
        self, known: Known, counters: Counters, ages: Ages, clock: Clock, workers: WorkersOf = no_workers
    ) -> None:
        self._known = known
        self._counters = counters
        self._ages = ages
        self._clock = clock
        self._workers = workers

    def _next_token_ms(self, queue: str, rate: Rate | None) -> int:
        if rate is None:
            return 0
        return rate.turn_ms(1, self._known.rate_full_at(queue), self._clock.now_ms())

    def facts(self, watched: Watched, now: float, *, dead_letters: bool) -> Facts:
        """The facts about a queue. now: on the monitor's clock. dead_letters: the queue takes some."""
        queue = watched.name
        counts = self._known.counts_of(queue)
        workers = self._workers(queue)
        rules = self._known.rules(queue)
        lately = watched.window(_LATELY_MINUTES)
        reasons = self._counters.nack_reasons.latest(self._clock.now_ms(), queue)
        reason, same_reason = reasons.most_common(1)[0] if reasons else (None, 0)
        five, ten = watched.marks.before(_LATELY_MINUTES), watched.marks.before(2 * _LATELY_MINUTES)
        handling = watched.times.handling
        p99 = None if handling is None else handling.quantile(0.99)
        return Facts(
            dead_letters=dead_letters,
            seconds=lately.seconds,
            ready=counts.ready,
            in_flight=counts.processing,
            waiting=self._known.waiting(queue),
            messages=counts.total,
            bytes=counts.bytes,
            max_messages=rules.max_messages,
            max_bytes=rules.max_bytes,
            rejects=rules.overflow is Overflow.REJECT,
            held=counts.held,
            in_flight_max=rules.in_flight_max,
            rate=rules.rate,
            next_token_ms=self._next_token_ms(queue, rules.queue_rate),
            paused=rules.paused,
            paused_ms=_since(watched.pause.since, now) if rules.paused else None,
            oldest_ms=self._ages.age_ms(queue),
            sent=lately.sent,
            delivered=lately.delivered,
            acked=lately.acked,
            ended=lately.ended,
            lost=lately.lost,
            refused=lately.refused,
            nacks=reasons.total(),
            reason=reason,
            same_reason=same_reason,
            ready_grew=None if ten is None else counts.ready - ten[0],
            ready_fell=None if five is None else five[0] - counts.ready,
            grew=counts.total - watched.marks.at(60)[1] if dead_letters else 0,
            quiet_ms=_since(watched.active_at, now),
            unchanged_ms=_since(watched.growth.at, now),
            watched_ms=_since(watched.started_at, now) or 0,
            lease_ms=rules.lease_ms,
            handling_p99_ms=p99,
            workers=workers.workers,
            silent_workers=workers.silent,
            held_by_silent=workers.held,
            slots=workers.slots,
            slots_busy_ms=None if workers.busy_since is None else self._clock.now_ms() - workers.busy_since,
        )


def _since(at: float | None, now: float) -> int | None:
    return None if at is None else ceil((now - at) * limits.SECOND_MS)
