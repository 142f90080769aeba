"""Cron expressions: five fields, or six with seconds first, or a word such as @daily. cronsim reads them.

The error for a wrong expression says where it is wrong: which field, which characters, and what may be there.
"""

import re
from datetime import date, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from forq_trio.model import limits
from forq_trio.model.errors import InvalidCron
from forq_trio.model.schedules.errors import CronPlace
from forq_trio.schedules.local_times import DAY_SECONDS, CombinedTimes, Days, EveryDay, LocalTimes, SomeDays

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31, L for the last, LW for the last weekday"),
    ("month", "1-12 or JAN-DEC"),
    ("day of the week", "0-7 or SUN-SAT, 5L for the last Friday, MON#2 for the second Monday"),
)
_FORMS = ", also *, lists (1,2), ranges (1-5) and steps (*/2)"
_SOME_DAY = datetime(2024, 1, 1)


def check_cron(expression: str) -> None:
    """Raise InvalidCron, which says where, unless an expression is valid and has a time within CRON_YEARS_MAX years."""
    if len(expression) > limits.CRON_LENGTH_MAX:
        raise _invalid(
            f"it has {len(expression)} characters",
            CronPlace(0, 0, len(expression), f"at most {limits.CRON_LENGTH_MAX} characters"),
        )
    whole = 0, 0, len(expression)
    if expression.strip().startswith("@"):
        if expression.strip().lower() not in WORDS:
            raise _invalid(f"{expression.strip()!r} is not known", CronPlace(*whole, ", ".join(WORDS)))
        return
    found = list(re.finditer(r"\S+", expression))
    if len(found) not in (5, 6):
        raise _invalid(
            f"it has {len(found)} fields",
            CronPlace(*whole, "five fields, or six with seconds first, with spaces between them"),
        )
    for number, field in enumerate(found, 1):
        _check_field(number, number - 1 + 6 - len(found), field[0], field.start())
    if not _comes_again(expression):
        allowed = f"a day that comes again within {limits.CRON_YEARS_MAX} years"
        raise _invalid("there is no such day", CronPlace(*whole, allowed))


def _comes_again(expression: str) -> bool:
    try:
        local = local_times(expression)
    except CronSimError:  # for 30 February
        return False
    first = local.next((_SOME_DAY.date() - date(1970, 1, 1)).days * DAY_SECONDS)
    return first is not None and local.next((first // DAY_SECONDS + 1) * DAY_SECONDS) is not None


def _check_field(number: int, index: int, text: str, start: int) -> None:
    """Check one field. number: of the field in the expression, from 1. index: of the field's kind in `_FIELDS`."""
    name, allowed = _FIELDS[index]
    for term in text.split(","):
        try:
            if not term or not term.isascii():
                raise CronSimError
            Field(index).parse(term.upper())
        except CronSimError:
            place = CronPlace(number, start, start + max(len(term), 1), allowed + _FORMS)
            raise _invalid(f"{term!r} is no {name}" if term else f"a {name} is missing", place) from None
        start += len(term) + 1


def _invalid(problem: str, place: CronPlace) -> InvalidCron:
    where = f"field {place.number}, " if place.number else ""
    return InvalidCron(
        f"cron, {where}characters {place.start + 1} to {place.end}: {problem}; allowed: {place.allowed}",
        place=place,
    )


def is_wildcard(expression: str) -> bool:
    """Whether Vixie cron counts it among the wildcards: its minute or its hour begins with *, as in `*/20` and @hourly.

    Seconds, which that cron does not have, do not count.
    """
    minute, hour = _without_word(expression).split()[-5:-3]
    return minute.startswith("*") or hour.startswith("*")


@lru_cache(maxsize=limits.RULES_CACHED_MAX)
def local_times(expression: str) -> LocalTimes:
    """The local times of a valid expression. Raises CronSimError for another one."""
    read = CronSim(_without_word(expression), _SOME_DAY)
    days: Days = EveryDay() if read.parts[3:] == ["*"] * 3 else SomeDays(read.months, read.match_day)
    return LocalTimes(days, CombinedTimes(read.hours, read.minutes, read.seconds))


def _without_word(expression: str) -> str:
    return WORDS.get(expression.strip().lower(), expression)
