"""Rings of samples: several steps of time, from fine to coarse, each of a fixed length.

Rules
- A ring has `length` steps with a value for each column. A step's number is the time divided by the ring's step length.
  An unknown step has NaN in every column.
- A coarse step is the mean of the known fine ones in it, made when the first step behind it comes.
- Time only goes forward: values for a past step are ignored. A gap is NaN.
"""

from array import array
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Values: TypeAlias = array[float]
else:
    Values = array
"""The values of one step, by column."""

NOTHING = -1
"""The last step of a ring in which there is nothing."""


class Ring:
    """The latest `length` steps of `columns` values. last: the latest step, NOTHING before the first."""

    __slots__ = ("columns", "last", "length", "values")

    def __init__(self, length: int, columns: int, typecode: str = "f") -> None:
        self.length = length
        self.columns = columns
        self.last = NOTHING
        self.values = array(typecode, [nan]) * (length * columns)

    def put(self, step: int, values: Values) -> None:
        """Store the values of a step; the steps between the last one and this are unknown."""
        columns, last = self.columns, self.last
        if step < last:
            return
        if step > last + 1 and last != NOTHING:
            unknown = array(values.typecode, [nan]) * columns
            for missed in range(max(last + 1, step - self.length), step):
                self._set(missed, unknown)
        self.last = step
        self._set(step, values)

    def _set(self, step: int, values: Values) -> None:
        at = step % self.length * self.columns
        self.values[at : at + self.columns] = values

    def get(self, step: int) -> Values | None:
        """The values of a step; None if the ring does not have it."""
        if step <= NOTHING or not self.last - self.length < step <= self.last:
            return None
        at = step % self.length * self.columns
        return self.values[at : at + self.columns]

    def column(self, column: int, first: int, last: int) -> list[float]:
        """The values of a column from one step to another, both included; NaN where the ring has none."""
        have = max(first, self.last - self.length + 1)
        until = min(last, self.last)
        if have > until:
            return [nan] * (last - first + 1)
        all_values = self.values[column :: self.columns].tolist()
        start, stop = have % self.length, until % self.length
        found = all_values[start : stop + 1] if start <= stop else all_values[start:] + all_values[: stop + 1]
        return [nan] * (have - first) + found + [nan] * (last - until)


class Cascade:
    """Rings whose steps are ever longer. ratios: how many steps of each ring are one of the next."""

    __slots__ = ("ratios", "rings")

    def __init__(self, lengths: Sequence[int], ratios: Sequence[int], columns: int) -> None:
        assert all(length % ratio == 0 for length, ratio in zip(lengths, ratios, strict=False))
        self.rings = [Ring(length, columns) for length in lengths]
        self.ratios = ratios

    def put(self, step: int, values: Values) -> None:
        """Store the values of a step of the finest ring, after the coarse steps that are whole by now."""
        coarse = step
        for level, ratio in enumerate(self.ratios):
            ring, coarse = self.rings[level], coarse // ratio
            if ring.last == NOTHING:
                break
            whole = ring.last // ratio
            if self.rings[level + 1].last < whole < coarse:
                self.rings[level + 1].put(whole, self._means(ring, whole, ratio))
        self.rings[0].put(step, values)

    @staticmethod
    def _means(ring: Ring, whole: int, ratio: int) -> Values:
        """The means of the last steps of a ring, which are step `whole` of the next one and lie beside each other."""
        columns = ring.columns
        known = ring.last + 1 - whole * ratio
        at = whole * ratio % ring.length * columns
        values = ring.values[at : at + known * columns]
        return array("f", [mean(values[column::columns]) for column in range(columns)])

    def _mean(self, level: int, column: int, whole: int) -> float:
        """The mean of the steps of a ring that are step `whole` of the next ring."""
        ratio = self.ratios[level]
        return mean(self.column(level, column, whole * ratio, whole * ratio + ratio - 1))

    def latest(self, level: int) -> int:
        """The latest step of a ring, also if it is not whole yet; NOTHING before the first."""
        step = self.rings[0].last
        for ratio in self.ratios[:level]:
            step //= ratio
        return step

    def column(self, level: int, column: int, first: int, last: int) -> list[float]:
        """A column of a ring; its running step has the mean of what is known so far."""
        values = self.rings[level].column(column, first, last)
        latest = self.latest(level)
        if level and self.rings[level].last < latest and first <= latest <= last:
            values[latest - first] = self._mean(level - 1, column, latest)
        return values


def mean(values: Sequence[float]) -> float:
    """The mean of the values that are known; NaN if none is."""
    known = [value for value in values if value == value]  # NaN differs from itself
    return sum(known) / len(known) if known else nan


def averaged(values: Sequence[float], size: int) -> list[float]:
    """The means of each `size` values."""
    return [mean(values[start : start + size]) for start in range(0, len(values), size)]
