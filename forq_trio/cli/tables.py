"""Tables: laid out for a terminal, tab-separated in a pipe.

On a terminal a row is one line, so that an id is in one piece and can be copied. Each table says what matters in it: in
which order its columns may be left out, and how much of a text has to be there. If the terminal is too narrow,

1. texts are cut, but not below that,
2. columns are left out, those first that say least,
3. names are cut in the middle, for they often differ only at an end, and then the texts further.

A line says what is missing. What space is left goes to names, then to the texts that are left out last. If even that is
too wide, each row is shown as lines of a name and a value, and nothing is cut.

A verdict or an error is read for its end as much as for its beginning. Where one would be cut, its column is shown
below: each row is followed by its text, in as many lines as that takes, and the other columns have the space.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from math import inf
from typing import NamedTuple, TypeVar

from forq_trio.cli.output import (
    echo,
    echo_styled,
    on_terminal,
    print_json,
    styled,
    terminal_width,
    visible,
    wrapped,
)

TEXT_WIDTH_MIN = 10
"""What is at least shown of a text, and of a name."""
_GAP = "  "
_NOTHING = ("", "-")

Cells = Sequence[str]
FoundT = TypeVar("FoundT")


class CellKind(Enum):
    """How cells are shown.

    WHOLE: never cut. NUMBER: the same, flush right. TEXT: cut where there is no space. NAME: cut in the middle, once no
    column can be left out any more. VERDICT: a text that is shown below the rows where it would be cut.
    """

    WHOLE = 1
    NUMBER = 2
    TEXT = 3
    NAME = 4
    VERDICT = 5


_TEXTS = (CellKind.TEXT, CellKind.VERDICT)


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: CellKind = CellKind.WHOLE
    spare: int | None = None  # it may be left out, after those with a smaller number; None: it never is
    least: int = (
        TEXT_WIDTH_MIN  # of a text: how much is shown of it while another column may still be left out
    )


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print rows to stdout below the names of the columns. A line on stderr says what has no space."""
    cells = [[str(cell).replace("\t", " ").replace("\n", " ") for cell in row] for row in rows]
    if not on_terminal():
        for row in ([column.name for column in columns], *cells):
            echo("\t".join(row))
        return
    cells = [[visible(cell) for cell in row] for row in cells]
    natural = [_width_of(texts) for texts in zip([column.name for column in columns], *cells, strict=True)]
    width = terminal_width()
    shown = _layout(columns, natural, width)
    below: list[int] = []
    if shown is not None:
        below = [place for place in shown if _is_cut_verdict(columns[place], shown[place], natural[place])]
        shown = _layout(columns, natural, width, below) if below else shown
    if shown is None:
        _print_records([column.name for column in columns], cells)
        return
    echo_styled(styled(_line(columns, [column.name for column in columns], shown), bold=True))
    for place in below:
        echo_styled(styled(f"{_GAP}{columns[place].name}", bold=True))
    for row in cells:
        echo(_line(columns, row, shown))
        for place in below:
            if row[place] not in _NOTHING:
                for line in wrapped(row[place], width - len(_GAP)):
                    echo(f"{_GAP}{line}")
    missing = [column.name for place, column in enumerate(columns) if place not in (*shown, *below)]
    if any(columns[place].kind is CellKind.NAME and width < natural[place] for place, width in shown.items()):
        missing.append("whole names")
    if missing:
        echo(f"Too narrow for: {', '.join(missing)}. With --json they are there.", err=True)


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


def shortened(name: str, width: int) -> str:
    """A name in at most `width` cells of the terminal, cut in the middle."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{set_cell_size(name, width - 1 - end)}…{set_cell_size(name[::-1], end)[::-1]}"


def _is_cut_verdict(column: Column, width: int, natural: int) -> bool:
    return column.kind is CellKind.VERDICT and width < natural


def _layout(
    columns: Sequence[Column], natural: Sequence[int], width: int, below: Sequence[int] = ()
) -> Mapping[int, int] | None:
    """The width of each column that is shown, by its place; None if not even those fit that have to stay.

    below: the places of columns that are shown below the rows.
    """
    least = [
        min(full, column.least) if column.kind in _TEXTS else full
        for column, full in zip(columns, natural, strict=True)
    ]
    shown = [place for place in range(len(columns)) if place not in below]
    spare = sorted((column.spare, place) for place, column in enumerate(columns) if column.spare is not None)
    while spare and _sum(least[place] for place in shown) > width:
        shown.remove(spare.pop(0)[1])
    names = [place for place in shown if columns[place].kind is CellKind.NAME]
    texts = [place for place in shown if columns[place].kind in _TEXTS]
    for places in (names, texts):
        if _sum(least[place] for place in shown) > width:
            for place in places:
                least[place] = min(least[place], TEXT_WIDTH_MIN)
    free = width - _sum(least[place] for place in shown)
    if free < 0:
        return None
    widths = {place: least[place] for place in shown}
    texts.sort(key=lambda place: columns[place].spare or inf, reverse=True)
    for places in (names, *([place] for place in texts)):
        free = _widen(widths, places, natural, free)
    return widths


def _widen(widths: dict[int, int], places: Sequence[int], natural: Sequence[int], free: int) -> int:
    """Give the narrowest of the columns that are cut each next free cell; returns how many cells are left."""
    for left in range(free, 0, -1):
        cut = [place for place in places if widths[place] < natural[place]]
        if not cut:
            return left
        widths[min(cut, key=widths.__getitem__)] += 1
    return 0


def _sum(widths: Iterator[int]) -> int:
    """How wide columns are together."""
    every = list(widths)
    return sum(every) + len(_GAP) * (len(every) - 1)


def _line(columns: Sequence[Column], cells: Cells, shown: Mapping[int, int]) -> str:
    parts = [_fitted(columns[place], cells[place], width) for place, width in shown.items()]
    return _GAP.join(parts).rstrip()


def _fitted(column: Column, text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return (
            shortened(text, width) if column.kind is CellKind.NAME else f"{set_cell_size(text, width - 1)}…"
        )
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
