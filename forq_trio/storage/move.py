"""Moves everything in a database into an empty database of the other engine, for `forq move`. Nobody else may use
either of them in the meantime.

1. The target is marked. Until the mark is gone, no server opens it.
2. The rows of each table are copied in the order of its key, in pages. A page and its position are one commit, so an
   interrupted move continues after the last page, whenever it was interrupted.
3. Both databases are read from the beginning and compared: the rows of each table are counted and hashed on both sides.
4. The counters that number rows are set to continue after the highest row, and the mark is removed, in one commit.

Tables and columns are read from both schemas, which must be the same except for NOT_MOVED. So a table of a later
migration is moved, too, or the move is refused before anything is written.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, StorageOpenError

NOT_MOVED = {
    "migrations": "each schema has its own",
    "batches_2": "what running processes tell each other",
    "gate": "the lock of batches; it has no rows",
    "processes": "which processes run",
    "sent": "a batch moves its messages into queues; a source that has some is refused",
    "sent_set_aside": "SQLite has no such table; a source that has some is told of",
    "moving": "the mark of a move",
}
"""Tables that are not moved, each with the reason."""
MARK = "moving"
Row = tuple[Any, ...]


class Table(NamedTuple):
    """A table to move.

    columns: the stored ones, in the order of a row's values. key: the columns that order its rows; none for a table of
    one row. blobs: the indexes of the columns that hold bytes.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    blobs: frozenset[int]

    def key_of(self, row: Row) -> Row:
        return tuple(row[self.columns.index(column)] for column in self.key)

    def stored(self, row: Row) -> Row:
        """A row as both engines have it: text in a column of bytes, which SQLite permits, becomes bytes."""
        if not any(isinstance(row[place], str) for place in self.blobs):
            return row
        return tuple(
            each.encode() if place in self.blobs and isinstance(each, str) else each
            for place, each in enumerate(row)
        )


class Position(msgspec.Struct, frozen=True):
    """How far a move has come."""

    source: str  # the name of the database
    table: str
    # the key of the last copied row of `table`, None for none; all tables before it are copied whole
    behind: Row | None = None


class Side(Protocol):
    """One of the two databases, locked: nobody else has it open, and nobody can write to it until `close`.

    name: of the database, without a password. All methods raise MoveFailed.
    """

    name: str

    def left(self) -> Sequence[str]:
        """Sentences about what is not moved. Raises StorageOpenError if messages would be lost."""
        ...

    def unstorable(self, table: Table) -> Sequence[Row]:
        """The keys of some rows that the other engine cannot store."""
        ...

    def rows(self, table: Table, behind: Row | None = None) -> Iterator[Row]:
        """The rows whose keys come after `behind` (None: all), in the order of keys, a few at a time."""
        ...

    def has_rows(self, table: Table) -> bool: ...

    def begin_move(self, position: Position, tables: Sequence[Table]) -> None:
        """Mark this target as half filled, and empty those of its tables that always have one row."""
        ...

    def position(self) -> Position | None:
        """How far the move into this target has come; None if it is not marked."""
        ...

    def store(self, table: Table, rows: Sequence[Row], position: Position) -> None:
        """Store a page and the position behind it, in one commit."""
        ...

    def end_move(self, tables: Sequence[Table]) -> None:
        """Let numbering continue after the highest rows, and remove the mark, in one commit."""
        ...

    def close(self) -> None: ...


class MoveFailed(ForqError):
    """The move has not come to its end; the message says why in one sentence"""


def half_filled_by_move(name: str) -> StorageOpenError:
    """The error of everything but a move for a target that an interrupted move has filled in part."""
    return StorageOpenError(
        f"{name} is half filled: `forq move` was interrupted; run it again, or empty it to begin anew"
    )


class MovedTable(NamedTuple):
    """A table that was moved. digest: SHA-256 of its rows, in hex, the same on both sides."""

    name: str
    rows: int
    digest: str


class MoveReport(NamedTuple):
    """The result of a move. source, target: the names of the databases. left: sentences about what was not moved."""

    source: str
    target: str
    tables: Sequence[MovedTable]
    left: Sequence[str]


Progress = Callable[[str, str, int], None]
"""Called with the step ("copying" or "comparing"), the table, and how many of its rows are done."""


def tables_of(tables: Sequence[Table], other: Mapping[str, set[str]]) -> list[Table]:
    """The tables to move: those of SQLite. StorageOpenError unless PostgreSQL has the same ones and columns."""
    moved = [table for table in tables if table.name not in NOT_MOVED]
    here = {table.name: set(table.columns) for table in moved}
    there = {name: columns for name, columns in other.items() if name not in NOT_MOVED}
    different = sorted(name for name in here | there if here.get(name) != there.get(name))
    if different:
        raise StorageOpenError(f"the two schemas differ in {', '.join(different)}: nothing was moved")
    return moved


def move(source: Side, target: Side, tables: Sequence[Table], progress: Progress) -> list[MovedTable]:
    """Move all rows, or continue an interrupted move; returns the tables as they are in the end.

    Raises StorageOpenError while nothing was changed, MoveFailed later. Exceptions of `progress` are passed on.
    """
    source.left()
    position = target.position()
    if position is None:
        position = Position(source.name, tables[0].name)
        _check_target(source, target, tables)
        target.begin_move(position, tables)
    elif position.source != source.name:
        raise StorageOpenError(
            f"{target.name} is half filled from {position.source}: move that, or name an empty database"
        )
    names = [table.name for table in tables]
    behind = position.behind
    for table in tables[names.index(position.table) :]:
        _copy(source, target, table, behind, progress)
        behind = None
    moved = [_compare(source, target, table, progress) for table in tables]
    source.left()
    target.end_move(tables)
    return moved


def _check_target(source: Side, target: Side, tables: Sequence[Table]) -> None:
    filled = next((table.name for table in tables if table.key and target.has_rows(table)), None)
    if filled is not None:
        raise StorageOpenError(f"{target.name} is not empty: it has {filled}; name an empty database")
    for table in tables:
        keys = source.unstorable(table)
        if keys:
            found = ", ".join(" ".join(map(str, key)) for key in keys)
            raise StorageOpenError(
                f"{source.name} has the character U+0000, which PostgreSQL cannot store, in {table.name}, "
                f"{' '.join(table.key)}: {found}; remove these first"
            )


def _copy(source: Side, target: Side, table: Table, behind: Row | None, progress: Progress) -> None:
    copied = 0
    for page in _pages(source.rows(table, behind)):
        position = Position(source.name, table.name, table.key_of(page[-1]))
        target.store(table, [table.stored(row) for row in page], position)
        copied += len(page)
        progress("copying", table.name, copied)


def _pages(rows: Iterator[Row]) -> Iterator[list[Row]]:
    page: list[Row] = []
    size = 0
    for row in rows:
        page.append(row)
        size += sum(len(each) for each in row if isinstance(each, str | bytes))
        if len(page) >= limits.MOVE_PAGE_ROWS_MAX or size >= limits.MOVE_PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page


def _compare(source: Side, target: Side, table: Table, progress: Progress) -> MovedTable:
    here, there = _counted(source, table, progress), _counted(target, table, progress)
    if here != there:
        raise MoveFailed(
            f"{table.name} differs: {here.rows} rows in {source.name}, {there.rows} in {target.name}; "
            "one of them was used since the move began: empty the target and move again"
        )
    return here


def _counted(side: Side, table: Table, progress: Progress) -> MovedTable:
    digest = hashlib.sha256()
    count = 0
    for count, row in enumerate(side.rows(table), start=1):
        digest.update(msgspec.msgpack.encode(table.stored(row)))
        if count % limits.MOVE_PAGE_ROWS_MAX == 0:
            progress("comparing", table.name, count)
    return MovedTable(table.name, count, digest.hexdigest())
