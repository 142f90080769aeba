"""The histogram against sorted lists."""

import math
import random

import pytest

from bench.load.histogram import VALUE_NS_MAX, Histogram, _highest, _index


def test_every_value_falls_into_a_bucket_that_ends_at_most_a_hundredth_above_it():
    for value in [*range(2_000), *(10**power + step for power in range(3, 12) for step in (-1, 0, 1))]:
        highest = _highest(_index(value))
        assert value <= highest <= value * 1.01
        assert _index(highest) == _index(value)
        assert _index(highest + 1) == _index(value) + 1


@pytest.mark.parametrize("percent", [50, 90, 99, 99.9, 100])
def test_percentiles_are_those_of_the_sorted_values(percent):
    source = random.Random(7)
    values = [int(source.lognormvariate(12, 2)) for _ in range(5_000)]
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    exact = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    assert exact <= histogram.percentile_ns(percent) <= exact * 1.01


def test_a_summary_is_in_milliseconds():
    histogram = Histogram()
    for milliseconds in (1, 2, 3):
        histogram.record(milliseconds * 1_000_000)
    summary = histogram.summary()
    assert summary["count"] == 3
    assert summary["mean_ms"] == 2.0
    assert summary["max_ms"] == 3.0
    assert summary["p50_ms"] == pytest.approx(2.0, rel=0.01)
    assert summary["p99_9_ms"] == 3.0


def test_an_empty_histogram_is_all_zeros():
    assert set(Histogram().summary().values()) == {0}


def test_durations_out_of_range_count_at_its_ends():
    histogram = Histogram()
    histogram.record(-5)
    histogram.record(10 * VALUE_NS_MAX)
    assert histogram.percentile_ns(50) == 0
    assert histogram.percentile_ns(100) == histogram.max_ns == VALUE_NS_MAX


def test_adding_counts_both():
    one, other = Histogram(), Histogram()
    one.record(10)
    other.record(1_000_000)
    other.record(30)
    one.add(other)
    assert (one.count, one.max_ns, one.sum_ns) == (3, 1_000_000, 1_000_040)
    assert one.percentile_ns(50) == 30
