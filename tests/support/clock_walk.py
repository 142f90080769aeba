"""When a cron expression runs, found by a walk through the minutes of UTC: slow, and plainly right.

It knows *, lists, ranges and steps, and the rule of Vixie cron: wildcards run whenever the clocks show a matching time,
fixed times once for each local time, even if the clocks pass over several at once.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = (0, 59), (0, 23), (1, 31), (1, 12), (0, 7)


def values(text: str, low: int, high: int) -> set[int]:
    """The numbers of a field."""
    found: set[int] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        begin, end = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def walk(expression: str, zone: str, begin: datetime, end: datetime) -> list[int]:
    """The runs of an expression of five fields from `begin` to before `end`, which no clock change is near."""
    texts = expression.split()
    minutes, hours, days, months, weekdays = (
        values(text, *span) for text, span in zip(texts, RANGES, strict=True)
    )
    is_wildcard = texts[0][0] == "*" or texts[1][0] == "*"
    both = texts[2][0] == "*" or texts[4][0] == "*"

    def matches(local: datetime) -> bool:
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        here = local.day in days, not weekdays.isdisjoint((local.isoweekday(), local.isoweekday() % 7))
        return all(here) if both else any(here)

    runs: list[int] = []
    for instant, passed in shown(ZoneInfo(zone), begin, end, again=is_wildcard):
        for local in passed:
            if matches(local):
                at = int(instant.timestamp() * 1_000)
                runs.append(max(at, runs[-1] + 1) if runs else at)
    return runs


def shown(
    zone: ZoneInfo, begin: datetime, end: datetime, *, again: bool
) -> Iterator[tuple[datetime, list[datetime]]]:
    """Each minute, with the local times that come at it: the one that the clocks show, if it counts `again`; otherwise
    those that they have not come to before.
    """
    instant = begin.astimezone(UTC)
    latest = (instant - MINUTE).astimezone(zone).replace(tzinfo=None)
    while instant < end:
        local = instant.astimezone(zone).replace(tzinfo=None, fold=0)
        if again:
            yield instant, [local]
        else:
            passed = []
            while latest < local:
                latest += MINUTE
                passed.append(latest)
            yield instant, passed
        instant += MINUTE
