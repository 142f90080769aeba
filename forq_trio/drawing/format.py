"""Numbers, durations and times in words, as people read them. Plain functions; every template uses them."""

from datetime import UTC, datetime

from forq_trio.model import durations, limits
from forq_trio.telemetry import words

NOTHING = "–"
_MS_A_SECOND = 1_000


whole = words.count


def short(number: float) -> str:
    """2.31 M: three digits and a unit from ten million on in tables and from a million on in headings."""
    for unit, size in (("B", 1e9), ("M", 1e6)):
        if number >= size:
            value = number / size
            return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"
    return f"{number:,.0f}"


def figure(number: int) -> str:
    """Whole up to 9,999,999, short above."""
    return whole(number) if number < 10_000_000 else short(number)


def of_attempts(attempts: int, most: int) -> str:
    """2 of 5; the number alone if nothing bounds it, for which the greatest bound stands."""
    return whole(attempts) if most >= limits.MAX_ATTEMPTS_MAX else f"{whole(attempts)} of {whole(most)}"


def rate(per_second: float | None) -> str:
    """Messages a second; None is "–"."""
    return NOTHING if per_second is None else words.rate(per_second)


def duration(ms: float | None) -> str:
    """`12 ms`, `1.4 s`, `31 s`, `8 min 12 s`, `26 min`, `1 h 12 min`, `6 d 23 h`; None is "–"."""
    return NOTHING if ms is None else durations.in_words(ms)


setting = durations.exactly


def size(number: int | None) -> str:
    """A number of bytes; None is "–"."""
    return NOTHING if number is None else words.size(number)


def clock(at_ms: int, now_ms: int | None = None) -> str:
    """11:47:51 in UTC, with the date in front when it is not the day of `now_ms`."""
    at = _utc(at_ms)
    if now_ms is not None and at.date() != _utc(now_ms).date():
        return f"{at.day} {at:%b %H:%M:%S}"
    return f"{at:%H:%M:%S}"


def exact_time(at_ms: int) -> str:
    """2026-11-22 11:47:51.250 UTC."""
    return f"{_utc(at_ms):%Y-%m-%d %H:%M:%S}.{at_ms % _MS_A_SECOND:03} UTC"


def iso(at_ms: int) -> str:
    """The `datetime` of a <time>, which the browser shows in the reader's zone."""
    return f"{_utc(at_ms):%Y-%m-%dT%H:%M:%S}.{at_ms % _MS_A_SECOND:03}Z"


plural = words.counted


def sentence(text: str) -> str:
    """A message of the broker as a sentence of a page: with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / _MS_A_SECOND, UTC)
