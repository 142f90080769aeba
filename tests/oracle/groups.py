"""The reference engine: the rounds of groups, and the group limit.

A queue becomes grouped when the first message with a group is sent to it in FIFO order, and stays so.
"""

from collections.abc import Collection

import msgspec

from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.setting_values import Order
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
    if tx.rules(queue).strict_groups:
        return group, seq
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


def is_group_full(tx: Transaction, row: Row) -> bool:
    """True if as many messages of the message's group are in process as may be."""
    rules_now = tx.rules(row.queue)
    bound = 1 if rules_now.strict_groups else rules_now.group_in_flight_max
    return bool(row.group) and bound is not None and tx.state.in_process(row.queue, row.group or "") >= bound


def must_be_held(tx: Transaction, row: Row, mine: Collection[str] = ()) -> bool:
    """True if the message's group is at the group limit, or has to wait for earlier messages.

    mine: the groups of which the claim that would get it has messages already.
    """
    if not row.group:
        return False
    bound = tx.rules(row.queue).group_in_flight_max
    if bound is not None and tx.state.in_process(row.queue, row.group) >= bound:
        return True
    return tx.rules(row.queue).strict_groups and (is_closed(tx, row, mine) or is_behind_delayed(tx, row))


def is_closed(tx: Transaction, row: Row, mine: Collection[str]) -> bool:
    """With strict groups: whether another claim has messages of the group."""
    return row.group not in mine and tx.state.in_process(row.queue, row.group or "") > 0


def is_behind_delayed(tx: Transaction, row: Row) -> bool:
    """With strict groups: whether an earlier message of the group is delayed."""
    delayed = [each for each in tx.state.in_claim_order(row.queue, Status.DELAYED) if each.group == row.group]
    return bool(delayed) and place(delayed[0]) < place(row)


def place(row: Row) -> tuple[int, int, int]:
    """The place in the claim order."""
    return -row.priority, row.position, row.seq


def lacks_token(tx: Transaction, row: Row) -> bool:
    """True if the message's group has used up its rate."""
    rate = tx.rules(row.queue).group_rate
    return bool(row.group) and rate is not None and not tokens(tx, (row.queue, row.group or ""), rate)


def held_before(tx: Transaction, row: Row, mine: Collection[str]) -> Row | None:
    """The first held message of the row's group that comes before it and may be delivered now."""
    rules_now = tx.rules(row.queue)
    if rules_now.group_rate is None and not rules_now.strict_groups:
        return None
    held = held_of(tx, row)
    if not row.group or not held or place(held[0]) >= place(row):
        return None
    return None if must_be_held(tx, held[0], mine) or lacks_token(tx, held[0]) else held[0]


def held_of(tx: Transaction, row: Row) -> list[Row]:
    """The held messages of the row's group, in claim order."""
    return [each for each in tx.state.in_claim_order(row.queue, Status.HELD) if each.group == row.group]


def unhold_behind(tx: Transaction, row: Row, most: int) -> None:
    """With strict groups: make held messages ready that may go to the claim that got this message, too."""
    rules_now = tx.rules(row.queue)
    if rules_now.group_in_flight_max is not None:
        most = min(most, rules_now.group_in_flight_max - tx.state.in_process(row.queue, row.group or ""))
    if rules_now.group_rate is not None:
        most = min(most, tokens(tx, (row.queue, row.group or ""), rules_now.group_rate))
    _make_ready(tx, [each for each in held_of(tx, row)[: max(most, 0)] if not is_behind_delayed(tx, each)])


def is_queue_full(tx: Transaction, queue: str) -> bool:
    """Whether as many messages of the queue are in process as may be at once."""
    bound = tx.rules(queue).in_flight_max
    return bound is not None and len(tx.state.of_queue(queue, Status.PROCESSING)) >= bound


def unhold(tx: Transaction) -> None:
    """Make held messages ready whose group is below its limit again (operations/unhold.py)."""
    freed, tx.state.freed, tx.freed = sorted(tx.state.freed | tx.freed), set(), set()
    for queue, group in freed:
        bound, rate = tx.rules(queue).group_in_flight_max, tx.rules(queue).group_rate
        if not tx.rules(queue).limits_groups or not tx.state.of_queue(queue, Status.HELD):
            continue
        held = [row for row in tx.state.in_claim_order(queue, Status.HELD) if row.group == group]
        if bound is not None:
            held = held[: max(bound - tx.state.in_process(queue, group), 0)]
        if rate is not None:
            held = held[: tokens(tx, (queue, group), rate)]
        free = bool(held)
        if tx.rules(queue).strict_groups:
            closed = tx.state.in_process(queue, group) > 0
            held = [] if closed else [each for each in held[:1] if not is_behind_delayed(tx, each)]
            free = free and not closed
        _make_ready(tx, held)
        if rate is not None and not free:
            tx.limited.add((queue, group))
    for queue in tx.unheld:
        _make_ready(tx, tx.state.of_queue(queue, Status.HELD))


def _make_ready(tx: Transaction, held: list[Row]) -> None:
    for row in held:
        tx.change(UNHELD, row, status=Status.READY)
