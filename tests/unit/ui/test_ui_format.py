"""Numbers, durations, sizes and times in words."""

import pytest

from forq_trio.drawing import format


@pytest.mark.parametrize(
    ("ms", "text"), [(None, "–"), (0.25, "0.2 ms"), (0.01, "0.1 ms"), (492_118, "8 min 12 s")]
)
def test_duration(ms, text):
    assert format.duration(ms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (298, "298 B"),
        (1_023, "1,023 B"),
        (1_230, "1.2 KiB"),
        (10_240, "10 KiB"),
        (65_536, "64 KiB"),
        (5_771_264, "5.5 MiB"),
        (3_328_599_654, "3.1 GiB"),
        (2**42, "4.0 TiB"),
        (None, "–"),
    ],
)
def test_size(number, text):
    assert format.size(number) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (1_500, "1,500 ms"),
        (45_000, "45 s"),
        (600_000, "10 min"),
        (5_400_000, "1 h 30 min"),
        (604_800_000, "7 d"),
    ],
)
def test_what_was_set_is_never_rounded(ms, text):
    assert format.setting(ms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (9_999_999, "9,999,999"), (23_400_000, "23.4 M"), (2_310_000_000, "2.31 B")],
)
def test_figure(number, text):
    assert format.figure(number) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0, "0"), (0.04, "0"), (0.4, "0.4"), (38.44, "38.4"), (1_241.4, "1,241")]
)
def test_rate(value, text):
    assert format.rate(value) == text


def test_a_moment_of_another_day_has_its_date():
    at = 1_795_000_000_123
    assert format.clock(at, at) == "11:06:40"
    assert format.clock(at, at + 86_400_000) == "18 Nov 11:06:40"
    assert format.exact_time(at) == "2026-11-18 11:06:40.123 UTC"
    assert format.iso(at) == "2026-11-18T11:06:40.123Z"


@pytest.mark.parametrize(("most", "text"), [(5, "2 of 5"), (999_999, "2 of 999,999"), (1_000_000, "2")])
def test_attempts_have_no_bound_if_it_is_the_greatest(most, text):
    assert format.of_attempts(2, most) == text
