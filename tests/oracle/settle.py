"""The reference engine: settlements."""

from typing import Any

import msgspec

from forq_trio.model.commands import (
    Ack,
    AckById,
    AckWithResult,
    Claims,
    DiscardMessages,
    Extend,
    Nack,
    NackById,
    Nacked,
    Release,
)
from forq_trio.model.messages.types import Receipt, Status
from forq_trio.storage import engine, rules
from forq_trio.storage.logs import DISCARDED_BY_CONSUMER
from forq_trio.storage.transitions import EXTENDED, SHORTENED
from oracle.groups import is_group_full, is_queue_full
from oracle.history import forget_results
from oracle.operations import operation
from oracle.state import Row
from oracle.transaction import Transaction

Settled = tuple[Any, ...]
"""An outcome for each receipt."""


@operation(Ack)
def ack(tx: Transaction, command: Ack) -> Settled:
    return tuple(
        ack_row(tx, _current(tx, command.queue, receipt, command.message_id, command.claims))
        for receipt in command.receipts
    )


@operation(AckWithResult)
def ack_with_result(tx: Transaction, command: AckWithResult) -> Settled:
    outcome = tuple(
        ack_row(tx, _current(tx, command.queue, receipt), command) for receipt in command.receipts
    )
    if True in outcome and not tx.state.defaults.history:
        forget_results(tx)
    return outcome


@operation(AckById)
def ack_by_id(tx: Transaction, command: AckById) -> bool:
    return ack_row(tx, _by_id(tx, command))


@operation(DiscardMessages)
def discard(tx: Transaction, command: DiscardMessages) -> Settled:
    return tuple(
        _discard(tx, _current(tx, command.queue, receipt), command.reason) for receipt in command.receipts
    )


@operation(Nack)
def nack(tx: Transaction, command: Nack) -> Settled:
    return tuple(
        _nack(
            tx,
            _current(tx, command.queue, receipt, command.message_id),
            command.delay_ms,
            command.reason,
            final=command.final,
            max_attempts=command.max_attempts,
        )
        for receipt in command.receipts
    )


@operation(NackById)
def nack_by_id(tx: Transaction, command: NackById) -> bool:
    return _nack(tx, _by_id(tx, command), None, None) is not Nacked.REFUSED


@operation(Extend)
def extend(tx: Transaction, command: Extend) -> Settled:
    return tuple(
        _extend(
            tx, _current(tx, command.queue, receipt, claims=command.claims), command.lease_ms, command.claims
        )
        for receipt in command.receipts
    )


@operation(Release)
def release(tx: Transaction, command: Release) -> Settled:
    return tuple(
        release_row(tx, _current(tx, command.queue, receipt), command.delay_ms)
        for receipt in command.receipts
    )


def _current(
    tx: Transaction,
    queue: str | None,
    receipt: Receipt,
    message_id: str | None = None,
    claims: Claims = Claims.CURRENT,
) -> Row | None:
    """The message that this receipt settles, else None. queue: None for any."""
    row = tx.state.rows.get(receipt.seq)
    if row is None:
        return None
    was_given = claims is Claims.ANY and row.attempts > 0 and receipt.is_of(row.id)
    if row.token != receipt.token and not was_given:
        return None
    if claims is Claims.LEASED and row.status is not Status.PROCESSING:
        return None
    return row if queue in (None, row.queue) and message_id in (None, row.id) else None


def _by_id(tx: Transaction, command: AckById | NackById) -> Row | None:
    """The message if it is in process, or (with a token) if its current receipt has that token; else None."""
    for row in tx.state.of_queue(command.queue):
        if row.id == command.message_id:
            current = row.status is Status.PROCESSING if command.token is None else row.token == command.token
            return row if current else None
    return None


def ack_row(tx: Transaction, row: Row | None, given: AckWithResult | None = None) -> bool:
    """Remove a message; False for None. given: the ack, if it has a result."""
    if row is None:
        return False
    tx.transition(engine.ACKED, row, None, given=given)
    tx.let_go_on(row)
    tx.measure(engine.END_TO_END, row.queue, max(tx.now_ms - row.received_at, 0))
    if row.processing_started_at is not None:
        tx.measure(engine.HANDLING, row.queue, max(tx.now_ms - row.processing_started_at, 0))
    return True


def _discard(tx: Transaction, row: Row | None, reason: str) -> bool:
    if row is None:
        return False
    tx.clean_up(msgspec.structs.replace(row, last_error=reason), DISCARDED_BY_CONSUMER)
    return True


def _nack(
    tx: Transaction,
    row: Row | None,
    delay_ms: int | None,
    reason: str | None,
    *,
    final: bool = False,
    max_attempts: int | None = None,
) -> Nacked:
    if row is None:
        return Nacked.REFUSED
    queue_rules = tx.rules(row.queue)
    bound = row.max_attempts if max_attempts is None else max_attempts
    returned = rules.after_nack(row.seq, row.attempts, bound, delay_ms, tx.now_ms, queue_rules, final=final)
    tx.return_message(
        engine.NACKED,
        row,
        returned,
        nack_reason=reason,
        last_error=row.last_error if reason is None else reason,
        failures=tx.failures_with(row, reason),
        max_attempts=bound,
    )
    return Nacked.FAILED if returned.status is Status.FAILED else Nacked.RETURNED


def _extend(tx: Transaction, row: Row | None, lease_ms: int, claims: Claims) -> int | None:
    """Move the end of a lease; 0 ends it at once, without recording a failure."""
    if row is None or (row.status is not Status.PROCESSING and claims is Claims.ANY):
        return None
    if lease_ms == 0:
        tx.end_lease(SHORTENED, row)
        return tx.now_ms
    if row.status is not Status.PROCESSING and (is_queue_full(tx, row.queue) or is_group_full(tx, row)):
        return None
    started_at = tx.now_ms if row.processing_started_at is None else row.processing_started_at
    lease_until = tx.now_ms + lease_ms
    leased: dict[str, Any] = {
        "status": Status.PROCESSING,
        "lease_until": lease_until,
        "processing_started_at": started_at,
    }
    tx.change(EXTENDED, row, **leased)
    return lease_until


def release_row(tx: Transaction, row: Row | None, delay_ms: int) -> bool:
    """Release a message, the attempt uncounted; False for None."""
    if row is None:
        return False
    returned = rules.after_release(delay_ms, tx.now_ms)
    tx.return_message(engine.RELEASED, row, returned, attempts=rules.uncounted(row.attempts))
    return True
