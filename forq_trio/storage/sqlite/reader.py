"""The `Reader` of the SQLite engine."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

import apsw

from forq_trio.model.errors import ReadDeadlineExceeded, StorageUnavailable
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.storage.relational.connection import STATEMENTS
from forq_trio.storage.relational.reader import SqlReader
from forq_trio.storage.relational.statements import load
from forq_trio.storage.sqlite.files.open import open_reader

_SQL = STATEMENTS | load("reading", "forq_trio.storage.sqlite")


class SqliteReader(SqlReader):
    """A read-only connection to one file."""

    def __init__(self, path: str) -> None:
        self._connection = open_reader(path)

    def set_aside(self, after: int, limit: int) -> list[SetAside]:
        return []

    def count_set_aside(self) -> tuple[int, int]:
        return 0, 0

    def sent_figures(self, most: int) -> tuple[int, int, int | None]:
        return 0, 0, None

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def _end_reading(self) -> None:
        self._connection.execute(_SQL["end_reading"])

    def _rows(self, name: str, *bindings: Any) -> Generator[Any, None, None]:
        try:
            with closing(self._connection.execute(_SQL[name], bindings)) as cursor:
                yield from cursor
        except apsw.InterruptError:
            raise ReadDeadlineExceeded from None
        except apsw.Error as error:
            raise StorageUnavailable(str(error)) from error
