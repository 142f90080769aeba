"""Durations, sizes and rates as people read them."""

import pytest

from forq_trio.model import durations
from forq_trio.telemetry import words


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (12, "12 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_449, "1.4 s"),
        (9_999, "9.9 s"),
        (31_900, "31 s"),
        (60_000, "1 min"),
        (492_000, "8 min 12 s"),
        (26 * 60_000 + 50_000, "26 min"),
        (72 * 60_000, "1 h 12 min"),
        (604_211_000, "6 d 23 h"),
        (864_000_000, "10 d"),
    ],
)
def test_durations(ms: int, text: str) -> None:
    assert durations.in_words(ms) == text


@pytest.mark.parametrize(
    ("number", "text", "exact"),
    [
        (0, "0 B", (0, "B")),
        (1_023, "1,023 B", (1_023, "B")),
        (1_024, "1.0 KiB", (1, "KiB")),
        (10_189, "10 KiB", (10_189, "B")),
        (10_240, "10 KiB", (10, "KiB")),
        (3_328_599_654, "3.1 GiB", (3_328_599_654, "B")),
        (5 * 1024**4, "5.0 TiB", (5, "TiB")),
        (2_048 * 1024**4, "2,048 TiB", (2_048, "TiB")),
    ],
)
def test_sizes(number: int, text: str, exact: tuple[int, str]) -> None:
    assert words.size(number) == text
    assert words.whole_units(number) == exact


def test_the_rest() -> None:
    assert durations.about(492_000) == "8 min"
    assert words.counted(1_904, "message") == "1,904 messages"
    assert words.counted(1, "message") == "1 message"
    assert [words.rate(each) for each in (0, 38.44, 1_240.7)] == ["0", "38.4", "1,241"]
