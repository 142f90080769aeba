"""When a schedule runs: its nominal times, and their jitter.

`cron` and `daily` are local times of the time zone (runs.py says what a clock change does to them). `every` counts from
`start`, which is itself a run, or, without one, from when the schedule was made. No run is before `start` or after
`end`, and no two are at one millisecond.
"""

import re
from datetime import time
from hashlib import blake2b

from forq_trio.model import limits
from forq_trio.model.durations import exactly
from forq_trio.model.errors import InvalidRequest, InvalidSchedule
from forq_trio.model.schedules.types import NextRun, Timing
from forq_trio.schedules.cron import check_cron, is_wildcard, local_times
from forq_trio.schedules.local_times import LOCAL_MAX, EveryDay, ListedTimes, LocalTimes
from forq_trio.schedules.runs import FixedTimes, Intervals, RunTimes, WildcardTimes
from forq_trio.schedules.zones import local_of, zone_of

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_LATEST = LOCAL_MAX * 1_000
_BACK_MS = 1 << 22  # how far `back` looks first, about an hour


class NominalTimes:
    """The nominal times of a valid timing. made_at: when its schedule was made (epoch ms)."""

    def __init__(self, timing: Timing, made_at: int) -> None:
        self._zone = zone_of(timing.time_zone)
        self._runs = _runs_of(timing, made_at)
        self._start = timing.start or 0
        self._end = _LATEST if timing.end is None else min(timing.end, _LATEST)

    def after(self, at_ms: int) -> int | None:
        """The first run after an instant (epoch ms); None for never."""
        if at_ms >= self._end:
            return None
        found = self._runs.after(max(at_ms, self._start - 1))
        return found if found is not None and found <= self._end else None

    def latest(self, at_ms: int) -> int | None:
        """The last run up to an instant, which may be before the schedule was made; None for none."""
        if at_ms < self._start:
            return None
        found = self._runs.latest(min(at_ms, self._end))
        return found if found is not None and found >= self._start else None

    def between(self, after_ms: int, until_ms: int, limit: int) -> list[int]:
        """The first `limit` runs after `after_ms`, up to `until_ms`."""
        found: list[int] = []
        while len(found) < limit and (at := self.after(after_ms)) is not None and at <= until_ms:
            found.append(at)
            after_ms = at
        return found

    def count(self, after_ms: int, until_ms: int) -> tuple[int, bool]:
        """How many runs there are after `after_ms`, up to `until_ms`; False if there are more.

        Of local times only those in the last RUNS_COUNTED_MS_MAX are counted.
        """
        begin = until_ms - limits.RUNS_COUNTED_MS_MAX
        all_counted = after_ms >= begin or isinstance(self._runs, Intervals)
        return self._count(after_ms if all_counted else begin, until_ms), all_counted

    def back(self, last_ms: int, number: int, after_ms: int) -> int | None:
        """Of the runs after `after_ms`, up to `last_ms`, the one that is `number` - 1 before the last; None if fewer.

        Looks back in steps that grow until they have too many runs, and then halve.
        """
        step_ms, grows = _BACK_MS, True
        while step_ms:
            begin = max(after_ms, last_ms - step_ms)
            found = self._count(begin, last_ms)
            if found < number:
                if begin == after_ms:
                    return None
                number -= found
                last_ms = begin
            else:
                grows = False
            step_ms = step_ms * 2 if grows else step_ms // 2
        return last_ms

    def next(self, at_ms: int, count: int) -> list[NextRun]:
        """The next `count` runs after an instant, each with a note if a clock change affects it."""
        found: list[NextRun] = []
        while len(found) < count and (at := self.after(at_ms)) is not None:
            found.append(self._described(at, self._runs.note(at)))
            at_ms = at
        return found

    def described(self, at_ms: int) -> NextRun:
        """A run. It may be one that was stored before the rules of the time zone, or ours, have changed."""
        return self._described(at_ms, self._runs.note(at_ms) if self.after(at_ms - 1) == at_ms else None)

    def _described(self, at_ms: int, note: str | None) -> NextRun:
        return NextRun(at_ms, local_of(at_ms, self._zone).isoformat(timespec="seconds"), note)

    def _count(self, after_ms: int, until_ms: int) -> int:
        after_ms, until_ms = max(after_ms, self._start - 1), min(until_ms, self._end)
        return self._runs.count(after_ms, until_ms) if after_ms < until_ms else 0


def _runs_of(timing: Timing, made_at: int) -> RunTimes:
    if timing.every_ms is not None:
        first_ms = made_at + timing.every_ms if timing.start is None else timing.start
        return Intervals(first_ms, timing.every_ms)
    zone = zone_of(timing.time_zone)
    if timing.cron is None:
        times = [_time_of(text) for text in timing.daily or ()]
        seconds = [(each.hour * 60 + each.minute) * 60 + each.second for each in times]
        return FixedTimes(LocalTimes(EveryDay(), ListedTimes(seconds)), zone)
    local = local_times(timing.cron)
    return WildcardTimes(local, zone) if is_wildcard(timing.cron) else FixedTimes(local, zone)


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
