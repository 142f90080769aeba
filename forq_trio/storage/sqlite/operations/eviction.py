"""Bounds on how many messages and bytes a queue may have, and which messages are evicted from a full one.

A send to a queue without bounds never gets here.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing

from forq_trio.model import limits
from forq_trio.model.errors import QueueFull
from forq_trio.model.messages import REASON_OVERFLOW, NewMessage
from forq_trio.model.queue_settings import Order, Overflow, QueueRules
from forq_trio.storage.engine import CLEANED_UP
from forq_trio.storage.rules import message_bytes
from forq_trio.storage.sqlite.operations.dead_letters import dead_letter_or_delete, remove
from forq_trio.storage.sqlite.row import Row
from forq_trio.storage.sqlite.transaction import SQL, Transaction


def evict_for(
    tx: Transaction,
    queue: str,
    messages: Sequence[NewMessage],
    rules: QueueRules,
    newest: int,
    messages_max: int | None,
) -> QueueFull | None:
    """Evict messages until these fit, duplicates not counted; or change nothing and return the error.

    newest: the last sequence given out before this command; later messages are not evicted. messages_max: one more
    bound, of this send alone: it refuses, and never evicts.
    """
    new = _without_duplicates(tx, queue, messages)
    size = sum(message_bytes(message.content, message.attributes) for message in new)
    counts = tx.counted(queue)
    if not new:
        return None
    if messages_max is not None and counts.total + len(new) > messages_max:
        return QueueFull()
    if _excess(len(new), rules.max_messages) > 0 or _excess(size, rules.max_bytes) > 0:
        return QueueFull()
    count_over = _excess(counts.total + len(new), rules.max_messages)
    bytes_over = _excess(counts.bytes + size, rules.max_bytes)
    if count_over <= 0 and bytes_over <= 0:
        return None
    if rules.overflow is Overflow.REJECT:
        return QueueFull()
    victims = _find_victims(tx, queue, rules.order, newest, count_over, bytes_over)
    if victims is None:
        return QueueFull()
    _evict(tx, victims, rules.overflow)
    return None


def _excess(amount: int, bound: int | None) -> int:
    """By how much `amount` is above `bound`; 0 or less if it is not."""
    return 0 if bound is None else amount - bound


def _without_duplicates(tx: Transaction, queue: str, messages: Sequence[NewMessage]) -> list[NewMessage]:
    seen: set[str] = set()
    new = []
    for message in messages:
        dedup_id = message.deduplication_id
        if dedup_id is not None:
            if dedup_id in seen or tx.query("find_dedup", queue, dedup_id, tx.now_ms):
                continue
            seen.add(dedup_id)
        new.append(message)
    return new


def _find_victims(
    tx: Transaction, queue: str, order: Order, newest: int, count_over: int, bytes_over: int
) -> list[Row] | None:
    """The messages to evict; None if evicting all of them is not enough."""
    tx.write_inserts()
    victims = []
    for victim in _in_eviction_order(tx, queue, order):
        if victim.seq > newest:
            continue
        victims.append(victim)
        count_over -= 1
        bytes_over -= victim.bytes
        if count_over <= 0 and bytes_over <= 0:
            return victims
    return None


def _in_eviction_order(tx: Transaction, queue: str, order: Order) -> Iterator[Row]:
    """The ready messages: the lowest priority first, within it the oldest."""
    statement = SQL["ready_newest_last" if order is Order.FIFO else "ready_newest_first"]
    priority = limits.PRIORITY_MIN - 1
    while higher := tx.query("next_priority", queue, priority):
        ((priority,),) = higher
        with closing(tx.connection.execute(statement, (queue, priority))) as rows:
            yield from map(Row._make, rows)


def _evict(tx: Transaction, victims: Sequence[Row], overflow: Overflow) -> None:
    if overflow is Overflow.DEAD_LETTER:
        dead_letter_or_delete(tx, victims, "overflow", REASON_OVERFLOW)
    else:
        remove(tx, victims, CLEANED_UP, "overflow")
    tx.forget_positions()
