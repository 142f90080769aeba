"""The SQLite engine: a file, its write connection, its log; storage/relational/run_batch.py runs the batches."""

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any

import apsw

from forq_trio.model.clock import Clock, SystemClock
from forq_trio.model.commands import Command, Optimize, TakeSetAside, in_order
from forq_trio.model.errors import ForqError, StorageLost, StorageUnavailable
from forq_trio.storage.engine import Batch, BatchResult, EngineFacts, EngineSettings, Snapshot
from forq_trio.storage.lease_marks import MARKED, MARKED_MAX, RANDOM_BITS, own_mark
from forq_trio.storage.relational.cache import Cache
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.relational.operations import operation_on_each
from forq_trio.storage.relational.run_batch import has_work, run_batch
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
    """There are none: applications can send in their own transactions only with PostgreSQL."""
    return ()


class SqliteEngine:
    """Engine over one SQLite file. Used from one thread at a time; its log from any."""

    listen = tables_urls = check_texts = None
    operations, order = OPERATIONS, in_order(OPERATIONS)

    def __init__(
        self,
        path: str,
        settings: EngineSettings,
        durability: str = "full",
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the file, after creating or migrating it if needed. Raises StorageOpenError.

        on_closed: called when the engine has been closed.
        """
        self.durability = durability
        self._on_closed = on_closed
        self._database = open_database(path, durability)
        self.connection = SqliteConnection(self._database.connection)
        self.ids = MessageIds()
        self.tx = Transaction.new(settings, heads=False)
        if settings.in_process:
            self.tx.lease_mark = own_mark()
        self._cache = Cache(self.tx)
        self._is_open = False  # a batch has run and is not committed yet
        try:
            with refusing(path):
                with suppress(apsw.FullError):  # they end in any case, by their time
                    self.connection.query("end_leases", MARKED, MARKED_MAX, own_mark(), 1 << RANDOM_BITS)
                self.tx.load(self.connection.query, path)
            self.log = SqliteLog(self._database)
        except BaseException:
            self._database.close()
            raise

    def execute_batch(self, batch: Batch) -> BatchResult:
        """See storage/engine.py."""
        return run_batch(self, batch)

    def commit(self) -> bool:
        """See storage/engine.py. files/faults.py explains what is on disk after a failure."""
        if not self._is_open:
            return False
        try:
            self.connection.query("commit")
        except STORAGE_ERRORS as error:
            if not changed_nothing(error):
                raise
            refusal = self.unavailable(error)
            self.roll_back()
            raise refusal from error
        self._is_open = False
        self.tx.adopt()
        return True

    def snapshot(self) -> Snapshot:
        return self._cache

    def clock(self) -> Clock:
        return SystemClock()

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
        """Raise StorageLost if a new connection would open a different file, or find a different log."""
        problem = self.log.files_problem()
        if problem is not None:
            raise StorageLost(problem)

    def close(self) -> None:
        """Roll back the open transaction, move the log into the file and close it."""
        self.roll_back()
        self.log.close()
        self._database.close()
        self._on_closed()

    # What `run_batch` asks for

    def has_work(self, batch: Batch) -> bool:
        return has_work(self.tx, batch)

    def begin(self, _: Batch, *, isolated: bool) -> None:
        self.connection.query("begin")
        self._is_open = True

    def refusals(self, commands: Sequence[Command[Any]]) -> list[ForqError | None]:
        """None: SQLite can store everything that a command can contain."""
        return [None] * len(commands)

    def move_sent(self) -> None:
        """Nothing to do: applications can send in their own transactions only with PostgreSQL."""

    def write(self) -> None:
        """Nothing to do: everything is in the tables."""

    def roll_back(self) -> None:
        """Roll back, unless SQLite has already done so."""
        self._is_open = False
        self.tx.discard()
        if not self._database.connection.get_autocommit():
            self.connection.query("rollback")

    def unavailable(self, error: Exception) -> StorageUnavailable:
        assert isinstance(error, STORAGE_ERRORS)
        return unavailable(error, self._database.connection)
