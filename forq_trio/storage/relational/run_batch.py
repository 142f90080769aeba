"""How a batch runs on a SQL database: one transaction of the one connection that writes.

A batch runs in this order, each kind of command set-wise:

    1. messages that are due (operations/due.py)
    2. what batches do without a command (own_work.py), and messages that applications sent in transactions of their own
       (PostgreSQL only)
    3. the commands, kind by kind, in the order of `commands.COMMANDS`: settings, sends, offers, settlements,
       settlements with results, moves and removals, new due times and removals by key, sweeps, tokens and sessions,
       tasks over dead letters, those of features, maintenance
    4. failed messages, offers that waited behind a message of their key, held messages that become ready, what follows
       from messages that ended (own_work.py)
    5. claims, by name of the queue: parked receivers before the batch's own claims, each in order

If any command raises, the whole transaction is rolled back and the batch runs again with every command in a savepoint
of its own, so that only the faulty one fails; the usual batch pays nothing for that. Errors of the database itself
(full, unreadable, locked) fail the batch as a whole.

The counts, the last sequence number and the next due time are also in memory (parts/parts.py). So if no other process
uses the database, a claim on a queue without ready messages, or a batch without work, runs no SQL.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from forq_trio.model import limits
from forq_trio.model.commands import Claim, Command, Ping
from forq_trio.model.errors import CommandRefused, ForqError, StorageUnavailable
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.allowance import Step
from forq_trio.storage.engine import Batch, BatchResult
from forq_trio.storage.relational.connection import WriteConnection
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.relational.operations import Operation, Operations, due, operation_on_each
from forq_trio.storage.relational.operations.claim import Receivers, claim, queues_to_claim
from forq_trio.storage.relational.operations.unhold import unhold, wake_limited
from forq_trio.storage.relational.operations.waiting import store_waiting
from forq_trio.storage.relational.own_work import OWN_WORK, follow_up
from forq_trio.storage.relational.transaction import Transaction

Served = list[tuple[int, tuple[Delivery, ...]]]


class BatchDatabase(Protocol):
    """What `run_batch` needs of an engine. Each of these functions may raise one of the connection's storage errors."""

    ids: MessageIds
    operations: Operations

    @property
    def tx(self) -> Transaction:
        """The transaction, with the parts of the engine's memory."""
        ...

    @property
    def connection(self) -> WriteConnection:
        """The only connection that writes."""
        ...

    @property
    def order(self) -> Sequence[type[Command[Any]]]:
        """The kinds of commands, in the order in which they run."""
        ...

    def has_work(self, batch: Batch) -> bool:
        """False if a batch would neither change nor find anything."""
        ...

    def begin(self, batch: Batch, *, isolated: bool) -> None:
        """Open a transaction. From then on nobody else writes, and `tx` is as of the last commit of any process."""
        ...

    def refusals(self, commands: Sequence[Command[Any]]) -> list[ForqError | None]:
        """For each command the reason why the database cannot store its values; None if it can."""
        ...

    def move_sent(self) -> None:
        """Move messages that applications sent in transactions of their own into their queues."""
        ...

    def write(self) -> None:
        """Write what the operations do not write, after the batch has run and before its commit."""
        ...

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one, and what it changed in `tx`."""
        ...

    def unavailable(self, error: Exception) -> StorageUnavailable:
        """The error for callers after a storage error that kept anything from being changed."""
        ...


@operation_on_each(Ping, changes=lambda _, __: ())
def _ping(tx: Transaction, _: Ping) -> None:
    tx.query("ping")


def run_batch(database: BatchDatabase, batch: Batch) -> BatchResult:
    """Run a batch (`Engine.execute_batch`) and leave its transaction open, if there is something to commit."""
    if not database.has_work(batch):
        return BatchResult([()] * len(batch.commands), [], database.tx.due.committed_next_ms, [])
    storage_errors = database.connection.storage_errors
    try:
        try:
            return run_in_transaction(database, batch, isolated=False)
        except storage_errors:
            raise
        except Exception:
            database.roll_back()
            return run_in_transaction(database, batch, isolated=True)
    except storage_errors as error:
        refusal = database.unavailable(error)
        database.roll_back()
        raise refusal from error


def has_work(tx: Transaction, batch: Batch) -> bool:
    """Whether something is due or left over, or a command of this batch would find something to do."""
    if _has_come(tx.due.committed_next_ms, batch.now_ms) or tx.has_more:
        return True
    for command in batch.commands:
        if type(command) is not Claim:
            return True
        counts = tx.counts.committed.get(command.queue)
        if counts is not None and counts.ready and not tx.settings.committed_rules(command.queue).paused:
            return True
    return False


def run_in_transaction(database: BatchDatabase, batch: Batch, *, isolated: bool) -> BatchResult:
    """Run a batch in a new transaction and leave it open. isolated: a command that raises fails alone."""
    database.begin(batch, isolated=isolated)
    tx = database.tx
    tx.begin(
        database.connection,
        database.ids,
        batch.now_ms,
        isolated=isolated,
        shared=batch.shared,
        refused=batch.refused,
    )
    tx.endings.awaited = batch.awaited_ends
    if _has_come(tx.due.committed_next_ms, batch.now_ms):
        due.settle_due(tx)
    if batch.moves_staged:
        for each in OWN_WORK:
            if _has_come(each.due_at(tx), batch.now_ms):
                each.work(tx)
        database.move_sent()
    outcomes: list[Any] = database.refusals(batch.commands)
    kinds: dict[type[Command[Any]], list[int]] = {}
    for index, command in enumerate(batch.commands):
        if outcomes[index] is None:
            kinds.setdefault(type(command), []).append(index)
    claims = kinds.pop(Claim, [])
    run = _run_isolated if isolated else _run_together
    for kind in database.order if len(kinds) > 1 else kinds:
        if kind in kinds:
            tx.allowances.renew(Step.EVICT)
            tx.begin_step()
            commands = [batch.commands[index] for index in kinds[kind]]
            done = run(tx, database.operations[kind], commands)
            for index, outcome in zip(kinds[kind], done, strict=True):
                outcomes[index] = outcome
    due.settle_failed(tx)
    store_waiting(tx)
    _unhold(tx)
    follow_up(tx, sends=batch.moves_staged)
    served: Served = []
    if claims or batch.receivers:
        deal = _claim_isolated if isolated else claim
        deliveries, served = deal(tx, [batch.commands[index] for index in claims], batch.receivers)  # type: ignore[misc]
        for index, outcome in zip(claims, deliveries, strict=True):
            outcomes[index] = outcome
    if tx.leftovers.offers:  # offers that waited behind messages that claims moved or removed
        tx.wakes.next.update(queue for queue, _, _ in tx.leftovers.offers)
        store_waiting(tx)
    if tx.rates.limited:
        wake_limited(tx)
    follow_up(tx, sends=False)
    tx.save()
    work_times = [each.due_at(tx) for each in OWN_WORK]
    tx.due.next_ms = _find_next_due(tx, batch, work_times)
    assert tx.figures.changes <= limits.COMMIT_CHANGES_MAX, tx.figures.changes
    database.write()
    return BatchResult(
        outcomes,
        served,
        tx.due.next_ms,
        tx.figures.events(),
        tx.leftovers.failed_left,
        tx.wakes.woken,
        tx.figures.durations,
        tx.figures.moved_in,
        tx.set_aside.messages,
        tx.events.queues(),
        [done for each in OWN_WORK for done in each.done(tx)],
        ended=tx.endings.noted,
    )


def _find_next_due(tx: Transaction, batch: Batch, work_times: Sequence[int | None]) -> int | None:
    """The next due time: read from the index after due messages were settled, else the cached or an earlier one.

    work_times: when work without a command is due.
    """
    if tx.set_aside.retry_later:
        return tx.now_ms + limits.DUE_RETRY_MS
    times = [due.next_due(tx)] if tx.due.settled else [tx.due.committed_next_ms, tx.due.first_ms]
    if tx.unfinished():  # does not replace an earlier time, which would be lost if the clock is set back
        times.append(tx.now_ms)
    for at in work_times:
        rests = not batch.moves_staged and _has_come(at, tx.now_ms)
        times.append(tx.now_ms + limits.DUE_RETRY_MS if rests else at)
    return min([time for time in times if time is not None], default=None)


def _has_come(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms


def _run_together(tx: Transaction, operation: Operation, commands: Sequence[Any]) -> Sequence[Any]:
    return operation(tx, commands)


def _run_isolated(tx: Transaction, operation: Operation, commands: Sequence[Any]) -> Sequence[Any]:
    """Run each command alone. A command that raises is undone, and its exception is its outcome."""
    outcomes: list[Any] = []
    for command in commands:
        done: list[Any] = []
        error = tx.attempt(lambda command=command, done=done: done.extend(operation(tx, [command])))  # type: ignore[misc]
        if error is not None and not isinstance(error, ForqError):
            error = CommandRefused(f"{type(error).__name__}: {error}")
        outcomes += done if error is None else [error]
    return outcomes


def _unhold(tx: Transaction) -> None:
    """Run `unhold`. In an isolated batch an error is reported as set aside, and the work is tried again later."""
    groups = tx.freed.take(limits.DUE_BATCH_MAX)
    if not groups and not tx.grouped.queues_unholding():
        return
    if tx.isolated:
        error = tx.attempt(partial(unhold, tx, groups))
        if error is not None:
            tx.set_aside.note("held messages", error)
            tx.set_aside.retry_later = True
    else:
        unhold(tx, groups)


def _claim_isolated(
    tx: Transaction, claims: Sequence[Claim], receivers: Receivers
) -> tuple[list[Any], Served]:
    """Run `claim` queue by queue, and one by one if that fails. Receivers of a queue that fails stay parked."""
    outcomes: list[Any] = [()] * len(claims)
    served: Served = []

    def attempt(some: Sequence[int], waiting: Receivers) -> Exception | None:
        part = [claims[index] for index in some]
        (dealt,) = _run_isolated(tx, lambda tx, _: [claim(tx, part, waiting)], [None])
        if isinstance(dealt, Exception):
            return dealt
        served.extend(dealt[1])
        for index, outcome in zip(some, dealt[0], strict=True):
            outcomes[index] = outcome
        return None

    for queue in queues_to_claim(tx, claims, receivers):
        own = [index for index, command in enumerate(claims) if command.queue == queue]
        waiting = {queue: receivers[queue]} if queue in receivers else {}
        if attempt(own, waiting) is not None:
            attempt([], waiting)
            for index in own:
                outcomes[index] = attempt([index], {}) or outcomes[index]
    return outcomes, served
