"""Counts, sizes and rates as people read them."""

_DECIMAL_RATE_BELOW = 1_000


def count(number: int) -> str:
    """A whole number: "1,904"."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 message", "1,904 messages". many: "" for `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """298 B, 1.2 KiB, 64 KiB, 3.1 GiB: one decimal below ten of a unit."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1_024 or unit == "GiB":
            break
        value /= 1_024
    if unit == "B":
        return f"{number} B"
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def rate(per_second: float) -> str:
    """One decimal below 1,000, "0" for none: "38.4", "1,240"."""
    if per_second <= 0:
        return "0"
    return f"{per_second:.1f}" if per_second < _DECIMAL_RATE_BELOW else f"{per_second:,.0f}"


def rounded_rate(per_second: float) -> str:
    """A rate within a sentence, whole from 10 on: "1.2", "17"."""
    return f"{per_second:.1f}" if per_second < 10 else f"{per_second:,.0f}"
