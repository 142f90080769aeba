"""Due messages: delays end, leases end, messages expire; messages that failed; and the sweeps.

- The time is always the batch's `now_ms`. A batch first settles what is due by then, at most DUE_BATCH_MAX messages.
- A damaged message that cannot be settled when it is due, in a sweep or in a purge, or that cannot be delivered, is set
  aside for SET_ASIDE_RETRY_MS and reported in `BatchResult.set_aside`. All others are settled and delivered.
- A message that fails goes to its dead-letter queue, or is deleted if it has none, in the batch in which it fails. This
  happens after the commands, in the order of failing, as far as the allowance permits. The rest stay FAILED until a
  sweep takes them, which `BatchResult.failed_queued` asks for.

The engine runs `settle_due` at the start of each batch that comes after a due time, and the due timer makes
one come. The periodic sweeps of contract F13 read the same index again as a safety net.
"""

from collections.abc import Callable, Sequence

from forq_trio.model import limits
from forq_trio.model.commands import Removed, Sweep, SweepKind
from forq_trio.model.messages.types import LEASE_ENDED, REASON_EXPIRED, REASON_MAX_ATTEMPTS, Status
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage.allowance import Allowance, Step, within
from forq_trio.storage.engine import STALE_RECOVERED
from forq_trio.storage.relational.operations.dead_letters import dead_letter_or_delete
from forq_trio.storage.relational.operations.isolation import settle_each
from forq_trio.storage.relational.operations.rate_limit import next_wake, settle_wakes
from forq_trio.storage.relational.operations.returned import return_message
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.row import Row, rows_of
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import after_lease_end
from forq_trio.storage.transitions import PROMOTED


def settle_due(tx: Transaction) -> None:
    """Settle due messages, as the allowance permits, in rounds: one that just became ready may have expired, too."""
    allowance = tx.allowances.of(Step.DUE)
    while not allowance.used_up and (due := _select_due(tx, allowance.messages)):
        settle_each(tx, within(allowance, due), _settle)
    settle_wakes(tx)
    tx.due.settled = True


def _select_due(tx: Transaction, limit: int) -> list[Row]:
    return rows_of(
        tx.query_but_set_aside("select_due", "select_due_but", tx.due.from_ms(), tx.now_ms, limit=limit)
    )


def next_due(tx: Transaction) -> int | None:
    """The next due time, or the time to try a message that is set aside again; the earlier one, None for neither."""
    first = [at for (at,) in tx.query_but_set_aside("next_due", "next_due_but", tx.due.from_ms(), limit=1)]
    times = first + next_wake(tx)
    if tx.set_aside.sequences():
        times.append(tx.set_aside.next_retry_ms())
    else:
        tx.due.found(first[0] if first else None)
    return min(times, default=None)


def _settle(tx: Transaction, due: Sequence[Row]) -> None:
    dead_letter_or_delete(tx, [each for each in due if each.expired(tx.now_ms)], "expired", REASON_EXPIRED)
    end_leases(tx, [message for message in due if message.status == Status.PROCESSING])
    promoted = []
    for message in due:
        if message.status == Status.DELAYED and not message.expired(tx.now_ms):
            promoted.append((tx.now_ms, message.seq))
            due_ms = message.expires_after
            tx.transition(PROMOTED, message.queue, message.status, Status.READY, (message,), due_ms=due_ms)
    tx.run("promote", promoted)


def end_leases(tx: Transaction, due: Sequence[Row]) -> None:
    """Make messages whose lease ended ready again, with their receipts still current, or failed at the last attempt."""
    rows = []
    for message in due:
        rules = tx.rules(message.queue)
        returned = after_lease_end(message.attempts, message.max_attempts, tx.now_ms, rules)
        receipt = None if returned.status is Status.FAILED else message.receipt
        failures = message.failures_with(tx.now_ms, LEASE_ENDED)
        rows.append(
            return_message(
                tx, STALE_RECOVERED, message, returned, message.attempts, failures=failures, receipt=receipt
            )
        )
    tx.run("return_message", rows)


def settle_failed(tx: Transaction) -> None:
    """Move or delete messages that failed in this batch, as the allowance permits; a sweep takes the rest."""
    if not tx.leftovers.failed:
        return
    found = {row.seq: row for row in rows_of(tx.query("find_by_sequence", str(tx.leftovers.failed)))}
    failed = [
        found[seq] for seq in tx.leftovers.failed if seq in found and found[seq].status == Status.FAILED
    ]
    taken = within(tx.allowances.of(Step.FAILED), failed)
    tx.leftovers.failed_left = settle_each(tx, taken, _dead_letter_failed) < len(failed)


@operation_on_each(Sweep)
def sweep(tx: Transaction, command: Sweep) -> Removed:
    tx.due.settled = True
    kind, bound = command.kind, limits.SWEEP_BATCH_MAX
    settle: Callable[[Transaction, Sequence[Row]], None] = _settle
    if kind is SweepKind.FAILED or kind is SweepKind.FAILED_DLQ:
        found = _select_failed(tx, kind is SweepKind.FAILED_DLQ, bound)
        settle = _dead_letter_failed
    else:
        found = _select_due_of(tx, kind, bound)
    swept = within(Allowance(bound), found)
    settled = settle_each(tx, swept, settle)
    more = (len(found) == bound or len(swept) < len(found)) and not tx.set_aside.retry_later
    if kind is SweepKind.EXPIRED:
        for statement in ("expire_dedup", "expire_buckets"):
            more = len(tx.query(statement, tx.now_ms, bound)) == bound or more
    return Removed(settled, more)


def _dead_letter_failed(tx: Transaction, failed: Sequence[Row]) -> None:
    dead_letter_or_delete(tx, failed, "failed", REASON_MAX_ATTEMPTS)


def _select_failed(tx: Transaction, dead_letters: bool, bound: int) -> list[Row]:
    return rows_of(
        tx.query_but_set_aside("select_failed", "select_failed_but", int(dead_letters), limit=bound)
    )


def _select_due_of(tx: Transaction, kind: SweepKind, bound: int) -> list[Row]:
    """The due messages that this sweep is for."""
    due = _select_due(tx, bound)
    if kind is SweepKind.STALE:
        return [message for message in due if message.status == Status.PROCESSING]
    dead = kind is SweepKind.EXPIRED_DLQ
    return [m for m in due if m.expired(tx.now_ms) and is_dead_letter_queue(m.queue) == dead]
