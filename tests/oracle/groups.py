"""The reference engine: the rounds of groups, and the group limit.

A queue becomes grouped when the first message with a group is sent to it in FIFO order, and stays so.
"""

import msgspec

from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.settings import Order
from forq_trio.storage import rules
from forq_trio.storage.transitions import UNHELD
from oracle.rates import tokens
from oracle.state import Row
from oracle.transaction import Transaction


def group_and_position(
    tx: Transaction, queue: str, message: NewMessage, seq: int, due: int
) -> tuple[str | None, int]:
    """The stored group of a new message, and its position. due: when it is due (epoch ms)."""
    if tx.rules(queue).order is Order.LIFO:
        return message.group, -seq
    if tx.rules(queue).order is Order.DUE:
        return message.group, due
    if message.group is not None and queue not in tx.state.grouped:
        _become_grouped(tx, queue)
    if queue not in tx.state.grouped:
        return None, seq
    group = rules.NO_GROUP if message.group is None else message.group
    alike = [row for row in tx.state.of_queue(queue) if row.priority == message.priority]
    last_of_group = max((row.position for row in alike if row.group == group), default=None)
    first_ready = min((row.position for row in alike if row.status is Status.READY), default=None)
    reached = tx.state.rounds.get((queue, message.priority))
    next_round = first_ready if reached is None else reached + 1
    return group, rules.group_position(seq, next_round, last_of_group)


def _become_grouped(tx: Transaction, queue: str) -> None:
    """Make a queue grouped: messages without a group now join the rounds, after the last ready one of each priority."""
    tx.state.grouped.add(queue)
    last_of_priority: dict[int, Row] = {row.priority: row for row in tx.state.claimable(queue)}
    for row in last_of_priority.values():
        if row.group is None:
            tx.state.rows[row.seq] = msgspec.structs.replace(row, group=rules.NO_GROUP)


def note_round(tx: Transaction, row: Row) -> None:
    """Note that a message is claimed: its round is being served."""
    if row.queue in tx.state.grouped:
        key = row.queue, row.priority
        tx.state.rounds[key] = max(tx.state.rounds.get(key, row.position), row.position)


def must_be_held(tx: Transaction, row: Row) -> bool:
    """True if the message's group is at the group limit."""
    bound = tx.rules(row.queue).group_in_flight_max
    return bool(row.group) and bound is not None and tx.state.in_process(row.queue, row.group or "") >= bound


def lacks_token(tx: Transaction, row: Row) -> bool:
    """True if the message's group has used up its rate."""
    rate = tx.rules(row.queue).group_rate
    return bool(row.group) and rate is not None and not tokens(tx, (row.queue, row.group or ""), rate)


def held_before(tx: Transaction, row: Row) -> Row | None:
    """The first held message of the row's group that comes before it and may be delivered now."""
    if tx.rules(row.queue).group_rate is None:
        return None
    if must_be_held(tx, row) or lacks_token(tx, row):
        return None
    held = [each for each in tx.state.in_claim_order(row.queue, Status.HELD) if each.group == row.group]
    comes_first = held and (-held[0].priority, held[0].position) < (-row.priority, row.position)
    return held[0] if row.group and comes_first else None


def is_queue_full(tx: Transaction, queue: str) -> bool:
    """Whether as many messages of the queue are in process as may be at once."""
    bound = tx.rules(queue).in_flight_max
    return bound is not None and len(tx.state.of_queue(queue, Status.PROCESSING)) >= bound


def unhold(tx: Transaction) -> None:
    """Make held messages ready whose group is below its limit again (operations/group_limit.py)."""
    freed, tx.state.freed, tx.freed = sorted(tx.state.freed | tx.freed), set(), set()
    for queue, group in freed:
        bound, rate = tx.rules(queue).group_in_flight_max, tx.rules(queue).group_rate
        if (bound is None and rate is None) or not tx.state.of_queue(queue, Status.HELD):
            continue
        held = [row for row in tx.state.in_claim_order(queue, Status.HELD) if row.group == group]
        if bound is not None:
            held = held[: max(bound - tx.state.in_process(queue, group), 0)]
        if rate is not None:
            held = held[: tokens(tx, (queue, group), rate)]
        _make_ready(tx, held)
        if rate is not None and not held:
            tx.limited.add((queue, group))
    for queue in tx.unheld:
        _make_ready(tx, tx.state.of_queue(queue, Status.HELD))


def _make_ready(tx: Transaction, held: list[Row]) -> None:
    for row in held:
        tx.change(UNHELD, row, status=Status.READY)
