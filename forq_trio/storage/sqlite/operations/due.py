"""What time does to messages: delays end, leases end, messages expire; and the sweeps that deal with the failed ones.

The due timer runs `settle_due` at the start of each batch that comes after a due time, so everything happens on time.
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
from forq_trio.storage.sqlite.operations.isolation import settle_each
from forq_trio.storage.sqlite.row import Row, rows_of
from forq_trio.storage.sqlite.transaction import Transaction
from forq_trio.storage.transitions import PROMOTED


def settle_due(tx: Transaction) -> None:
    """Settle what fell due by now, at most DUE_BATCH_MAX messages; notes in `tx` when the next one does."""
    left = limits.DUE_BATCH_MAX
    while left > 0 and (due := _select_due(tx, left)):
        left -= len(due)
        settle_each(tx, due, _settle)
    tx.due_settled = True


def _select_due(tx: Transaction, limit: int) -> list[Row]:
    left_alone = tx.left_alone()
    if left_alone:
        return rows_of(tx.query("select_due_but", tx.now_ms, str(left_alone), limit))
    return rows_of(tx.query("select_due", tx.now_ms, limit))


def next_due(tx: Transaction) -> int | None:
    """When the clock next concerns a message that is not set aside, or one that is is to be tried again."""
    left_alone = tx.left_alone()
    found = tx.query("next_due_but", str(left_alone)) if left_alone else tx.query("next_due")
    times = [at for (at,) in found]
    if left_alone:
        times.append(tx.next_retry_ms())
    return min(times, default=None)


def _settle(tx: Transaction, due: Sequence[Row]) -> None:
    bury(tx, [message for message in due if message.expired(tx.now_ms)], "expired", REASON_EXPIRED)
    _end_leases(tx, [message for message in due if message.status == Status.PROCESSING])
    promoted = []
    for message in due:
        if message.status == Status.DELAYED and not message.expired(tx.now_ms):
            promoted.append((tx.now_ms, message.seq))
            due_ms = message.expires_after
            tx.transition(PROMOTED, message.queue, message.status, Status.READY, (message,), due_ms=due_ms)
    tx.run("promote", promoted)


def _end_leases(tx: Transaction, due: Sequence[Row]) -> None:
    """Leases that ended: ready again, the receipt still good until the next claim; or failed at the last attempt."""
    returned: list[tuple[Any, ...]] = []
    for message in due:
        rules = tx.rules(message.queue)
        target, process_after = after_lease_end(message.attempts, message.max_attempts, tx.now_ms, rules)
        failed = target is Status.FAILED
        receipt = None if failed else message.receipt
        failures = message.failures_with(tx.now_ms, LEASE_ENDED)
        row = (int(target), message.attempts, process_after, receipt, None, failures, tx.now_ms, message.seq)
        returned.append(row)
        due_ms = None if failed else message.expires_after
        tx.transition(STALE_RECOVERED, message.queue, message.status, target, (message,), due_ms=due_ms)
    tx.run("give_back", returned)


def sweep(tx: Transaction, commands: Sequence[Sweep]) -> list[Swept]:
    tx.due_settled = True
    return [_sweep(tx, command.kind) for command in commands]


def _sweep(tx: Transaction, kind: SweepKind) -> Swept:
    bound = limits.SWEEP_BATCH_MAX
    if kind is SweepKind.FAILED or kind is SweepKind.FAILED_DLQ:
        found = _select_failed(tx, kind is SweepKind.FAILED_DLQ, bound)
        settled = settle_each(tx, found, _bury_failed)
    else:
        found = _select_due_of(tx, kind, bound)
        settled = settle_each(tx, found, _settle)
    more = len(found) == bound and not tx.retry_later
    if kind is SweepKind.EXPIRED:
        tx.query("expire_dedup", tx.now_ms, bound)
        more = more or tx.connection.changes() == bound
    return Swept(settled, more)


def _bury_failed(tx: Transaction, failed: Sequence[Row]) -> None:
    bury(tx, failed, "failed", REASON_MAX_ATTEMPTS)


def _select_failed(tx: Transaction, dead_letters: bool, bound: int) -> list[Row]:
    left_alone = tx.left_alone()
    if left_alone:
        return rows_of(tx.query("select_failed_but", int(dead_letters), str(left_alone), bound))
    return rows_of(tx.query("select_failed", int(dead_letters), bound))


def _select_due_of(tx: Transaction, kind: SweepKind, bound: int) -> list[Row]:
    """What this sweep is for, of the messages that are due."""
    due = _select_due(tx, bound)
    if kind is SweepKind.STALE:
        return [message for message in due if message.status == Status.PROCESSING]
    dead = kind is SweepKind.EXPIRED_DLQ
    return [m for m in due if m.expired(tx.now_ms) and is_dead_letter_queue(m.queue) == dead]
