"""Converts local times of a time zone to instants, even if a clock change skips or repeats them.

A skipped local time (spring) becomes the first instant after the change, a repeated one (autumn) the first of its two
instants. So a later local time is never an earlier instant.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from forq_trio.model import limits
from forq_trio.model.errors import InvalidSchedule

CHANGES_APART_SECONDS = 6 * 86_400
"""No zone changes its clocks twice within this time (Brazil once did in seven days), so looks at both ends find it."""
_NO_ZONES = ("localtime", "posixrules", "Factory", "posix/", "right/")
_YEAR_SECONDS = 366 * 86_400
_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)


@cache
def zone_of(name: str) -> ZoneInfo:
    """The IANA time zone of this name. Raises InvalidSchedule; also for other zone files, which differ by machine."""
    is_name = 0 < len(name) <= limits.TIME_ZONE_LENGTH_MAX and name.isascii()
    if is_name and not name.startswith(_NO_ZONES):
        try:
            return ZoneInfo(name)
        except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
            pass
    raise InvalidSchedule(
        f"time_zone: {name[: limits.TIME_ZONE_LENGTH_MAX]!r} is not the name of a time zone such as Europe/Paris",
        field="timeZone",
    )


def local_of(at_ms: int, zone: ZoneInfo) -> datetime:
    """The local time of an instant, in whole seconds, rounded down."""
    return datetime.fromtimestamp(at_ms // 1_000, zone)


def instant_of(local: datetime, zone: tzinfo) -> int:
    """The instant of a local time without a zone (epoch ms)."""
    offset = zone.utcoffset(local)
    if offset == zone.utcoffset(local.replace(fold=1)):  # almost always: no clock change is near
        assert offset is not None
        return (local - _EPOCH - offset) // _MS
    first = _seconds(local.replace(tzinfo=zone, fold=0))
    if is_skipped(local, zone):
        first = change_between(_seconds(local.replace(tzinfo=zone, fold=1)), first, zone)
    return first * 1_000


def is_skipped(local: datetime, zone: tzinfo) -> bool:
    """Whether a local time does not exist, because the clocks go forward over it."""
    aware = local.replace(tzinfo=zone, fold=0)
    return aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


def repeated_by(local: datetime, zone: ZoneInfo) -> timedelta:
    """How far the clocks go back over a local time, which therefore comes twice; 0 if they do not."""
    first, second = (local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert first is not None
    assert second is not None
    return max(first - second, timedelta(0))


def _seconds(local: datetime) -> int:
    return int(local.timestamp())


def offset_at(at: int, zone: tzinfo) -> int:
    """How far the clocks are ahead of UTC at an instant; both in seconds."""
    offset = datetime.fromtimestamp(max(at, 0), zone).utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds


def changes_within(begin: int, end: int, zone: tzinfo) -> Iterator[int]:
    """Each change of the clocks after `begin`, before `end`, in order; all in seconds."""
    for year in range(begin // _YEAR_SECONDS, end // _YEAR_SECONDS + 1):
        yield from (each for each in _changes_of_year(year, zone) if begin < each < end)


@lru_cache(maxsize=limits.ZONE_YEARS_CACHED_MAX)
def _changes_of_year(year: int, zone: tzinfo) -> tuple[int, ...]:
    """The changes in a span of 366 days, its last second included."""
    at, last = year * _YEAR_SECONDS, (year + 1) * _YEAR_SECONDS
    offset, found = offset_at(at, zone), []
    while at < last:
        near = min(at + CHANGES_APART_SECONDS, last)
        if (then := offset_at(near, zone)) != offset:
            found.append(change_between(at, near, zone))
        at, offset = near, then
    return tuple(found)


def change_between(low: int, high: int, zone: tzinfo) -> int:
    """The first second with the new offset, between `low` (old offset) and `high` (new offset)."""
    old = offset_at(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(middle, zone) == old:
            low = middle
        else:
            high = middle
    return high
