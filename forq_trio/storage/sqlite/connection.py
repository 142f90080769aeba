"""The write connection of the SQLite engine."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import apsw

from forq_trio.storage.relational.connection import STATEMENTS, Rows
from forq_trio.storage.relational.statements import load
from forq_trio.storage.sqlite.files.faults import STORAGE_ERRORS

_SQL = STATEMENTS | load("connection", "forq_trio.storage.sqlite")


class SqliteConnection:
    """See `Connection`."""

    storage_errors = STORAGE_ERRORS
    is_distant = False
    waits = 0

    def __init__(self, connection: apsw.Connection) -> None:
        self.database = connection

    def query(self, name: str, *bindings: Any) -> list[Any]:
        return self.database.execute(_SQL[name], bindings).fetchall()

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        return [self.database.execute(_SQL[name], bindings).fetchall() for bindings in rows]

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self.database.executemany(_SQL[name], rows)

    def rows(self, name: str, *bindings: Any) -> Rows:
        return self.database.execute(_SQL[name], bindings)

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.database

    def changed_in(self, queue: str) -> None:
        """Nothing to do: no rows are cached here."""
