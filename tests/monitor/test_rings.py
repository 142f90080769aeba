"""Rings against a naive model: everything that was ever put, averaged when asked."""

from array import array
from math import nan

import pytest

from forq_trio.monitor.rings import Cascade, Ring, mean

LENGTHS, RATIOS = (24, 12, 10), (6, 4)


def same(one: list[float], other: list[float]) -> bool:
    return one == pytest.approx(other, rel=1e-5, nan_ok=True)


@pytest.mark.parametrize("gap_max", [1, 3, 40])
def test_rings_have_what_was_put(rng, gap_max: int) -> None:
    cascade, put, step = Cascade(LENGTHS, RATIOS, 2), {}, rng.randrange(1, 50)

    def wanted(level: int, at: int, column: int) -> float:
        if level == 0:
            return put[at][column] if at in put else nan
        ratio = RATIOS[level - 1]
        return mean([wanted(level - 1, at * ratio + part, column) for part in range(ratio)])

    for _ in range(300):
        step += rng.randint(1, gap_max)
        put[step] = (float(rng.randrange(100)), float(rng.randrange(100)))
        cascade.put(step, array("f", put[step]))
        for level, length in enumerate(LENGTHS):
            last = cascade.latest(level)
            found = cascade.column(level, 1, last - length + 2, last + 1)
            assert same(found[:-1], [wanted(level, at, 1) for at in range(last - length + 2, last + 1)])
            assert found[-1] != found[-1]


def test_time_does_not_go_back() -> None:
    cascade = Cascade(LENGTHS, RATIOS, 1)
    cascade.put(7, array("f", [1.0]))
    cascade.put(6, array("f", [2.0]))
    assert same(cascade.column(0, 0, 6, 8), [nan, 1.0, nan])


def test_a_ring_has_no_values_before_the_first() -> None:
    ring = Ring(3, 1)
    assert ring.get(ring.last) is None
    assert ring.get(0) is None
