"""The PostgreSQL side of a move (storage/move.py)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.move import MARK, MoveFailed, Position, Row, Table
from forq_trio.storage.postgres.open import DatabaseAddress, has_schema, open_writer
from forq_trio.storage.relational.statements import load
from forq_trio.telemetry.words import counted

_SQL = load("move", "forq_trio.storage.relational") | load("move", "forq_trio.storage.postgres")


class PgSide:
    """See `Side`. A second connection holds the gate in a transaction, so that no process can run a batch."""

    def __init__(self, url: str, *, target: bool) -> None:
        """Bring the schema up to date, or create it in a target. Raises StorageOpenError."""
        address = DatabaseAddress(url)
        self._address = address
        self.name = address.name
        if not target and not has_schema(address):
            raise StorageOpenError(f"{self.name} has no queue: there is no schema `forq`")
        open_writer(address, half_filled=target).close()
        with ExitStack() as opened:
            try:
                self._connection = opened.enter_context(closing(self._connected()))
                self._gate = opened.enter_context(closing(self._connected()))
                self._lock()
                self._columns = self._run("columns")
            except psycopg.Error as error:
                raise address.refused(error) from None
            self._opened = opened.pop_all()

    def _connected(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._address.conninfo, autocommit=True)
        connection.execute(sql.SQL(_SQL["session"]))
        return connection

    def _lock(self) -> None:
        try:
            self._gate.autocommit = False
            self._gate.execute(sql.SQL(_SQL["hold_gate"]))
        except psycopg.errors.LockNotAvailable:
            raise StorageOpenError(f"{self.name} is in use: another process holds it") from None
        alive = [name for (name,) in self._run("alive", limits.PROCESS_SILENT_MS)]
        if alive:
            raise StorageOpenError(
                f"{self.name} is in use by {', '.join(alive)}: stop what uses it; what was killed is forgotten "
                f"after {limits.PROCESS_SILENT_MS // limits.SECOND_MS} seconds"
            )

    def close(self) -> None:
        self._opened.close()

    def columns(self) -> Mapping[str, set[str]]:
        """The stored columns of all tables, by table."""
        found: dict[str, set[str]] = {}
        for table, column, _, _ in self._columns:
            found.setdefault(table, set()).add(column)
        return found

    def left(self) -> Sequence[str]:
        with self._reporting_failures():
            self._gate.execute(
                sql.SQL(_SQL["hold_gate"])
            )  # it fails if the connection is lost, and the gate with it
            ((waiting, aside),) = self._run("count_sent")
            bound = [queue for (queue,) in self._run("bound", limits.MOVE_KEYS_TOLD_MAX)]
        if waiting:
            raise StorageOpenError(
                f"{self.name} has {counted(waiting, 'message')} of applications that no server has moved into "
                "queues: let a server do that, and the applications send no more"
            )
        if bound:
            raise StorageOpenError(
                f"{self.name} has queues that are bound to its tables, which SQLite cannot have: unbind them first: "
                f"{', '.join(bound)}"
            )
        if not aside:
            return ()
        return (
            f"{counted(aside, 'message')} that queues refused stay in forq.sent_set_aside of {self.name}",
        )

    def unstorable(self, table: Table) -> Sequence[Row]:
        """None: SQLite can store everything that PostgreSQL can."""
        return ()

    def rows(self, table: Table, behind: Row | None = None) -> Iterator[Row]:
        if not table.key and behind is not None:
            return
        name = "rows" if behind is None else "rows_behind"
        statement = self._filled(name if table.key else "only_row", table, behind or ())
        with self._transaction(), self._connection.cursor(name="rows") as cursor:
            cursor.itersize = limits.MOVE_FETCH_ROWS
            cursor.execute(statement, behind or ())
            yield from cursor

    def has_rows(self, table: Table) -> bool:
        with self._reporting_failures():
            return bool(self._connection.execute(self._filled("has_rows", table)).fetchall())

    def begin_move(self, position: Position, tables: Sequence[Table]) -> None:
        with self._transaction():
            self._run("mark")
            self._run("identify_mark")
            self._save("first_position", position)
            for table in tables:
                if not table.key:
                    self._connection.execute(self._filled("empty", table))

    def position(self) -> Position | None:
        if MARK not in self.columns():
            return None
        with self._reporting_failures():
            ((text,),) = self._run("position")
        return msgspec.json.decode(text, type=Position)

    def store(self, table: Table, rows: Sequence[Row], position: Position) -> None:
        with self._transaction():
            with self._connection.cursor().copy(self._filled("copy", table)) as copy:
                for row in rows:
                    copy.write_row(row)
            self._save("save_position", position)

    def end_move(self, tables: Sequence[Table]) -> None:
        moved = {table.name for table in tables}
        with self._transaction():
            for table, column, _, numbers in self._columns:
                if numbers and table in moved:
                    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
                    self._connection.execute(sql.SQL(_SQL["number_on"]).format(**names), (table, column))
            self._run("read_anew")
            self._run("remove_mark")

    def _save(self, name: str, position: Position) -> None:
        statement = sql.SQL(_SQL[name]).format(behind=sql.Placeholder())
        self._connection.execute(statement, (msgspec.json.encode(position).decode(),))

    def _run(self, name: str, *bindings: Any) -> list[Any]:
        cursor = self._connection.execute(sql.SQL(_SQL[name]), bindings)
        return cursor.fetchall() if cursor.description else []

    def _filled(self, name: str, table: Table, behind: Sequence[Any] = ()) -> sql.Composed:
        """A statement with the names of this table filled in; texts are sorted by their bytes, as in SQLite."""
        texts = {column for owner, column, kind, _ in self._columns if owner == table.name and kind == "text"}
        listed = sql.SQL(", ").join
        return sql.SQL(_SQL[name]).format(
            table=sql.Identifier(table.name),
            columns=listed(map(sql.Identifier, table.columns)),
            key=listed(
                sql.SQL('{} COLLATE "C"' if column in texts else "{}").format(sql.Identifier(column))
                for column in table.key
            ),
            behind=listed(sql.Placeholder() for _ in behind),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction. If Ctrl-C interrupts an answer, no ROLLBACK can be sent: closing the connection does it."""
        with self._reporting_failures(), self._connection.transaction():
            try:
                yield
            except KeyboardInterrupt:
                self._connection.close()
                raise

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise MoveFailed(
                f"{self._address.refused(error)}; the move goes on when it is started again"
            ) from error
