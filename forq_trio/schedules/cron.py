"""Cron expressions: five fields, or six with seconds first, or a word such as @daily. cronsim computes their times.

The error for a wrong expression says where it is wrong: which field, which characters, and what may be there.
"""

import re
from collections.abc import Iterator
from copy import copy
from datetime import datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from forq_trio.model import limits
from forq_trio.model.errors import InvalidCron
from forq_trio.model.schedules.errors import CronPlace

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
    try:
        first = next(times_after(expression, _SOME_DAY))
        next(times_after(expression, first.replace(hour=23, minute=59, second=59)))
    except (StopIteration, CronSimError):  # the latter for 30 February
        allowed = f"a day that comes again within {limits.CRON_YEARS_MAX} years"
        raise _invalid("there is no such day", CronPlace(*whole, allowed)) from None


def _check_field(number: int, index: int, text: str, start: int) -> None:
    """Check one field. number: of the field in the expression, from 1. index: of the field's kind in `_FIELDS`."""
    name, allowed = _FIELDS[index]
    for term in text.split(","):
        fields = ["*"] * len(_FIELDS)
        fields[index] = term
        try:
            if not term or not term.isascii():
                raise CronSimError
            CronSim(" ".join(fields), _SOME_DAY)
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


class _Times(CronSim):
    """A CronSim that searches within CRON_YEARS_MAX years instead of 50, because the search blocks the event loop."""

    _begin = 0

    def __next__(self) -> datetime:
        self._begin = self.dt.year
        return super().__next__()

    def advance_month(self) -> None:
        super().advance_month()
        self._give_up()

    def reverse_month(self) -> None:
        super().reverse_month()
        self._give_up()

    def _give_up(self) -> None:
        if abs(self.dt.year - self._begin) > limits.CRON_YEARS_MAX:
            raise StopIteration


def times_after(expression: str, local: datetime) -> Iterator[datetime]:
    """The local times after this one, in order, until none comes within CRON_YEARS_MAX years."""
    return _walk(_from(expression, local, 1))


def times_before(expression: str, local: datetime) -> Iterator[datetime]:
    """The local times before this one, which has whole seconds, latest first."""
    return _walk(_from(expression, local, -1))


def _from(expression: str, local: datetime, direction: int) -> _Times:
    """The times from a local time on. Copies a parsed expression, because parsing takes longer than the next time."""
    times = copy(_read(expression))
    times.dt, times.tick_direction = local, direction
    return times


@lru_cache(maxsize=limits.RULES_CACHED_MAX)
def _read(expression: str) -> _Times:
    return _Times(WORDS.get(expression.strip().lower(), expression), _SOME_DAY)


def _walk(times: _Times) -> Iterator[datetime]:
    while True:
        try:
            found = next(times)
        except (StopIteration, OverflowError, ValueError):  # the calendar of Python ends with the year 9999
            return
        yield found
