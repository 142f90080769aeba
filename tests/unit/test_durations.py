"""Durations and sizes are read as people type them, and what the page shows is read as what it was."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.drawing import format
from forq_trio.model.durations import ms_of, parse_duration, parse_durations, timedelta_of
from forq_trio.ui.sizes import parse_count, parse_size

DURATIONS = {
    "45 s": 45_000,
    "45s": 45_000,
    "10 min": 600_000,
    "10 m": 600_000,
    "1 h 30 min": 5_400_000,
    "1h30m": 5_400_000,
    "1 hour, 30 minutes": 5_400_000,
    "1h30": 5_400_000,
    "5 min 30": 330_000,
    "1.5 s": 1_500,
    "1,5 min": 90_000,
    "1,500 ms": 1_500,
    "12,345,678 ms": 12_345_678,
    "2 D": 172_800_000,
    " 1 week ": 604_800_000,
    "0": 0,
    "0 s": 0,
}
NO_DURATIONS = [
    "",
    " ",
    "5",
    "s",
    "5 parsecs",
    "-5 s",
    "1.0005 s",
    "1e3 s",
    "٣ s",
    "5 s!",
    "9" * 100,
    "1..5 s",
]


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_read(text) -> None:
    assert parse_duration(text) == DURATIONS[text]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_duration_is_refused_with_a_sentence(text) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        (5, 5_000),
        (1.1, 1_100),
        (0.0001, 1),
        ("1h", 3_600_000),
        (timedelta(minutes=1, microseconds=1), 60_001),
        (timedelta(milliseconds=-1), -1),
    ],
)
def test_a_program_gives_a_duration_in_seconds_as_text_or_as_a_timedelta(given, ms) -> None:
    assert ms_of(given) == ms


def test_a_timedelta_of_a_program_stays_as_exact_as_it_is() -> None:
    for exact in (timedelta(microseconds=1), timedelta.max):
        assert timedelta_of(exact) == exact
    assert timedelta_of("1 h") == timedelta_of(3_600) == timedelta(hours=1)


@pytest.mark.parametrize("given", ["5", float("nan"), float("inf"), 1e306, True, None, [5]])
def test_what_a_program_gives_and_is_no_duration_is_refused(given) -> None:
    with pytest.raises((TypeError, ValueError)):
        ms_of(given)


def test_the_missing_unit_is_named() -> None:
    with pytest.raises(ValueError, match=r"5 of what\? Type the unit, as 5 s or 5 min\."):
        parse_duration("5")


@given(st.integers(0, 366 * 86_400_000))
def test_what_is_shown_is_read_as_what_it_was(ms) -> None:
    assert parse_duration(format.setting(ms)) == ms


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text) -> None:
    for parse in (parse_duration, parse_durations, parse_size, parse_count):
        with suppress(ValueError):
            parse(text)


@pytest.mark.parametrize(
    ("text", "delays"),
    [
        ("1, 5, 15, 30, 60 s", (1_000, 5_000, 15_000, 30_000, 60_000)),
        ("1 s; 1 min", (1_000, 60_000)),
        ("1 s,5 s,", (1_000, 5_000)),
        ("500 ms, 2 s", (500, 2_000)),
        ("0, 1 s", (0, 1_000)),
    ],
)
def test_a_list_of_durations_is_read(text, delays) -> None:
    assert parse_durations(text) == delays


@pytest.mark.parametrize("text", ["", ",", "1, 2", "1 s, soon"])
def test_a_list_with_something_else_is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_durations(text)


def test_sizes_and_counts_are_read() -> None:
    assert parse_size("64 MiB") == parse_size("64mb") == parse_size("65,536 K") == 64 * 1024**2
    assert (parse_size("512"), parse_size("1.5 GiB")) == (512, 1536 * 1024**2)
    assert parse_count("100,000") == parse_count("100 000") == parse_count("100000") == 100_000
    assert (parse_count("10k"), parse_count("1,5 M"), parse_size("1,5 KiB")) == (10_000, 1_500_000, 1_536)
    for parse, text in (
        (parse_count, "1.0005k"),
        (parse_size, "64 parsecs"),
        (parse_size, "-1"),
        (parse_count, "1.5"),
        (parse_count, "-1"),
        (parse_count, "9" * 5_000),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            parse(text)
