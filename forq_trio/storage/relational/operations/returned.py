"""Messages that come back from their consumers: released, nacked, or because their lease ended."""

from typing import Any

from forq_trio.model.fingerprints import fingerprint_key
from forq_trio.model.messages.types import Status
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import Returned


def return_message(
    tx: Transaction,
    change: str,
    message: Row,
    returned: Returned,
    attempts: int,
    *,
    reason: str | None = None,
    failures: str | None = None,
    receipt: int | None = None,
    max_attempts: int | None = None,
) -> tuple[Any, ...]:
    """Note that a message comes back; returns the bindings of `return_message`, to be run.

    attempts, receipt: the new values. reason: the one that the consumer gave. failures, max_attempts: the columns,
    None: unchanged.
    """
    status, process_after = returned
    due_ms: int | None = None if status is Status.FAILED else message.expires_after
    if status is Status.DELAYED and process_after is not None:
        due_ms = min(message.expires_after, process_after)
    tx.transition(
        change, message.queue, message.status, int(status), (message,), due_ms=due_ms, nack_reason=reason
    )
    return (
        int(status),
        attempts,
        process_after,
        receipt,
        reason,
        fingerprint_key(reason),
        failures,
        max_attempts,
        tx.now_ms,
        message.seq,
    )
