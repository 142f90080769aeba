"""When a schedule runs: its nominal times, and their jitter.

`cron` and `daily` are local times of the time zone (zones.py says what a clock change does to them); several local
times that are the same instant are one run. `every` counts from `start`, which is itself a run, or, without one, from
when the schedule was made. No run is before `start` or after `end`.
"""

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from hashlib import blake2b
from itertools import takewhile
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.durations import exactly
from forq_trio.model.errors import InvalidRequest, InvalidSchedule
from forq_trio.model.schedules.types import NextRun, Timing
from forq_trio.schedules.cron import check_cron, times_after, times_before
from forq_trio.schedules.zones import instant_of, is_skipped, local_of, repeated_by, zone_of

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_LATEST = (
    limits.SCHEDULE_TIME_MS_MAX - 2 * limits.DAY_MS
)  # so that its local time is one of Python's in every zone


class _Run(NamedTuple):
    """A run: its instant (epoch ms), and its local time, None for `every`."""

    at: int
    local: datetime | None


class NominalTimes:
    """The nominal times of a valid timing. made_at: when its schedule was made (epoch ms)."""

    def __init__(self, timing: Timing, made_at: int) -> None:
        self._timing = timing
        self._zone = zone_of(timing.time_zone)
        self._every_ms = timing.every_ms
        self._daily = sorted(_time_of(text) for text in timing.daily or ())
        self._first = timing.start if timing.start is not None else made_at + (self._every_ms or 0)
        self._start = timing.start or 0
        self._end = _LATEST if timing.end is None else min(timing.end, _LATEST)

    def after(self, at_ms: int) -> int | None:
        """The first run after an instant (epoch ms); None for never."""
        found = next(self._after(at_ms), None)
        return None if found is None else found.at

    def latest(self, at_ms: int) -> int | None:
        """The last run up to an instant, which may be before the schedule was made; None for none."""
        at_ms = min(at_ms, self._end)
        if self._every_ms is not None:
            found = self._first + (at_ms - self._first) // self._every_ms * self._every_ms
            return found if found >= self._first else None
        if at_ms < max(self._start, 0):
            return None
        local = local_of(at_ms, self._zone).replace(tzinfo=None, fold=0)
        if local_of(at_ms, self._zone).fold:
            local += repeated_by(local, self._zone)
        instants = (instant_of(each, self._zone) for each in self._locals_before(local + _SECOND))
        at = next((each for each in instants if each <= at_ms), None)
        return at if at is not None and at >= self._start else None

    def between(self, after_ms: int, until_ms: int, limit: int) -> list[int]:
        """The first `limit` runs after `after_ms`, up to `until_ms`."""
        found: list[int] = []
        for run in takewhile(lambda run: run.at <= until_ms, self._after(after_ms)):
            found.append(run.at)
            if len(found) == limit:
                break
        return found

    def count(self, first_ms: int, last_ms: int, looked_at: int) -> tuple[int, bool]:
        """How many runs there are from one run to another, both included, and whether all were counted.

        If times have to be computed one by one, only `looked_at` of them are.
        """
        if self._every_ms is not None:
            return (last_ms - first_ms) // self._every_ms + 1, True
        found = len(self.between(first_ms - 1, last_ms, looked_at + 1))
        return min(found, looked_at), found <= looked_at

    def next(self, at_ms: int, count: int) -> list[NextRun]:
        """The next `count` runs after an instant, each with a note if a clock change affects it."""
        runs = self._after(at_ms)
        return [self._next_run(run) for run, _ in zip(runs, range(count), strict=False)]

    def _after(self, at_ms: int) -> Iterator[_Run]:
        at_ms = max(at_ms, self._start - 1)
        if self._every_ms is not None:
            at = self._first + max(0, (at_ms - self._first) // self._every_ms + 1) * self._every_ms
            while at <= self._end:
                yield _Run(at, None)
                at += self._every_ms
            return
        if at_ms > self._end:
            return
        last = at_ms
        local = local_of(max(at_ms, 0), self._zone).replace(tzinfo=None, fold=0)
        for each in self._locals_after(local - _SECOND):
            at = instant_of(each, self._zone)
            if at > self._end:
                return
            if at > last:
                yield _Run(at, each)
                last = at

    def _locals_after(self, local: datetime) -> Iterator[datetime]:
        if self._timing.cron is not None:
            yield from times_after(self._timing.cron, local)
            return
        day = local.date()
        while True:
            for each in self._daily:
                found = datetime.combine(day, each)
                if found > local:
                    yield found
            day += _DAY

    def _locals_before(self, local: datetime) -> Iterator[datetime]:
        if self._timing.cron is not None:
            yield from times_before(self._timing.cron, local)
            return
        day = local.date()
        while day.year >= datetime.min.year + 1:
            for each in reversed(self._daily):
                found = datetime.combine(day, each)
                if found < local:
                    yield found
            day -= _DAY

    def _next_run(self, run: _Run) -> NextRun:
        local = local_of(run.at, self._zone)
        note = None
        if run.local is not None:
            if is_skipped(run.local, self._zone):
                note = (
                    f"The clocks go forward: {_clock(run.local)} does not exist on this day, so it runs at"
                    f" {_clock(local)}."
                )
            elif repeated_by(run.local, self._zone):
                note = (
                    f"The clocks go back: {_clock(run.local)} comes twice on this day; it runs at the first."
                )
        return NextRun(run.at, local.isoformat(timespec="seconds"), note)


def jitter_of(name: str, nominal_ms: int, jitter_ms: int, gap_ms: int) -> int:
    """By how many ms a run is sent later: up to `jitter_ms`, and less than `gap_ms`; always the same for one run."""
    digest = blake2b(f"{nominal_ms} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % max(1, min(jitter_ms + 1, gap_ms))


def check_timing(timing: Timing) -> None:
    """Raise InvalidCron or InvalidSchedule, which name the member, unless the timing is valid.

    Raises InvalidRequest for a time that is not an integer.
    """
    if [timing.cron, timing.every, timing.daily].count(None) != 2:
        raise InvalidSchedule
    zone_of(timing.time_zone)
    if timing.cron is not None:
        check_cron(timing.cron)
    if timing.every is not None:
        _check_duration("every", timing.every_ms or 0, limits.EVERY_MS_MIN, limits.EVERY_MS_MAX)
    if timing.daily is not None:
        _check_daily(timing.daily)
    _check_duration("jitter", timing.jitter_ms, 0, limits.JITTER_MS_MAX)
    for name, at_ms in (("start", timing.start), ("end", timing.end)):
        if at_ms is None:
            continue
        if not isinstance(at_ms, int) or isinstance(at_ms, bool):
            raise InvalidRequest(f"{name} must be an integer (int)", field=name)
        if not 0 <= at_ms <= limits.SCHEDULE_TIME_MS_MAX:
            raise InvalidSchedule(f"{name}: {at_ms} is not 0 to {limits.SCHEDULE_TIME_MS_MAX}", field=name)
    if timing.start is not None and timing.end is not None and timing.end < timing.start:
        raise InvalidSchedule("end: it lies before start", field="end")


def _check_duration(name: str, ms: int, low: int, high: int) -> None:
    if not low <= ms <= high:
        raise InvalidSchedule(f"{name}: it must be {exactly(low)} to {exactly(high)}", field=name)


def _check_daily(texts: tuple[str, ...]) -> None:
    if not 1 <= len(texts) <= limits.DAILY_MAX:
        raise InvalidSchedule(f"daily: 1 to {limits.DAILY_MAX} times, not {len(texts)}", field="daily")
    if len({_time_of(text) for text in texts}) < len(texts):
        raise InvalidSchedule("daily: a time is in it twice", field="daily")


def _time_of(text: str) -> time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise InvalidSchedule(
            f"daily: {text[:40]!r} is not a time of day such as 08:00 or 08:00:30", field="daily"
        )
    return time(int(found[1]), int(found[2]), int(found[3] or 0))


def _clock(local: datetime) -> str:
    return local.strftime("%H:%M:%S" if local.second else "%H:%M")
