"""Durations as people read and type them ("1.4 s", "8 min 12 s", "1 h 30 min", "5m"), and as programs give them."""

import math
import re
from datetime import timedelta
from typing import TypeAlias

from forq_trio.model.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

TEXT_LENGTH_MAX = 60
WHOLE_NUMBER = re.compile(r"\d{1,3}(?:[ ,']?\d{3})*|\d{1,18}")
"""A whole number as people type it, with or without separators of thousands."""
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
Duration: TypeAlias = timedelta | str | float
"""A duration as programs give it: a timedelta, a text with its unit such as "1h", or a number of seconds."""
_MILLISECOND = timedelta(milliseconds=1)
_ROUNDING_MS = 1e-6  # the error of a float: 1.1 s are 1,100 ms
_UNITS = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))
_OPTION_UNITS = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS), ("ms", 1))
_TYPED_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_MS),
    **dict.fromkeys(("min", "mins", "m", "minute", "minutes"), MINUTE_MS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR_MS),
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY_MS),
}
_NEXT_UNIT = {HOUR_MS: "min", MINUTE_MS: "s"}
_PART = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([a-z]*)(?:\s+|,\s+|\Z|(?=\d))")
_SEPARATED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MILLIONTHS = 10**6
_TWO_UNITS_BELOW = 10


def in_words(ms: float) -> str:
    """A duration in at most two units, rounded down: "1.4 s", "8 min 12 s", "26 min".

    The second unit is left out from 10 of the first on. Below 10 ms there are tenths: "0.2 ms".
    """
    if 0 < ms < 10 and ms != int(ms):
        return f"{max(int(ms * 10), 1) / 10:g} ms"
    ms = max(int(ms), 0)
    if ms < 10 * SECOND_MS:
        tenths = ms % SECOND_MS // 100
        return f"{ms // SECOND_MS}.{tenths} s" if tenths and ms >= SECOND_MS else about(ms)
    place = next(place for place, (_, unit_ms) in enumerate(_UNITS) if ms >= unit_ms)
    unit_ms = _UNITS[place][1]
    whole, rest = divmod(ms, unit_ms)
    if whole >= _TWO_UNITS_BELOW or unit_ms == SECOND_MS:
        return about(ms)
    next_unit, next_ms = _UNITS[place + 1]
    second = rest // next_ms
    return f"{about(ms)} {second} {next_unit}" if second else about(ms)


def about(ms: float) -> str:
    """A duration in one unit, rounded down: "4 d", "12 min", "31 s"."""
    ms = max(int(ms), 0)
    for unit, unit_ms in _UNITS:
        if ms >= unit_ms:
            return f"{ms // unit_ms} {unit}"
    return f"{ms} ms"


def exactly(ms: int) -> str:
    """A duration without rounding: "45 s", "10 min", "1 h 30 min", "1,500 ms"."""
    if ms % SECOND_MS:
        return f"{ms:,} ms"
    parts = []
    for unit, unit_ms in _UNITS:
        count, ms = divmod(ms, unit_ms)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def as_option(ms: int) -> str:
    """A duration in the largest unit that is exact, as options are documented: "5m", "90s", "1500ms"."""
    for unit, unit_ms in _OPTION_UNITS:
        if ms >= unit_ms and ms % unit_ms == 0:
            return f"{ms // unit_ms}{unit}"
    return "0s"


def ms_of(duration: Duration) -> int:
    """The milliseconds of a duration; a fraction of one counts as a whole. Raises TypeError and ValueError."""
    if isinstance(duration, timedelta):
        return -(-duration // _MILLISECOND)
    if isinstance(duration, str):
        return parse_duration(duration)
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        kind = type(duration).__name__
        raise TypeError(f"a duration is a timedelta, a text such as '1h', or seconds, not {kind}")
    if not math.isfinite(duration * 1_000):
        raise ValueError(f"a duration is a finite number of seconds, not {duration!r}")
    return math.ceil(duration * 1_000 - _ROUNDING_MS)


def parse_duration(text: str, *, bare: str = "", rounded: bool = False) -> int:
    """The milliseconds of a duration that people typed, such as "1 h 30 min" or "1h30". "1,5 min" is "1.5 min".

    bare: the unit of a number without one; "" refuses such a number (except 0), which could mean seconds or
    milliseconds. rounded: round fractions of a millisecond instead of refusing them. Raises ValueError with a sentence
    for a text that is not a duration.
    """
    sentence = "Type a number and a unit, as 45 s, 10 min or 1 h 30 min."
    total = unit_ms = 0
    rest = prepared(text, sentence)
    if rest == "0":
        return 0
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise ValueError(sentence)
        whole, decimals, typed = part[1], part[2] or "", part[3]
        unit = typed or _NEXT_UNIT.get(unit_ms, bare)
        if not unit:
            number = f"{whole}.{decimals}" if decimals else whole
            raise ValueError(f"{number} of what? Type the unit, as {number} s or {number} min.")
        if unit not in _TYPED_UNITS:
            raise ValueError(f"“{unit}” is no unit of time. {sentence}")
        unit_ms = _TYPED_UNITS[unit]
        total += (int(whole) * _MILLIONTHS + int(decimals.ljust(6, "0"))) * unit_ms
        rest = rest[part.end() :]
    if total % _MILLIONTHS and not rounded:
        raise ValueError("A duration is a whole number of milliseconds.")
    return round(total / _MILLIONTHS) if rounded else total // _MILLIONTHS


def parse_durations(text: str) -> tuple[int, ...]:
    """The milliseconds of durations separated by commas or semicolons; in "1, 5, 15 s" all have the last unit.

    Raises ValueError with a sentence.
    """
    if len(text) > 40 * TEXT_LENGTH_MAX:
        raise ValueError("That is too long.")
    parts = [part.strip() for part in re.split(r"[;,]\s+|;|,(?!\d{3}(?!\d))", text.strip()) if part.strip()]
    if not parts:
        raise ValueError("Type one duration or more, as 1 s, 5 s, 1 min.")
    unit = re.search(r"(?<![A-Za-z])([A-Za-z]+)\W*\Z", parts[-1][-TEXT_LENGTH_MAX:])
    if unit is not None:
        parts = [part if not WHOLE_NUMBER.fullmatch(part) else f"{part} {unit[1]}" for part in parts]
    return tuple(parse_duration(part) for part in parts)


def prepared(text: str, sentence: str) -> str:
    """The typed text in lower case, without separators of thousands, with a point for decimals.

    Raises ValueError with `sentence` for a text that cannot be read in this way.
    """
    text = text.strip().lower()
    if not text or len(text) > TEXT_LENGTH_MAX or not text.isascii():
        raise ValueError(sentence)
    return DECIMAL_COMMA.sub(".", _SEPARATED.sub("", text))


def timedelta_of(duration: Duration) -> timedelta:
    """The duration as a timedelta. Raises TypeError and ValueError."""
    return duration if isinstance(duration, timedelta) else timedelta(milliseconds=ms_of(duration))
