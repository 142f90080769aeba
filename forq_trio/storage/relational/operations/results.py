"""Acks with a result: each message is stored in the history with it, also while the history is off.

While it is off, at most RESULTS_STORED_MAX messages are there for their results: acks with results remove as many of
the oldest as they add, and a few more while there are too many; retention removes the rest. A queue's history is
shortened at its old end only. So where that has messages from a time when the history was on, which are not removed for
results, further acks store none. Retention bounds the bytes and the age of all of them.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import AckWithResult
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import Deferred
from forq_trio.storage.logs import outcome_of
from forq_trio.storage.relational.operations.logs import forget_results, oldest_is_result
from forq_trio.storage.relational.operations.settle import each_receipt, named_by_receipts, remove_acked
from forq_trio.storage.relational.operations.table import operation
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction


@operation(AckWithResult)
def ack_with_result(tx: Transaction, commands: Sequence[AckWithResult]) -> list[tuple[bool, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)
    given: dict[int, AckWithResult] = {}
    removed: list[Row] = []

    def settle(command: AckWithResult, receipt: Receipt) -> bool:
        found = messages.by_receipt(command.queue, receipt)
        if found is None:
            return False
        messages.forget(found)
        given[found.seq] = command
        removed.append(found)
        return True

    outcomes = each_receipt(messages, commands, settle)
    remove_acked(tx, removed, partial(_keep, given))
    return outcomes


def _keep(
    given: Mapping[int, AckWithResult],
    tx: Transaction,
    messages: Sequence[Row],
    change: str,
    event_reason: str,
) -> None:
    """Store messages in the history with their results. given: by sequence."""
    outcome, reason = outcome_of(change, event_reason)
    tx.endings.note(messages, outcome)
    if not tx.history.log.enabled:
        too_many = tx.history.results(tx.query, len(messages)) - limits.RESULTS_STORED_MAX
        if too_many > 0 and not oldest_is_result(tx):
            messages = messages[: max(0, len(messages) - too_many)]
    whole = [replace(each, bytes=each.bytes + len(given[each.seq].result.encode())) for each in messages]
    rows = [
        (
            history_id,
            outcome,
            reason,
            tx.now_ms,
            message.bytes,
            number,
            total,
            given[message.seq].result,
            tx.now_ms + given[message.seq].keep_ms,
            message.seq,
        )
        for message, (history_id, number, total) in zip(whole, tx.history.add(whole), strict=True)
    ]
    tx.run("keep_with_result", rows)
    forget_results(tx, len(messages))
