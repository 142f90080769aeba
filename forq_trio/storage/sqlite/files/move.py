"""The SQLite side of a move (storage/move.py)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.consumers import read_line
from forq_trio.storage.move import MARK, MoveFailed, Position, Row, Table
from forq_trio.storage.publishing import read_part
from forq_trio.storage.relational import statements as sql
from forq_trio.storage.relational.waiting_offers import read_waiting
from forq_trio.storage.sqlite.files.migrations import immediate
from forq_trio.storage.sqlite.files.open import check_exists, open_database
from forq_trio.storage.sqlite.files.recognise import refusing
from forq_trio.storage.zero_character import has_zero

_SQL = sql.load("move", "forq_trio.storage.relational") | sql.load("move", "forq_trio.storage.sqlite")
_READ_TEXTS = {
    "staged_parts": ("staged_with_zero", read_part),
    "message_keys": ("waiting_with_zero", read_waiting),
}
"""Tables with text in a BLOB: the statement that reads it by key, and the function that decodes it."""
_LOG_PAGES = 2_000
"""How long the log gets before its pages are moved into the file."""


class SqliteSide:
    """See `Side`."""

    def __init__(self, path: str, *, target: bool) -> None:
        """Lock the file and bring it up to date; a target is created. Raises StorageOpenError."""
        if not target:
            check_exists(path)
        self.name = path
        self._database = open_database(path, "full", half_filled=target)
        self.name = self._database.real_path
        self._connection = self._database.connection
        self._connection.wal_autocheckpoint(_LOG_PAGES)

    def close(self) -> None:
        with self._reporting_failures():
            self._database.close()

    def tables(self) -> list[Table]:
        """All tables but SQLite's own."""
        with self._reporting_failures():
            return [self._table(name) for (name,) in self._all("tables")]

    def _table(self, name: str) -> Table:
        columns: list[tuple[str, str, int]] = self._all("columns", name)
        key = [column for column, _, place in sorted(columns, key=lambda each: each[2]) if place]
        if not key:
            key = [column for (column,) in self._all("unique_columns", name)]
        blobs = frozenset(place for place, (_, kind, _) in enumerate(columns) if kind == "BLOB")
        return Table(name, tuple(column for column, _, _ in columns), tuple(key), blobs)

    def left(self) -> Sequence[str]:
        return ()

    def unstorable(self, table: Table) -> Sequence[Row]:
        if not table.key:
            return ()
        conditions = [
            _SQL["has_zero"].format(column=_quoted(column))
            for place, column in enumerate(table.columns)
            if place not in table.blobs
        ]
        if "attributes" in table.columns:
            conditions.append(_SQL["has_escaped_zero"].format(column=_quoted("attributes")))
        most = limits.MOVE_KEYS_TOLD_MAX
        found = self._run("unstorable", table, condition=" OR ".join(conditions), limit=most)
        with self._reporting_failures():
            return [*found, *islice(self._unstorable_inside(table), most)][:most]

    def _unstorable_inside(self, table: Table) -> Iterator[Row]:
        """The keys of rows with unstorable text inside a BLOB, if that text may become a text of PostgreSQL later."""
        if table.name == "messages":
            for (body,) in self._connection.execute(_SQL["leased_with_zero"]):
                yield from [(line.sequence,) for line in map(read_line, body.splitlines()) if has_zero(line)]
        elif table.name in _READ_TEXTS:
            statement, read = _READ_TEXTS[table.name]
            for *key, body in self._connection.execute(_SQL[statement]):
                if has_zero(read(body)):
                    yield tuple(key)

    def rows(self, table: Table, behind: Row | None = None) -> Iterator[Row]:
        with self._reporting_failures():
            if not table.key:
                yield from self._run("only_row", table) if behind is None else ()
                return
            name = "rows" if behind is None else "rows_behind"
            yield from self._connection.execute(_filled(name, table, behind or ()), behind or ())

    def has_rows(self, table: Table) -> bool:
        return bool(self._run("has_rows", table))

    def begin_move(self, position: Position, tables: Sequence[Table]) -> None:
        with self._committing():
            self._connection.execute(_SQL["mark"])
            self._connection.execute(_SQL["first_position"].format(behind="?"), (_encoded(position),))
            for table in tables:
                if not table.key:
                    self._run("empty", table)

    def position(self) -> Position | None:
        with self._reporting_failures():
            if (MARK,) not in self._all("tables"):
                return None
            ((text,),) = self._all("position")
            return msgspec.json.decode(text, type=Position)

    def store(self, table: Table, rows: Sequence[Row], position: Position) -> None:
        with self._committing():
            self._connection.executemany(_filled("insert", table, table.columns), rows)
            self._connection.execute(_SQL["save_position"].format(behind="?"), (_encoded(position),))

    def end_move(self, tables: Sequence[Table]) -> None:
        """Remove the mark; SQLite itself continues numbering after the highest row."""
        with self._committing():
            self._connection.execute(_SQL["remove_mark"])

    def _all(self, name: str, *bindings: str) -> list[Any]:
        return self._connection.execute(_SQL[name], bindings).fetchall()

    def _run(self, name: str, table: Table, **more: Any) -> list[Any]:
        with self._reporting_failures():
            return self._connection.execute(_filled(name, table, (), **more)).fetchall()

    @contextmanager
    def _committing(self) -> Iterator[None]:
        with self._reporting_failures(), immediate(self._connection):
            yield

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        try:
            with refusing(self.name):
                yield
        except StorageOpenError as error:
            raise MoveFailed(f"{error}; the move goes on when it is started again") from error
        except UnicodeDecodeError:
            raise MoveFailed(f"{self.name} is damaged: it has text that is not UTF-8") from None


def _filled(name: str, table: Table, bound: Sequence[Any], **more: Any) -> str:
    """A statement with the names of this table filled in, and a placeholder for each value in `bound`."""
    listed = ", ".join
    return _SQL[name].format_map(
        {
            "table": _quoted(table.name),
            "columns": listed(map(_quoted, table.columns)),
            "key": listed(map(_quoted, table.key)),
            "behind": listed("?" for _ in bound),
            **more,
        }
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _encoded(position: Position) -> str:
    return msgspec.json.encode(position).decode()
