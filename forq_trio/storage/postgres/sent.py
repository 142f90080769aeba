"""Messages that applications sent in their own transactions, with the function forq.send: a batch moves them.

A row of `sent` is seen once its transaction has committed. The batch that stores its message removes it, so each
message enters its queue exactly once. One batch runs at a time, and it moves what it sees in the order of ids: so
messages of a transaction, and of transactions that follow one another, are in the order of sending. Of transactions
that overlap, whichever commits first comes first, or both are seen by one batch. None waits for one that is open.
"""

from functools import partial

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.errors import CommandRefused, ForqError
from forq_trio.model.messages import NewMessage
from forq_trio.storage.engine import Deferred
from forq_trio.storage.relational.operations.send import send
from forq_trio.storage.relational.transaction import Transaction

_decode = msgspec.json.Decoder(NewMessage).decode


def move(tx: Transaction) -> bool:
    """Move a page of them. True if there are more.

    A message that its queue refuses is set aside, with the reason; in an isolated batch also one that is damaged.
    """
    most = tx.allowances.step(limits.OUTBOX_PAGE_MAX)
    page = tx.query("sent_page", most, limits.OUTBOX_PAGE_BYTES_MAX)
    newest = tx.last_seq
    moved: list[int] = []
    for id, queue, message, _ in page:
        work = partial(_store, tx, queue, message, newest)
        outcome = _attempt(tx, work) if tx.isolated else work()
        if isinstance(outcome, Deferred):
            break
        moved.append(id)
        if outcome is not None:
            tx.query("set_sent_aside", id, outcome.code, str(outcome))
    tx.write_inserts()
    if moved:
        tx.query("forget_sent", str(moved))
    size = sum(each[3] for each in page)
    return len(moved) < len(page) or len(page) == most or size >= limits.OUTBOX_PAGE_BYTES_MAX


def _store(tx: Transaction, queue: str, text: str, newest: int) -> ForqError | Deferred | None:
    """Store a message; returns why not."""
    message = _decode(text)
    if message.process_after is not None:  # its delay counts from the send: it may have ended
        message = replace(message, process_after=max(message.process_after, tx.now_ms))
    try:
        check_producible(queue)
        stored = send(tx, queue, (check_message(message, tx.now_ms),), newest)
    except ForqError as error:
        return error
    return None if isinstance(stored, list) else stored


def _attempt(tx: Transaction, work: "partial[ForqError | Deferred | None]") -> ForqError | Deferred | None:
    """Run `work` in a savepoint; what it raises is why the message is refused."""
    outcomes: list[ForqError | Deferred | None] = []

    def attempt() -> None:
        outcomes.append(work())
        tx.write_inserts()

    error = tx.attempt(attempt)
    if error is None:
        return outcomes[0]
    return error if isinstance(error, ForqError) else CommandRefused(f"{type(error).__name__}: {error}")
