"""Round-robin between groups: computes the `position` of a message that is sent (rules.group_position).

A queue becomes grouped with its first message that has a group, and then stays so. Until then groups cost nothing. From
then on a send looks up the position of the last message of its group, once for each group of a batch. For a database
over the network, those of all groups are looked up together (`look_up_groups`).
"""

from collections.abc import Iterable, Mapping

from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.setting_values import Order
from forq_trio.storage.relational.parts.groups import Round
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
    if queue not in tx.grouped:
        if group is None:
            return seq, None
        _join_rounds(tx, queue)
    group_id = NO_GROUP if group is None else group
    if tx.rules(queue).strict_groups:
        return seq, group_id  # a claim gets what was sent first, so that it often gets several of a group
    known_round = tx.rounds.of(queue, priority)
    next_round = _first_ready(tx, queue, priority) if known_round is None else known_round + 1
    position = group_position(seq, next_round, _last_of_group(tx, queue, group_id, priority))
    tx.lookups.last_of_group[queue][group_id, priority] = position
    if status == Status.READY and known_round is None and (next_round is None or position < next_round):
        tx.lookups.first_ready.setdefault(queue, {})[priority] = position
    return position, group_id


def look_up_groups(tx: Transaction, messages: Iterable[tuple[str, NewMessage]]) -> None:
    """Read at once the positions that `position_and_group` needs for these messages. messages: (queue, message).

    That is, of the last message of each group, and of the first ready message of each priority. For a queue that gets
    its first message with a group now, they are read here only if all these messages have groups; otherwise after its
    other messages have joined the rounds.
    """
    fifo: dict[str, bool] = {}
    groups: dict[tuple[str, str, int], None] = {}
    without: set[str] = set()
    for queue, message in messages:
        if queue not in fifo:
            fifo[queue] = tx.rules(queue).order is Order.FIFO
        if not fifo[queue]:
            continue
        key = queue, NO_GROUP if message.group is None else message.group, message.priority
        if tx.rules(queue).strict_groups:
            continue
        if queue in tx.grouped:
            groups[key] = None
        elif message.group is not None:
            tx.lookups.joining.setdefault(queue, {})[key] = None
        else:
            without.add(queue)
    joining = [
        queue
        for queue in tx.lookups.joining.keys() & fifo.keys()
        if queue not in without and tx.counts.of(queue).total
    ]
    for queue, rows in zip(
        joining, tx.query_each("ready_priorities", [(queue,) for queue in joining]), strict=True
    ):
        tx.lookups.priorities[queue] = [priority for (priority,) in rows]
        groups |= tx.lookups.joining[queue]
    if groups:
        _read_positions(tx, groups, {queue: tx.counts.of(queue).total > 0 for queue in fifo})


def _read_positions(
    tx: Transaction, groups: Iterable[tuple[str, str, int]], has_messages: Mapping[str, bool]
) -> None:
    """Read the positions of the last messages of these groups, and of the first ready ones of their priorities."""
    last: list[tuple[str, str, int]] = []
    first: dict[Round, None] = {}
    for key in groups:
        queue, group_id, priority = key
        last_known, first_known = (
            tx.lookups.last_of_group.setdefault(queue, {}),
            tx.lookups.first_ready.setdefault(queue, {}),
        )
        if not has_messages[queue]:
            last_known.setdefault((group_id, priority), None)
            first_known.setdefault(priority, None)
            continue
        if (group_id, priority) not in last_known:
            last.append(key)
        if priority not in first_known and tx.rounds.of(queue, priority) is None:
            first[queue, priority] = None
    for (queue, group_id, priority), found in zip(last, tx.query_each("last_of_group", last), strict=True):
        tx.lookups.last_of_group[queue][group_id, priority] = found[0][0]
    for (queue, priority), found in zip(first, tx.query_each("ready_positions", [*first]), strict=True):
        tx.lookups.first_ready[queue][priority] = found[0][0]


def _join_rounds(tx: Transaction, queue: str) -> None:
    """Make a queue grouped: from now on messages without a group join the rounds, after the last ready message."""
    has_messages = tx.counts.of(queue).total > 0 or tx.inserts.has_new(queue)  # new ones are not counted yet
    tx.write_inserts()
    if has_messages:
        known = tx.lookups.priorities.pop(queue, None)
        priorities = [each for (each,) in tx.query("ready_priorities", queue)] if known is None else known
        tx.run("join_rounds", [(queue, priority) for priority in priorities])
    tx.grouped.add(queue)
    _read_positions(tx, tx.lookups.joining.pop(queue, ()), {queue: has_messages})


def _first_ready(tx: Transaction, queue: str, priority: int) -> int | None:
    """The position of the first ready message."""
    known = tx.lookups.first_ready.setdefault(queue, {})
    if priority not in known:
        ((known[priority], _),) = tx.query("ready_positions", queue, priority)
    return known[priority]


def _last_of_group(tx: Transaction, queue: str, group_id: str, priority: int) -> int | None:
    """The highest position of a message of this group, whatever its status."""
    known = tx.lookups.last_of_group.setdefault(queue, {})
    key = group_id, priority
    if key not in known:
        ((known[key],),) = tx.query("last_of_group", queue, group_id, priority)
    return known[key]
