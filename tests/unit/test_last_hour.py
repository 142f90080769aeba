"""Values of the last hour: bounded, by minute, whatever the clock does."""

import pytest

from forq_trio.telemetry.histogram import MINUTES, LastHour, quantile

MINUTE = 60_000
NOW = 1_700_000_000_000
BOUNDS = (1.0, 2.0, 4.0)


def test_it_agrees_with_a_list_of_all_values(rng) -> None:
    hour = LastHour(BOUNDS)
    values: list[tuple[int, float]] = []
    now = NOW
    for _ in range(3_000):
        now += rng.choice([0, 1, 700, 20_000, MINUTE, 7 * MINUTE, 70 * MINUTE])
        value = rng.choice([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0])
        hour.add(now, value)
        values.append((now, value))
        for minutes in (1, 5, MINUTES):
            recent = [
                (at, value)
                for at, value in values[-200:]
                if now // MINUTE - minutes < at // MINUTE <= now // MINUTE
            ]
            expected = [sum(value <= 1 for _, value in recent), 0, 0, 0]
            expected[1] = sum(1 < value <= 2 for _, value in recent)
            expected[2] = sum(2 < value <= 4 for _, value in recent)
            expected[3] = sum(value > 4 for _, value in recent)
            if len(recent) < 200:
                assert hour.counts(now, minutes) == expected
        if len(recent) < 200:
            assert hour.greatest(now)[0] == max(value for _, value in recent)
            assert hour.greatest(now)[::-1] in recent


def test_an_hour_later_nothing_is_left() -> None:
    hour = LastHour(BOUNDS)
    hour.add(NOW, 3.0)
    assert hour.greatest(NOW + 59 * MINUTE) == (3.0, NOW)
    assert hour.greatest(NOW + 60 * MINUTE) is None
    assert hour.counts(NOW + 60 * MINUTE) == [0, 0, 0, 0]


def test_a_quantile_is_no_more_than_the_greatest_value() -> None:
    hour = LastHour(BOUNDS)
    assert hour.quantile(NOW, 0.99) is None
    hour.add(NOW - 10 * MINUTE, 3.0)
    hour.add(NOW, 2.1)
    assert hour.quantile(NOW, 0.99) == 3.0
    assert hour.quantile(NOW, 0.99, 5) == 2.1
    assert hour.quantile(NOW, 0.01, 5) == pytest.approx(2.02)


def test_a_clock_that_is_set_back_counts_nothing_from_the_future() -> None:
    hour = LastHour(BOUNDS)
    hour.add(NOW, 3.0)
    assert hour.greatest(NOW - 2 * MINUTE) is None
    hour.add(NOW - 2 * MINUTE, 1.0)
    assert hour.greatest(NOW - 2 * MINUTE) == (1.0, NOW - 2 * MINUTE)
    assert hour.greatest(NOW) == (3.0, NOW)


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ([0, 0, 0, 0], 0.5, None),
        ([10, 0, 0, 0], 0.5, 0.5),
        ([0, 0, 10, 0], 0.5, 3.0),
        ([5, 5, 0, 0], 0.5, 1.0),
        ([98, 0, 2, 0], 0.99, 3.0),
        ([0, 0, 0, 3], 0.5, 4.0),
        ([1, 0, 0, 9], 0.99, 4.0),
    ],
)
def test_a_quantile_is_spread_within_its_bucket(
    counts: list[int], share: float, expected: float | None
) -> None:
    assert quantile(BOUNDS, counts, share) == expected
