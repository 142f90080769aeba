"""Bounds on how many messages and bytes a queue may have, and which messages are evicted from a full one.

A send to a queue without bounds never gets here.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import starmap

from forq_trio.model import limits
from forq_trio.model.errors import QueueFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import REASON_OVERFLOW
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.allowance import Step
from forq_trio.storage.engine import CLEANED_UP, DEFERRED, Deferred
from forq_trio.storage.relational.operations.dead_letters import dead_letter_or_delete, remove
from forq_trio.storage.relational.operations.dedup import find_first
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import Space, above, may_overflow, message_bytes


def evict_for(
    tx: Transaction,
    queue: str,
    messages: Sequence[NewMessage],
    rules: QueueRules,
    newest: int,
    messages_max: int | None,
) -> QueueFull | Deferred | None:
    """Evict messages until these fit, not counting duplicates. Returns the error if they are refused.

    newest: the last sequence number given out before this command; later messages are not evicted. messages_max: a
    bound for this send if the queue has none of its own: it refuses, and never evicts.

    A send reads no more messages than EVICTED_MAX (or as many as it sends), and no more than STEP_BYTES_MAX bytes. If
    evicting those is not enough, `rules.may_overflow` decides. So a queue far above its bounds, because they were
    lowered, shrinks with each send, even with a refused one.
    """
    unknown = _without_duplicates(tx, queue, messages)
    if not unknown:
        return None
    new = Space(len(unknown), sum(message_bytes(message.content, message.attributes) for message in unknown))
    counts = tx.counts.of(queue)
    stored = Space(counts.total, counts.bytes)
    own_max = rules.max_messages
    if messages_max is not None and own_max is None and stored.messages + new.messages > messages_max:
        return QueueFull()
    if max(above(new, rules)) > 0:
        return QueueFull()
    missing = above(Space(stored.messages + new.messages, stored.bytes + new.bytes), rules)
    if max(missing) <= 0:
        return None
    if rules.overflow is Overflow.REJECT:
        return QueueFull()
    if tx.allowances.used_up(Step.EVICT) or tx.waited_out:
        return DEFERRED
    over = above(stored, rules)
    victims = _find_victims(tx, queue, rules.order, newest, missing, new.messages)
    if victims is None:
        return QueueFull()
    fits = victims.enough or may_overflow(over, new, victims.space)
    _evict(tx, victims.rows if fits else victims.needed_for(over), rules.overflow)
    return None if fits else QueueFull()


def _without_duplicates(tx: Transaction, queue: str, messages: Sequence[NewMessage]) -> list[NewMessage]:
    seen: set[str] = set()
    new = []
    for message in messages:
        dedup_id = message.deduplication_id
        if dedup_id is not None:
            if dedup_id in seen or find_first(tx, queue, dedup_id) is not None:
                continue
            seen.add(dedup_id)
        new.append(message)
    return new


class _Victims:
    """Messages to evict. enough: whether evicting them frees the missing space."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.space = Space(0, 0)
        self.enough = False

    def add(self, row: Row, missing: Space) -> None:
        self.rows.append(row)
        self.space = Space(self.space.messages + 1, self.space.bytes + row.bytes)
        self.enough = self.space.messages >= missing.messages and self.space.bytes >= missing.bytes

    def needed_for(self, missing: Space) -> list[Row]:
        """As many of them as free this space, beginning with the first."""
        needed = _Victims()
        for row in self.rows:
            if max(missing.messages - needed.space.messages, missing.bytes - needed.space.bytes) <= 0:
                break
            needed.add(row, missing)
        return needed.rows


def _find_victims(
    tx: Transaction, queue: str, order: Order, newest: int, missing: Space, sent: int
) -> _Victims | None:
    """The messages to evict, up to the bound of one send; None if evicting all of them is not enough."""
    tx.write_inserts()
    victims = _Victims()
    ran_out, looked_at, size = True, 0, 0
    for row in _in_eviction_order(tx, queue, order):
        looked_at += 1
        size += row.bytes
        if row.seq <= newest:
            victims.add(row, missing)
        if victims.enough or looked_at >= max(limits.EVICTED_MAX, sent) or size >= limits.STEP_BYTES_MAX:
            ran_out = False
            break
    tx.allowances.of(Step.EVICT).charge(looked_at, size)
    return None if ran_out else victims


def _in_eviction_order(tx: Transaction, queue: str, order: Order) -> Iterator[Row]:
    """The ready messages: the lowest priority first, within it the oldest."""
    statement = "ready_newest_first" if order is Order.LIFO else "ready_newest_last"
    priority = limits.PRIORITY_MIN - 1
    while higher := tx.query("next_priority", queue, priority):
        ((priority,),) = higher
        with closing(tx.connection.rows(statement, queue, priority)) as rows:
            yield from starmap(Row, rows)


def _evict(tx: Transaction, victims: Sequence[Row], overflow: Overflow) -> None:
    if overflow is Overflow.DEAD_LETTER:
        dead_letter_or_delete(tx, victims, "overflow", REASON_OVERFLOW)
    else:
        remove(tx, victims, CLEANED_UP, "overflow", alone=False)
