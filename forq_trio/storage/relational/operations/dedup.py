"""Deduplication ids: finds the first message with an id while its window lasts.

`Lookups.dedup` has what the batch has read or stored of them, so each id is looked up only once. The ids of all
messages of a kind of command are looked up together, and a send stores all its windows together. The ids of a queue
that is forgotten go with it, so that a new queue of its name takes every message.
"""

from collections.abc import Iterable

from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.allowance import Allowance
from forq_trio.storage.relational.transaction import Transaction


def look_up_dedup(tx: Transaction, messages: Iterable[tuple[str, NewMessage]]) -> None:
    """Look up, all at once, the first messages with the deduplication ids of these. messages: (queue, message)."""
    wanted = {
        (queue, message.deduplication_id): None
        for queue, message in messages
        if message.deduplication_id is not None
    }
    unknown = [
        (queue, dedup_id, tx.now_ms)
        for queue, dedup_id in wanted
        if (queue, dedup_id) not in tx.lookups.dedup
    ]
    for (queue, dedup_id, _), found in zip(unknown, tx.query_each("find_dedup", unknown), strict=True):
        tx.lookups.dedup[queue, dedup_id] = found[0] if found else None


def find_first(tx: Transaction, queue: str, dedup_id: str) -> tuple[str, int] | None:
    """Id and sequence number of the first message with this deduplication id; None once its window is over."""
    key = queue, dedup_id
    if key not in tx.lookups.dedup:
        found = tx.query("find_dedup", *key, tx.now_ms)
        tx.lookups.dedup[key] = found[0] if found else None
    return tx.lookups.dedup[key]


def start_window(tx: Transaction, queue: str, dedup_id: str, first: tuple[str, int], window_ms: int) -> None:
    """Note that this message is the first with the deduplication id from now on; `save_windows` stores it."""
    key = queue, dedup_id
    tx.lookups.dedup[key] = first if window_ms > 0 else None
    tx.lookups.windows[key] = (*key, *first, tx.now_ms + window_ms)


def save_windows(tx: Transaction) -> None:
    """Store the windows that a send started."""
    if tx.lookups.windows:
        tx.run("save_dedup", list(tx.lookups.windows.values()))
        tx.lookups.windows.clear()


def forget_windows(tx: Transaction, queue: str, allowance: Allowance) -> bool:
    """Forget up to PURGE_BATCH_MAX ids of a queue, as the allowance permits; returns whether none is left."""
    if allowance.used_up:
        return False
    found = tx.query("dedup_of_queue", queue, limits.PURGE_BATCH_MAX)
    forgotten = found[: allowance.messages]
    if forgotten:
        tx.query("forget_dedup", queue, forgotten[-1][0])
        tx.lookups.dedup.clear()  # what was read may be among them
        allowance.charge(len(forgotten), 0)
    return len(forgotten) == len(found) < limits.PURGE_BATCH_MAX
