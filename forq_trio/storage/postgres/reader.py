"""The `Reader` of the PostgreSQL engine."""

from collections.abc import Generator
from typing import Any

from forq_trio.model.errors import ReadDeadlineExceeded, StorageUnavailable
from forq_trio.storage.postgres.connection import DatabaseFailed, StatementFailed
from forq_trio.storage.postgres.dialect import PAGES
from forq_trio.storage.postgres.open import Address
from forq_trio.storage.relational.reader import SqlReader

_CANCELED = "57014"


class PgReader(SqlReader):
    """A connection that only reads."""

    def __init__(self, address: Address) -> None:
        try:
            self._connection = address.connect(idle_seconds=30)
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    def interrupt(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()

    def _end_reading(self) -> None:
        if not self._connection.lost:
            self._query("rollback")

    def _rows(self, name: str, *bindings: Any) -> Generator[Any, None, None]:
        try:
            if self._connection.lost:
                self._connection.reopen()
            if name in PAGES and not self._connection.in_transaction:
                with self._snapshot():
                    yield from self._connection.rows(name, *bindings)
            else:
                yield from self._connection.rows(name, *bindings)
        except (DatabaseFailed, StatementFailed) as error:
            if isinstance(error, DatabaseFailed) and error.sqlstate == _CANCELED:
                raise ReadDeadlineExceeded from None
            raise StorageUnavailable(str(error)) from error
