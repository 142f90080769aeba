"""What time does to messages: delays end, leases end, messages expire; and the sweeps that deal with the failed ones.

The due timer runs `settle_due` at the start of each batch for which something fell due, so everything happens on time.
The periodic sweeps of contract F13 look at the same index again as a safety net.
"""

from collections.abc import Sequence
from typing import Any

from forq_trio.model import limits
from forq_trio.model.commands import Sweep, SweepKind, Swept
from forq_trio.model.messages import (
    LEASE_ENDED,
    REASON_EXPIRED,
    REASON_MAX_ATTEMPTS,
    Status,
    is_dead_letter_queue,
)
from forq_trio.storage.engine import STALE_RECOVERED
from forq_trio.storage.rules import after_lease_end
from forq_trio.storage.sqlite.operations.dead_letters import bury
from forq_trio.storage.sqlite.row import Stored, stored
from forq_trio.storage.sqlite.transaction import Transaction


def settle_due(tx: Transaction) -> None:
    """Settle what fell due by now, at most DUE_BATCH_MAX messages; notes in `tx` when the next one does."""
    left = limits.DUE_BATCH_MAX
    while left > 0:
        due = _select_due(tx, left)
        if not due:
            break
        left -= len(due)
        _settle(tx, due)
    tx.due_settled = True


def _select_due(tx: Transaction, limit: int) -> list[Stored]:
    return stored(tx.query("select_due", tx.now_ms, limit))


def _settle(tx: Transaction, due: Sequence[Stored]) -> None:
    bury(tx, [message for message in due if message.expired(tx.now_ms)], "expired", REASON_EXPIRED)
    _end_leases(tx, [message for message in due if message.status == Status.PROCESSING])
    promoted = []
    for message in due:
        if message.status == Status.DELAYED and not message.expired(tx.now_ms):
            promoted.append((tx.now_ms, message.seq))
            tx.move(message.queue, Status.DELAYED, Status.READY)
    tx.run("promote", promoted)


def _end_leases(tx: Transaction, due: Sequence[Stored]) -> None:
    """Leases that ended: ready again, the receipt still good until the next claim; or failed at the last attempt."""
    returned: list[tuple[Any, ...]] = []
    for message in due:
        rules = tx.rules(message.queue)
        target, process_after = after_lease_end(message.attempts, message.max_attempts, tx.now_ms, rules)
        kept = None if target is Status.FAILED else message.receipt
        failures = message.failures_with(tx.now_ms, LEASE_ENDED)
        row = (int(target), message.attempts, process_after, kept, None, failures, tx.now_ms, message.seq)
        returned.append(row)
        tx.leave(message)
        tx.move(message.queue, message.status, target)
        tx.note(STALE_RECOVERED, message.queue)
        if target is Status.FAILED:
            tx.failed_queued = True
    tx.run("give_back", returned)


def sweep(tx: Transaction, commands: Sequence[Sweep]) -> list[Swept]:
    tx.due_settled = True
    return [_sweep(tx, command.kind) for command in commands]


def _sweep(tx: Transaction, kind: SweepKind) -> Swept:
    bound = limits.SWEEP_BATCH_MAX
    more = False
    if kind is SweepKind.FAILED or kind is SweepKind.FAILED_DLQ:
        count = _sweep_failed(tx, kind is SweepKind.FAILED_DLQ, bound)
    else:
        count = _sweep_due(tx, kind, bound)
        if kind is SweepKind.EXPIRED:
            tx.query("expire_dedup", tx.now_ms, bound)
            more = tx.connection.changes() == bound
    return Swept(count, more or count == bound)


def _sweep_failed(tx: Transaction, dead_letters: bool, bound: int) -> int:
    failed = stored(tx.query("select_failed", int(dead_letters), bound))
    bury(tx, failed, "failed", REASON_MAX_ATTEMPTS)
    return len(failed)


def _sweep_due(tx: Transaction, kind: SweepKind, bound: int) -> int:
    due = _select_due(tx, bound)
    if kind is SweepKind.STALE:
        due = [message for message in due if message.status == Status.PROCESSING]
        _end_leases(tx, due)
    else:
        dead = kind is SweepKind.EXPIRED_DLQ
        due = [m for m in due if m.expired(tx.now_ms) and is_dead_letter_queue(m.queue) == dead]
        bury(tx, due, "expired", REASON_EXPIRED)
    return len(due)
