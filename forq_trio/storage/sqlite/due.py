"""What time does to messages: delays end, leases end, messages expire; and the sweeps that deal with the failed ones.

The due timer runs `settle_due` at the start of each batch for which something fell due, so everything happens on time.
The periodic sweeps of contract F13 look at the same index again as a safety net.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from forq_trio import limits
from forq_trio.commands import Sweep, SweepKind, Swept
from forq_trio.model import REASON_EXPIRED, REASON_MAX_ATTEMPTS, Status, is_dead_letter_queue
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ, STALE_RECOVERED
from forq_trio.storage.rules import after_lease_end, dead_letter_name
from forq_trio.storage.sqlite.transaction import Transaction


class Due(NamedTuple):
    """A message that the clock concerns."""

    seq: int
    queue: str
    status: int
    attempts: int
    max_attempts: int | None
    receipt: int | None
    expires_after: int

    def expired(self, now_ms: int) -> bool:
        """Past its time to live, and not in process: a consumer may finish what it holds (F7)."""
        return self.status != Status.PROCESSING and self.expires_after <= now_ms


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


def _select_due(tx: Transaction, limit: int) -> list[Due]:
    return [Due(*row) for row in tx.query("select_due", tx.now_ms, limit)]


def _settle(tx: Transaction, due: Sequence[Due]) -> None:
    _expire(tx, [message for message in due if message.expired(tx.now_ms)])
    _end_leases(tx, [message for message in due if message.status == Status.PROCESSING])
    promoted = []
    for message in due:
        if message.status == Status.DELAYED and not message.expired(tx.now_ms):
            promoted.append((tx.now_ms, message.seq))
            tx.move(message.queue, Status.DELAYED, Status.READY)
    tx.run("promote", promoted)


def _end_leases(tx: Transaction, due: Sequence[Due]) -> None:
    """Leases that ended: ready again, the receipt still good until the next claim; or failed at the last attempt."""
    returned: list[tuple[Any, ...]] = []
    for seq, queue, status, attempts, max_attempts, receipt, _ in due:
        target, process_after = after_lease_end(attempts, max_attempts, tx.now_ms, tx.settings)
        kept = None if target is Status.FAILED else receipt
        returned.append((int(target), attempts, process_after, kept, None, tx.now_ms, seq))
        tx.move(queue, status, target)
        tx.note(STALE_RECOVERED, queue)
        if target is Status.FAILED:
            tx.failed_queued = True
    tx.run("give_back", returned)


def _expire(tx: Transaction, due: Sequence[Due]) -> None:
    """Messages past their time to live: to the dead-letter queue, or out of it for good."""
    deleted = []
    moved = []
    for seq, queue, status, *_ in due:
        if is_dead_letter_queue(queue):
            deleted.append(seq)
            tx.add(queue, status, -1)
            tx.note(CLEANED_UP, queue, reason="expired")
        else:
            moved.append((seq, queue, status))
            tx.note(MOVED_TO_DLQ, queue, reason="expired")
    tx.delete(deleted)
    _dead_letter(tx, moved, REASON_EXPIRED)


def _dead_letter(tx: Transaction, messages: Sequence[tuple[int, str, int]], reason: str) -> None:
    """Move (seq, queue, status) to the dead-letter queues of their queues."""
    expires_after = tx.now_ms + tx.settings.dlq_ttl_ms
    rows = []
    for seq, queue, status in messages:
        target = dead_letter_name(queue)
        rows.append((target, tx.now_ms, reason, queue, tx.now_ms, expires_after, seq))
        tx.add(queue, status, -1)
        tx.add(target, Status.READY)
        tx.due(expires_after)
    tx.run("dead_letter", rows)


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
    rows = tx.query("select_failed", int(dead_letters), bound)
    if dead_letters:
        tx.delete([seq for seq, _ in rows])
        for _, queue in rows:
            tx.add(queue, Status.FAILED, -1)
            tx.note(CLEANED_UP, queue, reason="failed")
    else:
        _dead_letter(tx, [(seq, queue, Status.FAILED) for seq, queue in rows], REASON_MAX_ATTEMPTS)
        for _, queue in rows:
            tx.note(MOVED_TO_DLQ, queue, reason="failed")
    return len(rows)


def _sweep_due(tx: Transaction, kind: SweepKind, bound: int) -> int:
    due = _select_due(tx, bound)
    if kind is SweepKind.STALE:
        due = [message for message in due if message.status == Status.PROCESSING]
        _end_leases(tx, due)
    else:
        dead = kind is SweepKind.EXPIRED_DLQ
        due = [m for m in due if m.expired(tx.now_ms) and is_dead_letter_queue(m.queue) == dead]
        _expire(tx, due)
    return len(due)
