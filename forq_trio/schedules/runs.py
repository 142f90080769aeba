"""The instants of runs (epoch ms): of intervals, and of local times where the clocks change.

The rule for local times is that of Vixie cron. Wildcards (minute or hour of a cron expression begins with *) run
whenever the clocks show a matching time. So they go on by elapsed time: times that are skipped have no run, and times
that come twice have two. All others are fixed times, and each has exactly one run, as `FixedTimes` says.
"""

from bisect import bisect_left
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from forq_trio.model import limits
from forq_trio.model.durations import exactly
from forq_trio.schedules.local_times import DAY_SECONDS, LocalTimes
from forq_trio.schedules.zones import (
    CHANGES_APART_SECONDS,
    change_between,
    changes_within,
    instant_of,
    is_skipped,
    offset_at,
    repeated_by,
)

_EPOCH = datetime(1970, 1, 1)
# Up to a day of local times is skipped at once, which may be 86,400 runs a millisecond apart. After this time the later
# ones are at their own instants again.
_GAP_OVER_SECONDS = 100
_YEARS_SECONDS_MAX = (limits.CRON_YEARS_MAX + 1) * 366 * DAY_SECONDS


class RunTimes(Protocol):
    """All runs of a timing."""

    def after(self, at_ms: int) -> int | None:
        """The first one after an instant; None if none comes within CRON_YEARS_MAX years."""

    def latest(self, at_ms: int) -> int | None:
        """The last one up to an instant; None if none was within CRON_YEARS_MAX years."""

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many there are after `after_ms`, up to `until_ms`."""

    def note(self, at_ms: int) -> str | None:
        """A sentence about a run that a change of the clocks affects."""


class Intervals:
    """A run every so many ms, from the first one on."""

    def __init__(self, first_ms: int, every_ms: int) -> None:
        self._first_ms = first_ms
        self._every_ms = every_ms

    def after(self, at_ms: int) -> int | None:
        return self._first_ms + self._up_to(at_ms) * self._every_ms

    def latest(self, at_ms: int) -> int | None:
        count = self._up_to(at_ms)
        return self._first_ms + (count - 1) * self._every_ms if count else None

    def count(self, after_ms: int, until_ms: int) -> int:
        return self._up_to(until_ms) - self._up_to(after_ms)

    def note(self, at_ms: int) -> str | None:
        return None

    def _up_to(self, at_ms: int) -> int:
        return max(0, (at_ms - self._first_ms) // self._every_ms + 1)


class FixedTimes:
    """A run for each local time.

    One that comes twice has its run at the first of the two. One that is skipped has it as soon as the clocks have gone
    forward. If there are more of that instant, each comes a millisecond after the one before, in the order of the
    clocks.
    """

    def __init__(self, local: LocalTimes, zone: ZoneInfo) -> None:
        self._local = local
        self._zone = zone

    def after(self, at_ms: int) -> int | None:
        found = self._local.next(self._reached(at_ms))
        return None if found is None else self._instant(found)

    def latest(self, at_ms: int) -> int | None:
        found = self._local.previous(self._reached(at_ms))
        return None if found is None else self._instant(found)

    def count(self, after_ms: int, until_ms: int) -> int:
        return self._local.count(self._reached(after_ms), self._reached(until_ms))

    def note(self, at_ms: int) -> str | None:
        found = self._local.previous(self._reached(at_ms))
        local = _EPOCH + timedelta(seconds=found or 0)
        if is_skipped(local, self._zone):
            now = datetime.fromtimestamp(at_ms // 1_000, self._zone)
            return f"The clocks go forward: {_clock(local)} does not exist on this day, so it runs at {_clock(now)}."
        if repeated_by(local, self._zone):
            return f"The clocks go back: {_clock(local)} comes twice on this day; it runs at the first."
        return None

    def _reached(self, at_ms: int) -> int:
        """The end of the local times whose runs are not after an instant: the time that the clocks show next.

        While they show times for the second time, it is the end of those.
        """
        at = at_ms // 1_000
        now = datetime.fromtimestamp(max(at, 0), self._zone)
        offset, before = offset_at(at, self._zone), offset_at(at - _GAP_OVER_SECONDS, self._zone)
        if now.fold:
            back = int(repeated_by(now.replace(tzinfo=None), self._zone).total_seconds())
            return change_between(at - back, at, self._zone) + offset + back
        reached = at + offset + 1
        if offset <= before:
            return reached
        change = change_between(at - _GAP_OVER_SECONDS, at, self._zone)
        gap = change + before
        count = at_ms - change * 1_000 + 1
        if self._local.count(gap, reached) <= count:
            return reached
        return gap + bisect_left(range(gap, reached), count, key=lambda end: self._local.count(gap, end))

    def _instant(self, local: int) -> int:
        at_ms = instant_of(_EPOCH + timedelta(seconds=local), self._zone)
        at = at_ms // 1_000
        before = offset_at(at - _GAP_OVER_SECONDS, self._zone)
        if before >= offset_at(at, self._zone):
            return at_ms
        change = change_between(at - _GAP_OVER_SECONDS, at, self._zone)
        return max(at_ms, change * 1_000 + self._local.count(change + before, local))


class WildcardTimes:
    """A run at each instant at which the clocks show one of these local times."""

    def __init__(self, local: LocalTimes, zone: ZoneInfo) -> None:
        self._local = local
        self._zone = zone

    def after(self, at_ms: int) -> int | None:
        at = at_ms // 1_000 + 1
        until = at + _YEARS_SECONDS_MAX
        while True:
            offset = offset_at(at, self._zone)
            local = self._local.next(at + offset)
            if local is None or (found := local - offset) > until:
                return None  # or it is a time that is skipped whenever it would come
            near = min(found, at + CHANGES_APART_SECONDS)
            if offset_at(near, self._zone) != offset:
                at = change_between(at, near, self._zone)
            elif near < found:  # nothing is in between, whatever the clocks do
                at = max(near, found - CHANGES_APART_SECONDS)
            else:
                return found * 1_000

    def latest(self, at_ms: int) -> int | None:
        at = at_ms // 1_000
        since = max(0, at - _YEARS_SECONDS_MAX)
        while True:
            offset = offset_at(at, self._zone)
            local = self._local.previous(at + offset + 1)
            if local is None or (found := local - offset) < since:
                return None
            near = max(found, at - CHANGES_APART_SECONDS)
            if offset_at(near, self._zone) != offset:
                at = change_between(near, at, self._zone) - 1
            elif near > found:
                at = min(near, found + CHANGES_APART_SECONDS)
            else:
                return found * 1_000

    def count(self, after_ms: int, until_ms: int) -> int:
        begin, end = after_ms // 1_000 + 1, until_ms // 1_000 + 1
        found = 0
        for until in (*changes_within(begin, end, self._zone), end):
            offset = offset_at(begin, self._zone)
            found += self._local.count(begin + offset, until + offset)
            begin = until
        return found

    def note(self, at_ms: int) -> str | None:
        """About the first run after a change."""
        before_ms = max(self.latest(at_ms - 1) or 0, at_ms - limits.DAY_MS)
        by = offset_at(at_ms // 1_000, self._zone) - offset_at(before_ms // 1_000, self._zone)
        if not by:
            return None
        return (
            f"The clocks go {'forward' if by > 0 else 'back'} by {exactly(abs(by) * 1_000)} before this run."
        )


def _clock(local: datetime) -> str:
    return local.strftime("%H:%M:%S" if local.second else "%H:%M")
