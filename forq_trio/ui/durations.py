"""Durations and sizes as people type them: "45 s", "10 min", "1 h 30 min", "64 MiB". Plain functions."""

import re
from fractions import Fraction

TEXT_LENGTH_MAX = 60
_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION_WORDS = {
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "m", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_DURATIONS = {word: _MS[unit] for unit, words in _DURATION_WORDS.items() for word in words}
_NEXT_UNIT = {_MS["h"]: "min", _MS["min"]: "s"}
_THOUSANDS = {"k": 1_000, "m": 1_000_000}
_SIZES = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{unit + end: 1024**power for power, unit in enumerate("kmgt", 1) for end in ("", "b", "ib")},
}
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)(?:\s+|,\s+|\Z|(?=\d))")
_WHOLE = re.compile(r"\d{1,3}(?:[ ,']?\d{3})*|\d{1,18}")
_SEPARATED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_SHORT_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([km])")


def parse_duration(text: str) -> int:
    """Milliseconds. Parts add up: "1 h 30 min", "1h30". "1,5 min" is "1.5 min".

    Raises ValueError with a sentence for what is no duration.

    A number without a unit is refused unless it is 0: nobody could tell whether seconds or milliseconds are meant.
    """
    sentence = "Type a number and a unit, as 45 s, 10 min or 1 h 30 min."
    total = Fraction(0)
    unit = ""
    rest = _prepared(text, sentence)
    if rest == "0":
        return 0
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise ValueError(sentence)
        number, unit = part[1], part[2] or _NEXT_UNIT.get(_DURATIONS.get(unit, 0), "")
        if not unit:
            raise ValueError(f"{number} of what? Type the unit, as {number} s or {number} min.")
        if unit not in _DURATIONS:
            raise ValueError(f"“{unit}” is no unit of time. {sentence}")
        total += Fraction(number) * _DURATIONS[unit]
        rest = rest[part.end() :]
    if total.denominator != 1:
        raise ValueError("A duration is a whole number of milliseconds.")
    return int(total)


def parse_durations(text: str) -> tuple[int, ...]:
    """Several durations with commas or semicolons between them; "1, 5, 15 s": the last unit is that of all.

    Raises ValueError with a sentence.
    """
    if len(text) > 40 * TEXT_LENGTH_MAX:
        raise ValueError("That is too long.")
    parts = [part.strip() for part in re.split(r"[;,]\s+|;|,(?!\d{3}(?!\d))", text.strip()) if part.strip()]
    if not parts:
        raise ValueError("Type one duration or more, as 1 s, 5 s, 1 min.")
    unit = re.search(r"([A-Za-z]+)\W*\Z", parts[-1][-TEXT_LENGTH_MAX:])
    if unit is not None:
        parts = [part if not _WHOLE.fullmatch(part) else f"{part} {unit[1]}" for part in parts]
    return tuple(parse_duration(part) for part in parts)


def parse_size(text: str) -> int:
    """Bytes. Units are those of 1,024: KiB, MiB, GiB, TiB, also written K or KB. Raises ValueError with a sentence."""
    sentence = "Type a number of bytes, or a size as 64 MiB or 2 GiB."
    part = _PART.fullmatch(_prepared(text, sentence))
    if part is None or part[2] not in _SIZES:
        raise ValueError(sentence)
    return int(Fraction(part[1]) * _SIZES[part[2]])


def parse_count(text: str) -> int:
    """A whole number, with or without separators, or as "10k". Raises ValueError with a sentence."""
    short = (
        _SHORT_COUNT.fullmatch(_COMMA.sub(".", text.strip().lower()))
        if len(text) <= TEXT_LENGTH_MAX and text.isascii()
        else None
    )
    if short is not None:
        count = Fraction(short[1]) * _THOUSANDS[short[2]]
        if count.denominator == 1:
            return int(count)
    if not _WHOLE.fullmatch(text.strip()) or not text.isascii():
        raise ValueError("Type a whole number.")
    return int(re.sub(r"\D", "", text))


def _prepared(text: str, sentence: str) -> str:
    """In lower case, without separators of thousands, with a point for decimals.

    Raises ValueError with `sentence` for what is no such text.
    """
    text = text.strip().lower()
    if not text or len(text) > TEXT_LENGTH_MAX or not text.isascii():
        raise ValueError(sentence)
    return _COMMA.sub(".", _SEPARATED.sub("", text))
