"""The SQLite engine: one batch, one transaction, one write connection.

A batch runs in a fixed order (engine.py's rule 4), each kind of command set-wise. If any command raises, the whole
transaction is rolled back and the batch runs again with every command in a savepoint of its own, so that only the
faulty one fails; the usual batch pays nothing for that. Errors of the database itself (full, unreadable, locked) fail
the batch as a whole.

The counts, the last sequence number and the next due time are kept in memory beside the tables: a claim on a queue with
nothing ready, or a batch with nothing to do, runs no SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import apsw

from forq_trio.commands import (
    Ack,
    AckById,
    Claim,
    Command,
    Extend,
    Nack,
    NackById,
    Optimize,
    Ping,
    Produce,
    ProduceMany,
    Release,
    Sweep,
)
from forq_trio.errors import CommandRefused, ServiceError, StorageUnavailable
from forq_trio.model import Delivery, QueueCounts
from forq_trio.storage.engine import Batch, BatchResult, CheckpointResult, EngineSettings
from forq_trio.storage.sqlite import due, produce, settle
from forq_trio.storage.sqlite.claim import claim
from forq_trio.storage.sqlite.ids import MessageIds
from forq_trio.storage.sqlite.open import open_checkpointer, open_database
from forq_trio.storage.sqlite.reader import SqliteReader
from forq_trio.storage.sqlite.transaction import SQL, Transaction

Operation = Callable[[Transaction, Sequence[Any]], Sequence[Any]]
Served = dict[str, list[tuple[int, tuple[Delivery, ...]]]]


def _optimize(tx: Transaction, commands: Sequence[Optimize]) -> list[None]:
    tx.query("optimize")
    return [None] * len(commands)


def _ping(tx: Transaction, commands: Sequence[Ping]) -> list[None]:
    tx.query("ping")
    return [None] * len(commands)


# In the order in which a batch runs them.
_OPERATIONS: dict[type[Command[Any]], Operation] = {
    Produce: produce.produce,
    ProduceMany: produce.produce_many,
    Ack: settle.ack,
    AckById: settle.ack_by_id,
    Nack: settle.nack,
    NackById: settle.nack_by_id,
    Extend: settle.extend,
    Release: settle.release,
    Sweep: due.sweep,
    Optimize: _optimize,
    Ping: _ping,
}

# What SQLite raises when the trouble is the database or the disk, not the command.
_STORAGE_ERRORS = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)


class SqliteEngine:
    """Engine over one SQLite file. Used from one thread at a time; `checkpoint` from any."""

    def __init__(self, path: str, settings: EngineSettings, durability: str = "full") -> None:
        """Open, and if need be create or migrate, the file. Raises StorageOpenError."""
        self.durability = durability
        self._path = path
        self._settings = settings
        self._database = open_database(path, durability)
        self._connection = self._database.connection
        self._log_pages = 0
        self._connection.set_wal_hook(self._note_log_pages)
        self._checkpointer = open_checkpointer(path)
        # A checkpoint that empties the log wants no reader in its way. It does not wait for one: the writer is held.
        self._checkpointer.set_busy_timeout(0)
        self._checkpoint_lock = Lock()
        self._ids = MessageIds()
        self._counts = {
            queue: QueueCounts(*counts) for queue, *counts in self._connection.execute(SQL["load_counts"])
        }
        self._last_seq = self._query_number("last_sequence") or 0
        self._next_due_ms = self._query_number("next_due")
        self._open_transaction: Transaction | None = None
        self._changed: dict[str, QueueCounts] = {}

    def execute_batch(self, batch: Batch) -> BatchResult:
        """See engine.py. Leaves a transaction open only if there is something to commit."""
        if not self._has_work(batch):
            return BatchResult([()] * len(batch.commands), {}, self._next_due_ms, [])
        try:
            try:
                return self._run(batch, isolated=False)
            except _STORAGE_ERRORS:
                raise
            except Exception:
                self._rollback()
                return self._run(batch, isolated=True)
        except _STORAGE_ERRORS as error:
            self._rollback()
            raise StorageUnavailable(str(error)) from error

    def commit(self) -> bool:
        """See engine.py."""
        tx = self._open_transaction
        if tx is None:
            return False
        self._connection.execute(SQL["commit"])
        self._open_transaction = None
        self._counts.update(self._changed)
        self._last_seq = tx.last_seq
        return True

    def counts(self) -> Mapping[str, QueueCounts]:
        return self._counts

    def open_reader(self) -> SqliteReader:
        return SqliteReader(self._path)

    def log_pages(self) -> int:
        return self._log_pages

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """See engine.py. Waits for a checkpoint that runs already, not for readers. Raises StorageUnavailable."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        with self._checkpoint_lock:
            try:
                log_pages, moved_pages = self._checkpointer.wal_checkpoint(mode=mode)
            except apsw.Error as error:
                raise StorageUnavailable(str(error)) from error
        if truncate:
            self._log_pages = 0
        return CheckpointResult(log_pages, moved_pages)

    def close(self) -> None:
        """Roll back what is open, move the log into the file and close it."""
        self._rollback()
        with self._checkpoint_lock:
            self._checkpointer.close()
        self._database.close()

    def _has_work(self, batch: Batch) -> bool:
        if self._is_due(batch.now_ms):
            return True
        for command in batch.commands:
            if type(command) is not Claim:
                return True
            counts = self._counts.get(command.queue)
            if counts is not None and counts.ready:
                return True
        return False

    def _is_due(self, now_ms: int) -> bool:
        return self._next_due_ms is not None and self._next_due_ms <= now_ms

    def _run(self, batch: Batch, *, isolated: bool) -> BatchResult:
        """Run the batch in a new transaction and leave it open."""
        self._connection.execute(SQL["begin"])
        tx = Transaction(
            self._connection, self._settings, batch.now_ms, self._last_seq, self._ids, self._counts
        )
        self._open_transaction = tx
        if self._is_due(batch.now_ms):
            due.settle_due(tx)
        outcomes: list[Any] = [None] * len(batch.commands)
        kinds: dict[type[Command[Any]], list[int]] = {}
        for index, command in enumerate(batch.commands):
            kinds.setdefault(type(command), []).append(index)
        claims = kinds.pop(Claim, [])
        for kind in _OPERATIONS if len(kinds) > 1 else kinds:
            if kind in kinds:
                commands = [batch.commands[index] for index in kinds[kind]]
                run = self._run_isolated if isolated else _run_together
                for index, outcome in zip(kinds[kind], run(tx, _OPERATIONS[kind], commands), strict=True):
                    outcomes[index] = outcome
        deal = self._claim_isolated if isolated else claim
        deliveries, served = deal(tx, [batch.commands[index] for index in claims], batch.parked)  # type: ignore[misc]
        for index, outcome in zip(claims, deliveries, strict=True):
            outcomes[index] = outcome
        self._changed = tx.save_counts()
        self._next_due_ms = self._find_next_due(tx)
        return BatchResult(outcomes, served, self._next_due_ms, tx.events(), tx.failed_queued)

    def _run_isolated(self, tx: Transaction, operation: Operation, commands: Sequence[Any]) -> list[Any]:
        """Run each command alone; one that raises is undone and its error is its outcome."""
        outcomes: list[Any] = []
        for command in commands:
            notes = tx.savepoint()
            try:
                with self._connection:
                    outcomes += operation(tx, [command])
            except _STORAGE_ERRORS:
                raise
            except ServiceError as error:
                tx.restore(notes)
                outcomes.append(error)
            except Exception as error:
                tx.restore(notes)
                outcomes.append(CommandRefused(f"{type(error).__name__}: {error}"))
        return outcomes

    def _claim_isolated(
        self, tx: Transaction, claims: Sequence[Claim], parked: Mapping[str, Sequence[Claim]]
    ) -> tuple[list[Any], Served]:
        """`claim` one by one. A line of parked receivers that cannot be served as a whole goes on waiting."""
        served: Served = {}

        def serve(tx: Transaction, queues: Sequence[str]) -> list[None]:
            for queue in queues:
                served.update(claim(tx, [], {queue: parked[queue]})[1])
            return [None] * len(queues)

        self._run_isolated(tx, serve, [queue for queue in sorted(tx.woken) if queue in parked])
        return self._run_isolated(tx, lambda tx, one: claim(tx, one, {})[0], claims), served

    def _find_next_due(self, tx: Transaction) -> int | None:
        """After settling: what the index says. Else: the known time, or an earlier one this batch brought."""
        if tx.due_settled:
            return self._query_number("next_due")
        times = [time for time in (self._next_due_ms, tx.due_ms) if time is not None]
        return min(times, default=None)

    def _query_number(self, statement: str) -> int | None:
        number: Any = self._connection.execute(SQL[statement]).get
        return None if number is None else int(number)

    def _rollback(self) -> None:
        """Forget the open transaction, if there is one. SQLite may have rolled back by itself."""
        self._open_transaction = None
        if not self._connection.get_autocommit():
            self._connection.execute(SQL["rollback"])

    def _note_log_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK


def _run_together(tx: Transaction, operation: Operation, commands: Sequence[Any]) -> Sequence[Any]:
    return operation(tx, commands)
