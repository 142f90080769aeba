"""The SQLite engine: a file, its write connection, its log; storage/relational runs the batches."""

from collections.abc import Callable
from contextlib import closing

from forq_trio.model.commands import Optimize, TakeSetAside
from forq_trio.model.errors import StorageLost, StorageUnavailable
from forq_trio.storage.engine import EngineFacts, EngineSettings
from forq_trio.storage.relational.engine import SqlEngine
from forq_trio.storage.relational.operations import operation_on_each
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.sqlite.compaction import OPERATIONS
from forq_trio.storage.sqlite.connection import SqliteConnection
from forq_trio.storage.sqlite.facts import facts_of
from forq_trio.storage.sqlite.files.copy import copy_database
from forq_trio.storage.sqlite.files.faults import STORAGE_ERRORS, changed_nothing, unavailable
from forq_trio.storage.sqlite.files.open import open_database, open_reader
from forq_trio.storage.sqlite.files.recognise import refusing
from forq_trio.storage.sqlite.log import SqliteLog
from forq_trio.storage.sqlite.reader import SqliteReader


@operation_on_each(Optimize, OPERATIONS)
def _optimize(tx: Transaction, _: Optimize) -> None:
    tx.query("optimize")


@operation_on_each(TakeSetAside, OPERATIONS)
def _take_set_aside(_: Transaction, __: TakeSetAside) -> tuple[int, ...]:
    """There are none: applications cannot send in a file of ours."""
    return ()


class SqliteEngine(SqlEngine):
    """Engine over one SQLite file. Used from one thread at a time; its log from any."""

    def __init__(
        self,
        path: str,
        settings: EngineSettings,
        durability: str = "full",
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open, and if need be create or migrate, the file. Raises StorageOpenError.

        on_closed: called when the engine has been closed.
        """
        self.durability = durability
        self._on_closed = on_closed
        self._database = open_database(path, durability)
        self._connection = self._database.connection
        writer = SqliteConnection(self._connection)
        try:
            with refusing(path):
                tx = Transaction.new(settings, heads=False)
                tx.load(writer.query, path)
            super().__init__(writer, tx, OPERATIONS)
            self.log = SqliteLog(self._database)
        except BaseException:
            self._database.close()
            raise

    def commit(self) -> bool:
        """See storage/engine.py. files/faults.py explains what is on disk after a failure."""
        if not self._is_open:
            return False
        try:
            self._writer.query("commit")
        except STORAGE_ERRORS as error:
            if not changed_nothing(error):
                raise
            refusal = self._unavailable(error)
            self._rollback()
            raise refusal from error
        self._is_open = False
        self._tx.adopt()
        return True

    def facts(self) -> EngineFacts:
        return facts_of(self._database, self.log, self.durability)

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        """See storage/engine.py; files/copy.py says how."""
        self._check_files()
        done = 0

        def step(copied: int, total: int) -> None:
            nonlocal done
            done = copied
            on_step(copied, total)

        with closing(open_reader(self._database.real_path)) as source:
            return copy_database(source, path, step, checking=lambda: on_step(done, done))

    def open_reader(self) -> SqliteReader:
        self._check_files()
        return SqliteReader(self._database.real_path)

    def _check_files(self) -> None:
        """Raise StorageLost where a connection that is opened now would read something else."""
        problem = self.log.files_problem()
        if problem is not None:
            raise StorageLost(problem)

    def close(self) -> None:
        """Roll back the open transaction, move the log into the file and close it."""
        self._rollback()
        self.log.close()
        self._database.close()
        self._on_closed()

    def _begin(self) -> None:
        self._writer.query("begin")

    def _rollback_statements(self) -> None:
        """SQLite may have done it by itself."""
        if not self._connection.get_autocommit():
            self._writer.query("rollback")

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        assert isinstance(error, STORAGE_ERRORS)
        return unavailable(error, self._connection)
