"""Counts, sizes and rates as people read them."""

SIZE_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
"""The bytes of each unit, small ones first."""
_DECIMAL_RATE_BELOW = 1_000


def count(number: int) -> str:
    """A whole number: "1,904"."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 message", "1,904 messages". many: "" for `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """A number of bytes: 298 B, 1.2 KiB, 64 KiB, 3.1 GiB. One decimal below ten of a unit."""
    value, unit = float(number), "B"
    for larger in list(SIZE_UNITS)[1:]:
        if value < 1_024:
            break
        value, unit = value / 1_024, larger
    return f"{value:.1f} {unit}" if unit != "B" and value < 9.95 else f"{value:,.0f} {unit}"


def whole_units(number: int) -> tuple[int, str]:
    """A number of bytes without rounding, in the largest unit of which it is a multiple: 64 and "KiB", 5000 and "B"."""
    unit = max(
        (unit for unit, bytes in SIZE_UNITS.items() if number % bytes == 0), key=SIZE_UNITS.__getitem__
    )
    return (number // SIZE_UNITS[unit], unit) if number else (0, "B")


def rate(per_second: float) -> str:
    """One decimal below 1,000, "0" for none: "38.4", "1,240"."""
    if per_second < 0.05:
        return "0"
    return f"{per_second:.1f}" if per_second < _DECIMAL_RATE_BELOW else f"{per_second:,.0f}"


def rounded_rate(per_second: float) -> str:
    """A rate within a sentence, whole from 10 on: "1.2", "17"."""
    return f"{per_second:.1f}" if per_second < 10 else f"{per_second:,.0f}"
