"""Tables: laid out for a terminal, tab-separated in a pipe.

On a terminal a row is one line, so that an id is in one piece and can be copied. If the terminal is too narrow, texts
are cut, then the columns that say least are left out, and a line names them. If even that is too wide, each row is
shown as lines of a name and a value, and nothing is cut.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from forq_trio.cli.output import echo, echo_styled, on_terminal, print_json, styled, visible

TEXT_WIDTH_MIN = 10
_GAP = "  "

Cells = Sequence[str]
FoundT = TypeVar("FoundT")


class CellKind(Enum):
    """How cells are shown. WHOLE: never cut. NUMBER: the same, flush right. TEXT: cut where there is no space."""

    WHOLE = 1
    NUMBER = 2
    TEXT = 3


class Column(NamedTuple):
    """A column. spare: it may be left out, after those with a smaller number; None: it is never left out."""

    name: str
    kind: CellKind = CellKind.WHOLE
    spare: int | None = None


def numbers(*names: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(name, CellKind.NUMBER) for name in names)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print rows to stdout below the names of the columns. A line on stderr names the columns left out."""
    cells = [[str(cell).replace("\t", " ").replace("\n", " ") for cell in row] for row in rows]
    if not on_terminal():
        for row in ([column.name for column in columns], *cells):
            echo("\t".join(row))
        return
    cells = [[visible(cell) for cell in row] for row in cells]
    width = shutil.get_terminal_size().columns
    natural = [_width_of(texts) for texts in zip([column.name for column in columns], *cells, strict=True)]
    shown = _columns_that_fit(columns, natural, width)
    if shown is None:
        _print_records([column.name for column in columns], cells)
        return
    chosen = [columns[place] for place in shown]
    widths = _widths(chosen, [natural[place] for place in shown], width)
    echo_styled(styled(_line(chosen, [column.name for column in chosen], widths), bold=True))
    for row in cells:
        echo(_line(chosen, [row[place] for place in shown], widths))
    left_out = [column.name for place, column in enumerate(columns) if place not in shown]
    if left_out:
        echo(f"Too narrow for: {', '.join(left_out)}. With --json they are there.", err=True)


def print_list(
    found: Sequence[FoundT],
    as_json: bool,
    columns: Sequence[Column],
    row: Callable[[FoundT], Sequence[object]],
    nothing: str = "",
) -> None:
    """Print what was found: as JSON, a line each, or as a table with a row for each. Without any, say `nothing`."""
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        print_table(columns, [row(each) for each in found])
    elif nothing:
        echo(nothing, err=True)


def _columns_that_fit(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int] | None:
    """The places of the columns that fit into `width`; None if not even those fit that have to stay."""
    shown = list(range(len(columns)))
    spare = sorted((column.spare, place) for place, column in enumerate(columns) if column.spare is not None)
    while _sum(_least(columns[place], natural[place]) for place in shown) > width:
        if not spare:
            return None
        shown.remove(spare.pop(0)[1])
    return shown


def _least(column: Column, natural: int) -> int:
    return min(natural, TEXT_WIDTH_MIN) if column.kind is CellKind.TEXT else natural


def _widths(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    """The width of each column: the narrowest column with cut texts always gets the next free cell."""
    widths = [_least(column, full) for column, full in zip(columns, natural, strict=True)]
    for _ in range(width - _sum(widths)):
        cut = [place for place, full in enumerate(natural) if widths[place] < full]
        if not cut:
            break
        widths[min(cut, key=widths.__getitem__)] += 1
    return widths


def _sum(widths: "Iterator[int] | Sequence[int]") -> int:
    """How wide columns are together."""
    every = list(widths)
    return sum(every) + len(_GAP) * (len(every) - 1)


def _line(columns: Sequence[Column], cells: Cells, widths: Sequence[int]) -> str:
    parts = [_fitted(*each) for each in zip(columns, cells, widths, strict=True)]
    return _GAP.join(parts).rstrip()


def _fitted(column: Column, text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return f"{set_cell_size(text, width - 1)}…"
    padding = " " * (width - cell_len(text))
    return padding + text if column.kind is CellKind.NUMBER else text + padding


def _print_records(names: Cells, rows: Sequence[Cells]) -> None:
    label_width = _width_of(names)
    for row in rows:
        for name, cell in zip(names, row, strict=True):
            echo_styled(f"{styled(name.ljust(label_width), bold=True)}{_GAP}{cell}")
        echo()


def _width_of(texts: Sequence[str]) -> int:
    """How many cells of the terminal the widest of these texts takes."""
    from rich.cells import cell_len

    return max(map(cell_len, texts))
