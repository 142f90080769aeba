"""The reference engine: due messages, and the sweeps, which also take failed messages."""

from collections.abc import Callable

from forq_trio.model import limits
from forq_trio.model.commands import Removed, Sweep, SweepKind
from forq_trio.model.messages.types import LEASE_ENDED, REASON_EXPIRED, REASON_MAX_ATTEMPTS, Status
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage import engine
from forq_trio.storage.transitions import PROMOTED
from oracle.operations import operation
from oracle.rates import settle_wakes
from oracle.state import Row
from oracle.transaction import Transaction


def settle(tx: Transaction) -> None:
    """Settle due messages, in rounds: one that just became ready may have expired, too."""
    while due := _due(tx):
        for row in due:
            _settle_row(tx, row)
    settle_wakes(tx)


def _due(tx: Transaction, *statuses: Status) -> list[Row]:
    """The due messages, those that have been due for longest first. statuses: only these; all if none is given."""
    due = [
        (row.due_at, row.seq)
        for row in tx.state.rows.values()
        if row.due_at is not None and row.due_at <= tx.now_ms and row.status in (statuses or Status)
    ]
    return [tx.state.rows[seq] for _, seq in sorted(due)]


def _settle_row(tx: Transaction, row: Row) -> None:
    if row.status is not Status.PROCESSING and row.expires_after <= tx.now_ms:
        _expire(tx, row)
    elif row.status is Status.PROCESSING:
        _recover(tx, row)
    else:
        tx.change(PROMOTED, row, status=Status.READY)


def _expire(tx: Transaction, row: Row) -> None:
    if tx.rules(row.queue).deletes_expired:
        tx.clean_up(row, "expired")
    else:
        tx.dead_letter_or_delete(row, "expired", REASON_EXPIRED)


def _recover(tx: Transaction, row: Row) -> None:
    tx.end_lease(engine.STALE_RECOVERED, row, failures=tx.failures_with(row, LEASE_ENDED))


def _dead_letter_failed(tx: Transaction, row: Row) -> None:
    tx.dead_letter_or_delete(row, "failed", REASON_MAX_ATTEMPTS)


def settle_failed(tx: Transaction) -> None:
    """Make dead letters of messages that failed in this batch, or delete them; all, or none if sweeps do it."""
    rows = [tx.state.rows[seq] for seq in tx.failed if seq in tx.state.rows]
    failed = [row for row in rows if row.status is Status.FAILED]
    if limits.FAILED_MOVED_MAX == 0:
        tx.failed_queued = bool(failed)
        return
    for row in failed:
        _dead_letter_failed(tx, row)


@operation(Sweep)
def sweep(tx: Transaction, command: Sweep) -> Removed:
    match command.kind:
        case SweepKind.EXPIRED:
            _forget_first_sends(tx)
            return _sweep_rows(tx, _expired(tx, in_dlq=False), _expire)
        case SweepKind.EXPIRED_DLQ:
            return _sweep_rows(tx, _expired(tx, in_dlq=True), _expire)
        case SweepKind.FAILED:
            return _sweep_rows(tx, _failed(tx, in_dlq=False), _dead_letter_failed)
        case SweepKind.FAILED_DLQ:
            return _sweep_rows(tx, _failed(tx, in_dlq=True), _dead_letter_failed)
        case SweepKind.STALE:
            return _sweep_rows(tx, _due(tx, Status.PROCESSING), _recover)


def _sweep_rows(tx: Transaction, rows: list[Row], deal_with: Callable[[Transaction, Row], None]) -> Removed:
    for row in rows:
        deal_with(tx, row)
    return Removed(len(rows), more=False)


def _expired(tx: Transaction, *, in_dlq: bool) -> list[Row]:
    return [
        row
        for row in _due(tx, Status.READY, Status.DELAYED, Status.HELD)
        if row.expires_after <= tx.now_ms and is_dead_letter_queue(row.queue) is in_dlq
    ]


def _failed(tx: Transaction, *, in_dlq: bool) -> list[Row]:
    return [
        row
        for row in tx.state.rows.values()
        if row.status is Status.FAILED and is_dead_letter_queue(row.queue) is in_dlq
    ]


def _forget_first_sends(tx: Transaction) -> None:
    tx.state.first_sends = {
        key: first for key, first in tx.state.first_sends.items() if first.expires_at > tx.now_ms
    }
