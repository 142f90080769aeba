"""The local times of a timing: what the clocks show at its runs, before a time zone says when that is.

A local time is the number of seconds since 1970 that a clock in the zone shows, a day the number of days. All months of
one length that begin with the same weekday have the same days, so each such month is computed once: then the next time,
and a count over years, take microseconds.
"""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable
from datetime import MAXYEAR, date
from typing import Protocol

from forq_trio.model import limits

DAY_SECONDS = 86_400
LOCAL_MAX = (
    limits.SCHEDULE_TIME_MS_MAX // 1_000 - 2 * DAY_SECONDS
)  # so that it is one of Python's in every zone
_FIRST_DAY = date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal() - _FIRST_DAY


class DayTimes(Protocol):
    """The times of a day, in seconds since midnight, in order."""

    count: int

    def before(self, second: int) -> int:
        """How many are before this one."""

    def at(self, place: int) -> int:
        """The time at this place, from 0."""


class ListedTimes:
    """Times of a day that are listed."""

    def __init__(self, seconds: Iterable[int]) -> None:
        self._seconds = sorted(seconds)
        self.count = len(self._seconds)

    def before(self, second: int) -> int:
        return bisect_left(self._seconds, second)

    def at(self, place: int) -> int:
        return self._seconds[place]


class CombinedTimes:
    """Each of these seconds of each of these minutes of each of these hours; up to 86,400, so they are not listed."""

    def __init__(self, hours: Iterable[int], minutes: Iterable[int], seconds: Iterable[int]) -> None:
        self._hours, self._minutes, self._seconds = sorted(hours), sorted(minutes), sorted(seconds)
        self._in_an_hour = len(self._minutes) * len(self._seconds)
        self.count = len(self._hours) * self._in_an_hour

    def before(self, second: int) -> int:
        hour, rest = divmod(second, 3_600)
        place = bisect_left(self._hours, hour)
        found = place * self._in_an_hour
        if place == len(self._hours) or self._hours[place] != hour:
            return found
        minute, rest = divmod(rest, 60)
        place = bisect_left(self._minutes, minute)
        found += place * len(self._seconds)
        if place == len(self._minutes) or self._minutes[place] != minute:
            return found
        return found + bisect_left(self._seconds, rest)

    def at(self, place: int) -> int:
        hour, rest = divmod(place, self._in_an_hour)
        minute, second = divmod(rest, len(self._seconds))
        return self._hours[hour] * 3_600 + self._minutes[minute] * 60 + self._seconds[second]


class Days(Protocol):
    """The days on which there are times."""

    def __contains__(self, day: int, /) -> bool: ...

    def next(self, day: int) -> int | None:
        """The first one from this day on; None if none comes within CRON_YEARS_MAX years."""

    def previous(self, day: int) -> int | None:
        """The last one up to this day; None if none was within CRON_YEARS_MAX years."""

    def count(self, begin: int, end: int) -> int:
        """How many there are from `begin` to before `end`."""


class EveryDay:
    """All days."""

    def __contains__(self, day: int, /) -> bool:
        return True

    def next(self, day: int) -> int | None:
        return day

    def previous(self, day: int) -> int | None:
        return day

    def count(self, begin: int, end: int) -> int:
        return end - begin


class SomeDays:
    """The days of some months that match. Whether one does must follow from the month's length and first weekday."""

    def __init__(self, months: Collection[int], matches: Callable[[date], bool]) -> None:
        self._months = frozenset(months)
        self._matches = matches
        self._days: dict[
            tuple[int, int], int
        ] = {}  # by first weekday and length: bit 1 for the first of the month

    def __contains__(self, day: int, /) -> bool:
        at = date.fromordinal(day + _FIRST_DAY)
        return bool(self._of_month(at.year, at.month) >> at.day & 1)

    def next(self, day: int) -> int | None:
        if day > _LAST_DAY:
            return None
        at = date.fromordinal(day + _FIRST_DAY)
        year, month = at.year, at.month
        year_max = min(year + limits.CRON_YEARS_MAX, MAXYEAR)
        days = self._of_month(year, month) >> at.day << at.day
        while not days:
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if year > year_max:
                return None
            days = self._of_month(year, month)
        return date(year, month, (days & -days).bit_length() - 1).toordinal() - _FIRST_DAY

    def previous(self, day: int) -> int | None:
        at = date.fromordinal(day + _FIRST_DAY)
        year, month = at.year, at.month
        year_min = year - limits.CRON_YEARS_MAX
        days = self._of_month(year, month) & ((2 << at.day) - 1)
        while not days:
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            if year < year_min:
                return None
            days = self._of_month(year, month)
        return date(year, month, days.bit_length() - 1).toordinal() - _FIRST_DAY

    def count(self, begin: int, end: int) -> int:
        first, last = date.fromordinal(begin + _FIRST_DAY), date.fromordinal(end + _FIRST_DAY)
        before = self._of_month(first.year, first.month) & ((1 << first.day) - 1)
        found = (
            self._of_month(last.year, last.month) & ((1 << last.day) - 1)
        ).bit_count() - before.bit_count()
        for number in range(first.year * 12 + first.month - 1, last.year * 12 + last.month - 1):
            found += self._of_month(number // 12, number % 12 + 1).bit_count()
        return found

    def _of_month(self, year: int, month: int) -> int:
        if month not in self._months:
            return 0
        shape = monthrange(year, month)
        found = self._days.get(shape)
        if found is None:
            found = sum(1 << day for day in range(1, shape[1] + 1) if self._matches(date(year, month, day)))
            self._days[shape] = found
        return found


class LocalTimes:
    """Local times: the same times of some days."""

    def __init__(self, days: Days, times: DayTimes) -> None:
        self._days = days
        self._times = times

    def next(self, local: int) -> int | None:
        """The first one from this local time on; None if none comes within CRON_YEARS_MAX years."""
        day, second = divmod(local, DAY_SECONDS)
        place = self._times.before(second)
        if place < self._times.count and day in self._days:
            found = day * DAY_SECONDS + self._times.at(place)
        else:
            following = self._days.next(day + 1)
            if following is None:
                return None
            found = following * DAY_SECONDS + self._times.at(0)
        return found if found <= LOCAL_MAX else None

    def previous(self, local: int) -> int | None:
        """The last one before this local time; None if none was within CRON_YEARS_MAX years."""
        day, second = divmod(local, DAY_SECONDS)
        place = self._times.before(second)
        if place and day in self._days:
            return day * DAY_SECONDS + self._times.at(place - 1)
        earlier = self._days.previous(day - 1)
        return None if earlier is None else earlier * DAY_SECONDS + self._times.at(self._times.count - 1)

    def count(self, begin: int, end: int) -> int:
        """How many there are from `begin` to before `end`."""
        (first, since), (last, until) = divmod(begin, DAY_SECONDS), divmod(end, DAY_SECONDS)
        found = self._days.count(first, last) * self._times.count
        if first in self._days:
            found -= self._times.before(since)
        if last in self._days:
            found += self._times.before(until)
        return found
