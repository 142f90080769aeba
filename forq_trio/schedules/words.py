"""A timing in words: "every day at 08:00 in Prague", "Sundays at 02:30 in Prague", "every 90 s".

A cron expression for which there are no plain words is quoted. The timing must be valid.
"""

import re

from forq_trio.model.durations import exactly
from forq_trio.model.schedules.types import Timing
from forq_trio.schedules.cron import WORDS

_DAYS = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEKDAYS = ("1-5", "MON-FRI")
_STEP = re.compile(r"\*/([0-9]{1,2})")


def in_words(timing: Timing) -> str:
    """When a schedule with this timing runs, with its time zone if that matters."""
    if timing.every_ms is not None:
        return f"every {exactly(timing.every_ms)}"
    if timing.daily is not None:
        said = f"every day at {_listed(sorted(timing.daily))}"
    else:
        said = _cron(WORDS.get((timing.cron or "").strip().lower(), timing.cron or ""))
    return f"{said} {zone_words(timing.time_zone)}"


def zone_words(time_zone: str) -> str:
    """`in Prague` for Europe/Prague, `UTC` for UTC."""
    place = time_zone.rpartition("/")[2].replace("_", " ")
    return f"in {place}" if "/" in time_zone and not time_zone.startswith("Etc/") else time_zone


def _cron(text: str) -> str:
    other = f"at the times of {' '.join(text.split())}"
    fields = text.upper().split()
    if len(fields) == 6:
        if fields[0] != "0":
            return "every second" if fields == ["*"] * 6 else other
        fields = fields[1:]
    minute, hour, day, month, weekday = fields
    days = _days(day, weekday)
    if month != "*" or days is None:
        return other
    if days == "every day" and (often := _often(minute, hour)):
        return often
    if minute.isdecimal() and all(each.isdecimal() for each in hour.split(",")):
        times = sorted({int(each) for each in hour.split(",")})
        return f"{days} at {_listed([f'{each:02}:{int(minute):02}' for each in times])}"
    return other


def _often(minute: str, hour: str) -> str | None:
    """The words for runs that come every hour or more often; None for other timings."""
    if hour != "*":
        return None
    if minute == "*":
        return "every minute"
    if minute.isdecimal():
        return f"every hour at :{int(minute):02}"
    step = _STEP.fullmatch(minute)
    if step is None or int(step[1]) == 0 or 60 % int(step[1]):
        return None
    return "every minute" if int(step[1]) == 1 else f"every {int(step[1])} min"


def _days(day: str, weekday: str) -> str | None:
    if weekday == "*":
        if day == "*":
            return "every day"
        return f"{_ordinal(int(day))} of the month" if day.isdecimal() else None
    if day != "*":
        return None
    if weekday in _WEEKDAYS:
        return "weekdays"
    numbers = {_number(each) for each in weekday.split(",")}
    if None in numbers:
        return None
    return _listed([_DAYS[number] for number in sorted(number or 7 for number in numbers)])


def _number(weekday: str) -> int | None:
    """The number of a weekday, 0 to 6 from Sunday on; None if it is not a single day."""
    if weekday in _NAMES:
        return _NAMES.index(weekday)
    return int(weekday) % 7 if weekday.isdecimal() and int(weekday) <= 7 else None


def _ordinal(number: int) -> str:
    last = 0 if 10 < number % 100 < 14 else number % 10
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(last, 'th')}"


def _listed(texts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]
