"""The SQLite engine: one batch, one transaction, one write connection.

A batch runs in a fixed order (engine.py's rule 4), each kind of command set-wise. If any command raises, the whole
transaction is rolled back and the batch runs again with every command in a savepoint of its own, so that only the
faulty one fails; the usual batch pays nothing for that. Errors of the database itself (full, unreadable, locked) fail
the batch as a whole; faults.py says what is known after them.

The counts, the last sequence number and the next due time are kept in memory beside the tables: a claim on a queue with
nothing ready, or a batch with nothing to do, runs no SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import apsw

from forq_trio.model.access import AccessToken
from forq_trio.model.commands import (
    Ack,
    AckById,
    Claim,
    Command,
    Configure,
    Delete,
    Extend,
    ForgetQueue,
    Nack,
    NackById,
    NoteTokenUse,
    Optimize,
    Pause,
    Ping,
    Produce,
    ProduceEach,
    ProduceMany,
    Purge,
    Redrive,
    Release,
    Resubmit,
    RevokeToken,
    SaveToken,
    Sweep,
)
from forq_trio.model.errors import CommandRefused, ForqError
from forq_trio.model.messages import Delivery, QueueCounts
from forq_trio.model.queue_settings import QueueRules, QueueSettings
from forq_trio.storage.engine import Batch, BatchResult, CheckpointResult, EngineSettings
from forq_trio.storage.sqlite.files.faults import STORAGE_ERRORS, changed_nothing, unavailable
from forq_trio.storage.sqlite.files.open import open_checkpointer, open_database
from forq_trio.storage.sqlite.files.recognise import refusing
from forq_trio.storage.sqlite.ids import MessageIds
from forq_trio.storage.sqlite.load import load
from forq_trio.storage.sqlite.operations import due, moves, settle, tokens
from forq_trio.storage.sqlite.operations import queues as administration
from forq_trio.storage.sqlite.operations import send as produce
from forq_trio.storage.sqlite.operations.claim import claim, queues_to_claim
from forq_trio.storage.sqlite.operations.group_limit import let_go
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
    Configure: administration.configure,
    Pause: administration.pause,
    Produce: produce.produce,
    ProduceMany: produce.produce_many,
    ProduceEach: produce.produce_each,
    Resubmit: moves.resubmit,
    Ack: settle.ack,
    AckById: settle.ack_by_id,
    Nack: settle.nack,
    NackById: settle.nack_by_id,
    Extend: settle.extend,
    Release: settle.release,
    Redrive: moves.redrive,
    Delete: moves.delete,
    Purge: administration.purge,
    ForgetQueue: administration.forget,
    Sweep: due.sweep,
    SaveToken: tokens.save,
    RevokeToken: tokens.revoke,
    NoteTokenUse: tokens.note_use,
    Optimize: _optimize,
    Ping: _ping,
}


class SqliteEngine:
    """Engine over one SQLite file. Used from one thread at a time; `checkpoint` from any."""

    def __init__(self, path: str, settings: EngineSettings, durability: str = "full") -> None:
        """Open, and if need be create or migrate, the file. Raises StorageOpenError."""
        self.durability = durability
        self._path = path
        self._database = open_database(path, durability)
        self.reserve_path: str | None = self._database.reserve_path
        self._connection = self._database.connection
        self._log_pages = 0
        self._connection.set_wal_hook(self._note_log_pages)
        self._checkpoint_lock = Lock()
        self._ids = MessageIds()
        self._open_transaction: Transaction | None = None
        try:
            with refusing(path):
                self._kept = load(self._connection, settings)
            self._checkpointer = open_checkpointer(path)
        except BaseException:
            self._database.close()
            raise
        # A checkpoint that empties the log wants no reader in its way. It does not wait for one: the writer is held.
        self._checkpointer.set_busy_timeout(0)

    def execute_batch(self, batch: Batch) -> BatchResult:
        """See engine.py. Leaves a transaction open only if there is something to commit."""
        if not self._has_work(batch):
            return BatchResult([()] * len(batch.commands), {}, self._kept.next_due_ms, [])
        try:
            try:
                return self._run(batch, isolated=False)
            except STORAGE_ERRORS:
                raise
            except Exception:
                self._rollback()
                return self._run(batch, isolated=True)
        except STORAGE_ERRORS as error:
            refusal = unavailable(error, self._connection)
            self._rollback()
            raise refusal from error

    def commit(self) -> bool:
        """See engine.py. What is known after a failure: faults.py."""
        tx = self._open_transaction
        if tx is None:
            return False
        try:
            self._connection.execute(SQL["commit"])
        except STORAGE_ERRORS as error:
            if not changed_nothing(error):
                raise
            refusal = unavailable(error, self._connection)
            self._rollback()
            raise refusal from error
        self._open_transaction = None
        tx.adopt()
        return True

    def counts(self) -> Mapping[str, QueueCounts]:
        return self._kept.counts

    def settings(self) -> Mapping[str, QueueSettings]:
        return self._kept.settings

    def rules(self, queue: str) -> QueueRules:
        return self._kept.rules(queue)

    def tokens(self) -> Mapping[str, AccessToken]:
        return self._kept.tokens

    def last_sequence(self) -> int:
        return self._kept.last_seq

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
                raise unavailable(error, self._checkpointer) from error
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
        if self._is_due(batch.now_ms) or self._kept.unfinished:
            return True
        for command in batch.commands:
            if type(command) is not Claim:
                return True
            counts = self._kept.counts.get(command.queue)
            if counts is not None and counts.ready and not self._kept.rules(command.queue).paused:
                return True
        return False

    def _is_due(self, now_ms: int) -> bool:
        return self._kept.next_due_ms is not None and self._kept.next_due_ms <= now_ms

    def _run(self, batch: Batch, *, isolated: bool) -> BatchResult:
        """Run the batch in a new transaction and leave it open."""
        self._connection.execute(SQL["begin"])
        tx = Transaction(self._connection, self._kept, batch.now_ms, self._ids)
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
        let_go(tx)
        tx.freed.clear()
        served: Served = {}
        if claims or batch.parked:
            deal = self._claim_isolated if isolated else claim
            deliveries, served = deal(tx, [batch.commands[index] for index in claims], batch.parked)  # type: ignore[misc]
            for index, outcome in zip(claims, deliveries, strict=True):
                outcomes[index] = outcome
        tx.free_next = tx.freed
        tx.save()
        tx.next_due_ms = self._find_next_due(tx)
        return BatchResult(
            outcomes,
            served,
            tx.next_due_ms,
            tx.events(),
            tx.failed_queued,
            tx.woken,
            tx.durations,
        )

    def _run_isolated(self, tx: Transaction, operation: Operation, commands: Sequence[Any]) -> list[Any]:
        """Run each command alone; one that raises is undone and its error is its outcome."""
        outcomes: list[Any] = []
        for command in commands:
            notes = tx.savepoint()
            try:
                with self._connection:
                    outcomes += operation(tx, [command])
            except STORAGE_ERRORS:
                raise
            except ForqError as error:
                tx.restore(notes)
                outcomes.append(error)
            except Exception as error:
                tx.restore(notes)
                outcomes.append(CommandRefused(f"{type(error).__name__}: {error}"))
        return outcomes

    def _claim_isolated(
        self, tx: Transaction, claims: Sequence[Claim], parked: Mapping[str, Sequence[Claim]]
    ) -> tuple[list[Any], Served]:
        """`claim` queue by queue, and one by one where that fails. A line of parked receivers that fails waits on."""
        outcomes: list[Any] = [()] * len(claims)
        served: Served = {}

        def attempt(some: Sequence[int], line: Mapping[str, Sequence[Claim]]) -> Exception | None:
            part = [claims[index] for index in some]
            (dealt,) = self._run_isolated(tx, lambda tx, _: [claim(tx, part, line)], [None])
            if isinstance(dealt, Exception):
                return dealt
            served.update(dealt[1])
            for index, outcome in zip(some, dealt[0], strict=True):
                outcomes[index] = outcome
            return None

        for queue in queues_to_claim(tx, claims, parked):
            own = [index for index, command in enumerate(claims) if command.queue == queue]
            line = {queue: parked[queue]} if queue in parked else {}
            if attempt(own, line) is not None:
                attempt([], line)
                for index in own:
                    outcomes[index] = attempt([index], {}) or outcomes[index]
        return outcomes, served

    def _find_next_due(self, tx: Transaction) -> int | None:
        """After settling: what the index says. Else: the known time, or an earlier one this batch brought."""
        if tx.unfinished():
            return tx.now_ms
        if tx.due_settled:
            next_due_ms: int | None = self._connection.execute(SQL["next_due"]).get
            return next_due_ms
        times = [time for time in (self._kept.next_due_ms, tx.due_ms) if time is not None]
        return min(times, default=None)

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
