"""Round-robin between groups: computes the `position` of a message that is sent (rules.group_position).

A queue becomes grouped with its first message that has a group, and then stays so. Until then it costs
nothing; from then on a send looks up the position of its group's last message, once for each group of a batch.
"""

from forq_trio.model.messages import Status
from forq_trio.model.queue_settings import Order
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import NO_GROUP, group_position


def position_and_group(
    tx: Transaction,
    queue: str,
    order: Order,
    group: str | None,
    seq: int,
    due_ms: int,
    priority: int,
    status: int,
) -> tuple[int, str | None]:
    """Position and stored group of a new message."""
    if order is Order.LIFO:
        return -seq, group
    if order is Order.DUE:
        return due_ms, group
    if not tx.grouped(queue):
        if group is None:
            return seq, None
        _join_rounds(tx, queue)
    group_id = NO_GROUP if group is None else group
    known_round = tx.round_of(queue, priority)
    next_round = _first_ready(tx, queue, priority) if known_round is None else known_round + 1
    position = group_position(seq, next_round, _last_of_group(tx, queue, group_id, priority))
    tx.last_of_group[queue, group_id, priority] = position
    if status == Status.READY and known_round is None and (next_round is None or position < next_round):
        tx.first_ready[queue, priority] = position
    return position, group_id


def _join_rounds(tx: Transaction, queue: str) -> None:
    """Messages without a group join the rounds from now on, behind the last ready message of their priority."""
    tx.write_inserts()
    priorities = tx.query("ready_priorities", queue)
    tx.run("join_rounds", [(queue, priority) for (priority,) in priorities])
    tx.make_grouped(queue)


def _first_ready(tx: Transaction, queue: str, priority: int) -> int | None:
    """The position of the first ready message."""
    key = queue, priority
    if key not in tx.first_ready:
        ((first, _),) = tx.query("ready_positions", queue, priority)
        tx.first_ready[key] = first
    return tx.first_ready[key]


def _last_of_group(tx: Transaction, queue: str, group_id: str, priority: int) -> int | None:
    """The highest position of a message of this group, in whatever status."""
    key = queue, group_id, priority
    if key not in tx.last_of_group:
        ((last,),) = tx.query("last_of_group", queue, group_id, priority)
        tx.last_of_group[key] = last
    return tx.last_of_group[key]
