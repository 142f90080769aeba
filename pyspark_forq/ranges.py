"""Cuts a read into ranges for tasks."""

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

TASK_ROWS = 10_000
"""Fewer are not worth a task."""
TASKS_DEFAULT = 8
"""How many tasks share a large read, unless option minPartitions says more."""


@dataclass(frozen=True)
class Range(InputPartition):
    """The numbers above `after`, up to and with `until`."""

    after: int
    until: int


def tasks_for(rows: int, min_partitions: int | None) -> int:
    """How many tasks a read of so many rows is cut into."""
    return max(min_partitions or 1, min(TASKS_DEFAULT, -(-rows // TASK_ROWS)))


def cut(after: int, until: int, count: int) -> list[Range]:
    """At most `count` ranges of about one length that cover the one given; none when it is empty."""
    length = until - after
    count = min(count, length)
    bounds = [after + length * index // count for index in range(count)] if count > 0 else []
    return [Range(low, high) for low, high in zip(bounds, [*bounds[1:], until], strict=False)]
