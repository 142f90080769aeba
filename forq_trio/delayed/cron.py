"""Ticks of recurring messages: when they are, and the keys of their messages. Plain values, no I/O.

A tick is one nominal time of a schedule. Its message has the key

    {prefix}/{hash of the schedule}/{yyyyMMdd-HHmmss}.{nanoseconds, nine digits}     in UTC

so all nodes that run one schedule offer the same key for the same tick, and one message is stored. A schedule that was
changed has another hash: the pending messages of the old one can be found and removed. Keys and hashes are those of
DelayedQueue, bit for bit; Python's times have microseconds, so the last three digits are 0.
"""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

from forq_trio.model import limits
from forq_trio.schedules import zones

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
PERIODIC_INTERVAL_MIN = timedelta(seconds=1)

_HASH = re.compile(r"[0-9a-f]{32}")
_SUFFIX = re.compile(r"([0-9a-f]{32})/[0-9]{8}-[0-9]{6}\.[0-9]{9}")
_SUFFIX_LENGTH = len("/") + 32 + len("/yyyyMMdd-HHmmss.nnnnnnnnn")
PREFIX_LENGTH_MAX = limits.KEY_LENGTH_MAX - _SUFFIX_LENGTH
IN_ADVANCE_MAX = limits.PROCESS_AFTER_AHEAD_MS_MAX * MILLISECOND


@dataclass(frozen=True)
class CronConfigHash:
    """Identifies one configuration of a schedule: the MD5 of its text, 32 digits of 0-9 a-f.

    Raises ValueError for a value of another form.
    """

    value: str

    def __post_init__(self) -> None:
        if _HASH.fullmatch(self.value) is None:
            raise ValueError(f"the hash of a schedule is 32 digits of 0-9 a-f, not {self.value!r}")

    def __str__(self) -> str:
        return self.value

    @classmethod
    def of_text(cls, text: str) -> "CronConfigHash":
        """The hash of any text that describes a schedule."""
        return cls(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())

    @classmethod
    def of_periodic(cls, period: timedelta) -> "CronConfigHash":
        """The hash of a tick every `period`. Raises ValueError unless that is positive and in whole milliseconds."""
        return cls.of_text(f"\nperiodic-tick:\n  period-ms: {_check_period(period) // MILLISECOND}\n")

    @classmethod
    def of_daily(cls, schedule: "CronDailySchedule") -> "CronConfigHash":
        """The hash of a daily schedule: of its zone and hours alone."""
        hours = ", ".join(_local_time(hour) for hour in schedule.hours)
        return cls.of_text(f"\ndaily-cron:\n  zone: {schedule.zone}\n  hours: {hours}\n")


@dataclass(frozen=True)
class CronMessage(Generic[T]):
    """The message of a tick.

    Raises ValueError for times without a time zone.
    """

    payload: T
    schedule_at: datetime  # the tick's nominal time, which is in the key
    # when the message is due, if at another time; None for the nominal one
    schedule_at_actual: datetime | None = None

    def __post_init__(self) -> None:
        check_aware(self.schedule_at)
        if self.schedule_at_actual is not None:
            check_aware(self.schedule_at_actual)

    @property
    def due_at(self) -> datetime:
        """When it is delivered."""
        return self.schedule_at if self.schedule_at_actual is None else self.schedule_at_actual

    def key(self, config_hash: CronConfigHash, key_prefix: str) -> str:
        """The key of its message. Raises ValueError for a prefix that `check_prefix` refuses."""
        return key_of(config_hash, key_prefix, self.schedule_at)


@dataclass(frozen=True)
class CronDailySchedule:
    """Ticks at the same local times of each day.

    If a change of the clocks skips a local time, the tick is at the first instant after the change; if the change
    repeats it, at the first of the two. Ticks that would be at one instant come a millisecond after each other. Raises
    ValueError for no hours or too many, hours with a time zone, an unknown zone, an in_advance that is not 0 to 366
    days, an interval of 0 or less.
    """

    hours: tuple[time, ...]  # at least one; sorted, and each once
    zone: str = "UTC"  # an IANA time zone
    # how long before they are due messages are offered; the next one is always offered
    in_advance: timedelta = timedelta(days=1)
    interval: timedelta = timedelta(minutes=15)  # how often the node offers new ticks
    _zone: tzinfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.hours) <= limits.DAILY_MAX:
            raise ValueError(f"a daily schedule has 1 to {limits.DAILY_MAX} hours, not {len(self.hours)}")
        if any(hour.tzinfo is not None for hour in self.hours):
            raise ValueError("the hours of a daily schedule are local times of its zone, without a time zone")
        if self.interval <= timedelta(0):
            raise ValueError(f"the interval of a daily schedule is more than 0, not {self.interval}")
        if not timedelta(0) <= self.in_advance <= IN_ADVANCE_MAX:
            raise ValueError(f"in_advance is 0 to {IN_ADVANCE_MAX.days} days, not {self.in_advance}")
        try:
            zone = UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"there is no time zone {self.zone!r} (a system without a list of them needs the package tzdata)"
            ) from None
        object.__setattr__(self, "_zone", zone)
        object.__setattr__(self, "hours", tuple(sorted(set(self.hours))))

    def next_times(self, now: datetime) -> list[datetime]:
        """The ticks after `now` and not after `now` + in_advance; at least the next one. In order, in UTC."""
        now = check_aware(now).astimezone(UTC)
        until = now + self.in_advance
        day = now.astimezone(self._zone).date() - timedelta(days=1)
        found: list[datetime] = []
        last = EPOCH
        while True:
            for hour in self.hours:
                at = instant_of(day, hour, self._zone)
                if at <= last:  # two local times that are skipped are one instant
                    at = last + MILLISECOND
                last = at
                if at <= now:
                    continue
                if found and at > until:
                    return found
                found.append(at)
                if at > until:
                    return found
            day += timedelta(days=1)


def instant_of(day: date, hour: time, zone: tzinfo) -> datetime:
    """A local time in UTC: the first of two if it is repeated, the first instant after the gap if it is skipped."""
    local = datetime.combine(day, hour.replace(microsecond=0))
    at = of_epoch_ms(zones.instant_of(local, zone))
    return at if zones.is_skipped(local, zone) else at + hour.microsecond * MICROSECOND


def next_periodic(now: datetime, period: timedelta) -> datetime:
    """The first multiple of `period` since 1970 that is after `now`, in UTC.

    Raises ValueError for a period that is not positive, or not in whole milliseconds.
    """
    _check_period(period)
    return EPOCH + ((check_aware(now) - EPOCH) // period + 1) * period


def periodic_times(now: datetime, period: timedelta) -> list[datetime]:
    """The next tick, and all ticks within the node's next two intervals, so that it misses none. In UTC."""
    until = now + 2 * periodic_interval(period)
    found = [next_periodic(now, period)]
    while (at := found[-1] + period) <= until:
        found.append(at)
    return found


def periodic_interval(period: timedelta) -> timedelta:
    """How often a node offers new ticks: every quarter of the period, but at most once a second."""
    return max(PERIODIC_INTERVAL_MIN, period / 4)


def check_prefix(key_prefix: str) -> str:
    """Return the prefix; raise ValueError for one that is empty, or too long for its keys to have 200 characters."""
    if not 1 <= len(key_prefix) <= PREFIX_LENGTH_MAX:
        raise ValueError(f"the prefix of keys is 1 to {PREFIX_LENGTH_MAX} characters, not {len(key_prefix)}")
    return key_prefix


def key_of(config_hash: CronConfigHash, key_prefix: str, nominal: datetime) -> str:
    """The key of the message of a tick."""
    at = check_aware(nominal).astimezone(UTC)
    return f"{check_prefix(key_prefix)}/{config_hash}/{at:%Y%m%d-%H%M%S}.{at.microsecond * 1_000:09d}"


def hash_of_key(key: str, key_prefix: str) -> CronConfigHash | None:
    """The hash in the key of a tick with exactly this prefix, taken literally; None for any other key."""
    start, slash, rest = (
        key[: len(key_prefix)],
        key[len(key_prefix) : len(key_prefix) + 1],
        key[len(key_prefix) + 1 :],
    )
    found = _SUFFIX.fullmatch(rest) if start == key_prefix and slash == "/" else None
    return None if found is None else CronConfigHash(found[1])


def check_aware(at: datetime) -> datetime:
    """Return the time; raise ValueError if it has no time zone, because then it is no definite moment."""
    if at.utcoffset() is None:
        raise ValueError(f"{at!r} has no time zone")
    return at


def epoch_ms(at: datetime) -> int:
    """The milliseconds since 1970; parts of one are dropped."""
    return (check_aware(at) - EPOCH) // MILLISECOND


def of_epoch_ms(at_ms: int) -> datetime:
    """The time that is `at_ms` milliseconds after 1970, in UTC."""
    return EPOCH + at_ms * MILLISECOND


def _check_period(period: timedelta) -> timedelta:
    if period <= timedelta(0) or period % MILLISECOND:
        raise ValueError(f"a period is more than 0, in whole milliseconds, not {period}")
    return period


def _local_time(hour: time) -> str:
    """A local time as Java writes it: seconds and their fractions only if they are not 0."""
    if not hour.second and not hour.microsecond:
        return f"{hour:%H:%M}"
    if not hour.microsecond % 1_000:
        return hour.isoformat("milliseconds" if hour.microsecond else "seconds")
    return hour.isoformat("microseconds")
