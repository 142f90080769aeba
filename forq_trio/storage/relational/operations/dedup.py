"""Deduplication ids: which message was the first with one, while its window lasts.

What a batch has read or stored of them it keeps in `Transaction.dedup`, so each id is looked up once; those of all
messages that a kind of command sends are looked up at once, and a send stores its windows at once.
"""

from collections.abc import Iterable

from forq_trio.model.messages import NewMessage
from forq_trio.storage.relational.transaction import Transaction


def look_up_dedup(tx: Transaction, messages: Iterable[tuple[str, NewMessage]]) -> None:
    """Find the first messages with the deduplication ids of these ones, by queue, at once."""
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
    """Id and sequence of the first message with this id, while its window lasts."""
    key = queue, dedup_id
    if key not in tx.lookups.dedup:
        found = tx.query("find_dedup", *key, tx.now_ms)
        tx.lookups.dedup[key] = found[0] if found else None
    return tx.lookups.dedup[key]


def start_window(tx: Transaction, queue: str, dedup_id: str, first: tuple[str, int], window_ms: int) -> None:
    """This message is the first with the id from now on; `save_windows` stores it."""
    key = queue, dedup_id
    tx.lookups.dedup[key] = first if window_ms > 0 else None
    tx.lookups.windows[key] = (*key, *first, tx.now_ms + window_ms)


def save_windows(tx: Transaction) -> None:
    """Store the windows that a send started."""
    if tx.lookups.windows:
        tx.run("save_dedup", list(tx.lookups.windows.values()))
        tx.lookups.windows.clear()
