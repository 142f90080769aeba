"""Sizes and counts as people type them: "64 MiB", "100,000", "10k". Plain functions."""

import re
from fractions import Fraction

from forq_trio.model.durations import DECIMAL_COMMA, TEXT_LENGTH_MAX, WHOLE_NUMBER, prepared

_THOUSANDS = {"k": 1_000, "m": 1_000_000}
_SIZES = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{unit + end: 1024**power for power, unit in enumerate("kmgt", 1) for end in ("", "b", "ib")},
}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)")
_SHORT_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([km])")


def parse_size(text: str) -> int:
    """Bytes. Units are those of 1,024: KiB, MiB, GiB, TiB, also written K or KB. Raises ValueError with a sentence."""
    sentence = "Type a number of bytes, or a size as 64 MiB or 2 GiB."
    part = _SIZE.fullmatch(prepared(text, sentence))
    if part is None or part[2] not in _SIZES:
        raise ValueError(sentence)
    return int(Fraction(part[1]) * _SIZES[part[2]])


def parse_count(text: str) -> int:
    """A whole number, with or without separators, or as "10k". Raises ValueError with a sentence."""
    short = (
        _SHORT_COUNT.fullmatch(DECIMAL_COMMA.sub(".", text.strip().lower()))
        if len(text) <= TEXT_LENGTH_MAX and text.isascii()
        else None
    )
    if short is not None:
        count = Fraction(short[1]) * _THOUSANDS[short[2]]
        if count.denominator == 1:
            return int(count)
    if len(text) > TEXT_LENGTH_MAX or not text.isascii() or not WHOLE_NUMBER.fullmatch(text.strip()):
        raise ValueError("Type a whole number.")
    return int(re.sub(r"\D", "", text))
