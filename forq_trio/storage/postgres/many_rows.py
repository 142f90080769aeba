"""Sorts the rows of a statement that ran for many tuples of bindings at once (sql/many.sql)."""

from collections.abc import Sequence
from typing import Any


def by_place(found: Sequence[tuple[Any, ...]], count: int) -> list[list[Any] | None]:
    """The rows for each of `count` tuples of bindings; None where the statement left them out for their size.

    The first column of a row is the place of its tuple. If nothing but the place is set, the rows were left out.
    """
    each: list[list[Any] | None] = [[] for _ in range(count)]
    for place, *columns in found:
        rows = each[place - 1]
        if columns[0] is None and columns.count(None) == len(columns) > 1:
            each[place - 1] = None
        elif rows is not None:
            rows.append(tuple(columns))
    return each
