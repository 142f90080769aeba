"""Durations, counts, sizes and rates as people read them."""

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_UNITS = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", _SECOND, "s"))

_TWO_UNITS_BELOW = 10
_DECIMAL_RATE_BELOW = 1_000


def duration(ms: float) -> str:
    """At most two units, the second only below 10 of the first, rounded down: "1.4 s", "8 min 12 s", "26 min".

    Below 10 ms with tenths: "0.2 ms".
    """
    if 0 < ms < 10 and ms != int(ms):
        return f"{max(int(ms * 10), 1) / 10:g} ms"
    ms = max(int(ms), 0)
    for unit_ms, unit, next_ms, next_unit in _UNITS:
        if ms >= unit_ms:
            whole, rest = divmod(ms, unit_ms)
            second = rest // next_ms
            if second and whole < _TWO_UNITS_BELOW:
                return f"{whole} {unit} {second} {next_unit}"
            return f"{whole} {unit}"
    if ms < _SECOND:
        return f"{ms} ms"
    tenths = ms % _SECOND // 100
    return f"{ms // _SECOND}.{tenths} s" if tenths and ms < 10 * _SECOND else f"{ms // _SECOND} s"


def about(ms: float) -> str:
    """One unit, rounded down: "4 d", "12 min", "31 s"."""
    ms = max(int(ms), 0)
    for unit_ms, unit, _, _ in _UNITS:
        if ms >= unit_ms:
            return f"{ms // unit_ms} {unit}"
    return f"{ms // _SECOND} s" if ms >= _SECOND else f"{ms} ms"


def count(number: int) -> str:
    """A whole number: "1,904"."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number of things: "1 message", "1,904 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
