"""Settles messages one by one in an isolated batch, so that a damaged one is set aside alone."""

from collections.abc import Callable, Sequence
from functools import partial

from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction


def settle_each(
    tx: Transaction, messages: Sequence[Row], settle: Callable[[Transaction, Sequence[Row]], None]
) -> int:
    """Settle these messages; returns how many were settled. In an isolated batch a damaged one is set aside alone."""
    if not tx.isolated:
        settle(tx, messages)
        return len(messages)
    settled = 0
    for message in messages:
        error = tx.attempt(partial(settle, tx, [message]))
        if error is None:
            settled += 1
        else:
            tx.set_aside.add(message.queue, message.seq, error)
    return settled
