"""Histograms: bounds belong to their bucket, and one by one or all at once counts the same."""

import random

import pytest

from forq_trio.model import limits
from forq_trio.telemetry.histogram import COMMIT_CALLS, DISK_SECONDS, MESSAGE_MS, Histogram

ALL_BOUNDS = [MESSAGE_MS, DISK_SECONDS, COMMIT_CALLS]


def test_bounds_rise() -> None:
    for bounds in ALL_BOUNDS:
        assert list(bounds) == sorted(set(bounds))


def test_the_buckets_reach_as_far_as_is_documented() -> None:
    assert (MESSAGE_MS[0], MESSAGE_MS[-1]) == (1, limits.HOUR_MS)
    assert (DISK_SECONDS[0], DISK_SECONDS[-1]) == (0.0001, 10)
    assert (COMMIT_CALLS[0], COMMIT_CALLS[-1]) == (1, 4_096)
    assert COMMIT_CALLS[-1] >= limits.COMMIT_CALLS_MAX


def test_a_bound_belongs_to_its_own_bucket_and_what_is_above_to_the_next() -> None:
    for bounds in ALL_BOUNDS:
        for index, bound in enumerate(bounds):
            histogram = Histogram(bounds)
            histogram.add(bound)
            histogram.add(bound * 1.001)
            assert histogram.counts[index] == 1
            assert histogram.counts[index + 1] == 1


def test_values_below_and_above_all_bounds_are_counted() -> None:
    histogram = Histogram((10, 20))
    histogram.add_all([0, 21, 1_000_000])
    assert (histogram.counts, histogram.sum, histogram.count) == ([1, 0, 2], 1_000_021, 3)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1_000])
def test_all_at_once_is_the_same_as_one_by_one(rng: random.Random, count: int) -> None:
    values = [round(10 ** rng.uniform(0, 7)) for _ in range(count)]
    at_once, one_by_one, slowly = Histogram(MESSAGE_MS), Histogram(MESSAGE_MS), [0] * (len(MESSAGE_MS) + 1)
    at_once.add_all(values)
    for value in values:
        one_by_one.add(value)
        slowly[sum(value > bound for bound in MESSAGE_MS)] += 1
    assert at_once.counts == one_by_one.counts == slowly
    assert at_once.sum == one_by_one.sum == sum(values)
    assert at_once.count == count
