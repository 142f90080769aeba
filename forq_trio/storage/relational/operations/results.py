"""Acks with a result: each message is kept in the history with it, also while the history is off.

While it is off, the history has no more messages than RESULTS_STORED_MAX: each ack with a result removes the oldest
ones beyond that. Retention bounds their bytes and their age.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import AckWithResult
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import Deferred
from forq_trio.storage.logs import outcome_of
from forq_trio.storage.relational.operations.logs import forget_up_to
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
    tx.endings.note(messages, outcome)
    log = tx.history.log
    if not log.enabled and log.last - log.first >= limits.RESULTS_STORED_MAX:
        forget_up_to(tx, log.last - limits.RESULTS_STORED_MAX)
