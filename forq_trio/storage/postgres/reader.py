"""The `Reader` of the PostgreSQL engine."""

from collections.abc import Generator
from typing import Any

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import ReadDeadlineExceeded, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.server.database_state import DatabaseReading, SnapshotKeeper
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.dialect import UNBOUNDED
from forq_trio.storage.postgres.failures import DatabaseFailed, StatementFailed
from forq_trio.storage.postgres.open import DatabaseAddress
from forq_trio.storage.postgres.replica import Replica
from forq_trio.storage.relational.reader import SqlReader

_CANCELED = "57014"
_decode = msgspec.json.Decoder(NewMessage).decode


class PgReader(SqlReader):
    """A read-only connection to the primary, and another one to the replica if there is one."""

    def __init__(self, address: DatabaseAddress, replica: Replica | None = None) -> None:
        self._address = address
        self._replica = replica
        self._to_replica: PgConnection | None = None
        self._to_primary: PgConnection | None = None
        try:
            self._connection = self._chosen()
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    def _chosen(self) -> PgConnection:
        """The connection for the next read. Raises DatabaseFailed."""
        if self._replica is not None:
            self._to_replica = self._replica.current(self._to_replica)
            if self._to_replica is not None:
                return self._to_replica
        return self._primary()

    def _primary(self) -> PgConnection:
        if self._to_primary is None:
            self._to_primary = self._address.connect(idle_seconds=30)
        elif self._to_primary.lost:
            self._to_primary.reopen()
        return self._to_primary

    def database(self) -> DatabaseReading:
        """Always about the primary: a transaction on a replica does not, by itself, keep dead rows there."""
        try:
            connection = self._connection = self._primary()
            (figures,) = connection.query("database_figures")
            keepers = connection.query("snapshot_keepers", limits.SNAPSHOT_KEEPERS_MAX)
        except (DatabaseFailed, StatementFailed) as error:
            raise StorageUnavailable(str(error)) from error
        reading: list[Any] = [*figures, tuple(SnapshotKeeper(*row) for row in keepers)]
        return DatabaseReading(*reading)

    def set_aside(self, after: int, limit: int) -> list[SetAside]:
        rows = self._query("list_set_aside", after, limit, limits.BROWSE_PAGE_BYTES_MAX)
        return [SetAside(id, queue, _decode(message), *why) for id, queue, message, *why in rows]

    def count_set_aside(self) -> tuple[int, int]:
        ((count, newest),) = self._query("count_set_aside")
        return count, newest

    def sent_figures(self, most: int) -> tuple[int, int, int | None]:
        ((set_aside, waiting, oldest),) = self._query("sent_figures", most)
        return set_aside, waiting, oldest

    def interrupt(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        for connection in (self._to_replica, self._to_primary):
            if connection is not None:
                connection.close()

    def _end_reading(self) -> None:
        if not self._connection.lost:
            self._query("rollback")

    def _rows(self, name: str, *bindings: Any) -> Generator[Any, None, None]:
        try:
            if self._connection.lost or not self._connection.in_transaction:
                self._connection = self._chosen()
            if name in UNBOUNDED and not self._connection.in_transaction:
                with self._snapshot():
                    yield from self._connection.rows(name, *bindings)
            else:
                yield from self._connection.rows(name, *bindings)
        except (DatabaseFailed, StatementFailed) as error:
            if isinstance(error, DatabaseFailed) and error.sqlstate == _CANCELED:
                raise ReadDeadlineExceeded from None
            if self._replica is not None and self._connection is self._to_replica:
                self._replica.pass_over("away")
            raise StorageUnavailable(str(error)) from error
