"""Makes held messages ready, after the commands of a batch: of groups that were freed, and once a limit was changed.

The rules are those of group_limit.py.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from forq_trio.model import limits
from forq_trio.storage.allowance import Step
from forq_trio.storage.relational.operations.group_limit import GroupLimit, make_ready, read_held
from forq_trio.storage.relational.operations.rate_limit import expire_buckets, next_token_ms, tokens, wake
from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.rehearsal import each_rehearsed
from forq_trio.storage.relational.transaction import Transaction

ItemT = TypeVar("ItemT")


def unhold(tx: Transaction, groups: Sequence[Group]) -> None:
    """Make held messages ready: of these groups up to their limit, and of queues whose limit was changed."""
    page = limits.DUE_BATCH_MAX + 1
    reads = [(queue, _unheld_at_once(tx, queue, page)) for queue, _ in groups]
    for part in _parts(tx, groups, reads):
        each_rehearsed(tx, part, partial(_unhold_group, tx), lambda group: [group])
    queues = tx.grouped.queues_unholding()
    for names in _parts(tx, queues, [(queue, page) for queue in queues]):
        each_rehearsed(tx, names, partial(_unhold_queue, tx), lambda queue: [queue])


def _unheld_at_once(tx: Transaction, queue: str, page: int) -> int:
    """How many held messages of a freed group are read at most."""
    rules = tx.rules(queue)
    return 1 if rules.strict_groups else min(rules.group_in_flight_max or page, page)


def _parts(tx: Transaction, items: Sequence[ItemT], reads: Sequence[tuple[str, int]]) -> list[list[ItemT]]:
    """Split queues or groups into parts for which a rehearsal reads at most UNHOLD_READ_MAX held messages.

    A part has at least one item. A batch makes DUE_BATCH_MAX messages ready; without parts it would read as many for
    each item, and so would every further batch. reads: for each item the queue of which it reads held messages, and how
    many at most.
    """
    parts: list[list[ItemT]] = []
    rows: dict[str, int] = {}
    total = limits.UNHOLD_READ_MAX
    for item, (queue, most) in zip(items, reads, strict=True):
        held = tx.counts.of(queue).held
        more = min(most, held - rows.get(queue, 0))
        if not parts or total + more > limits.UNHOLD_READ_MAX:
            parts.append([])
            rows, total, more = {}, 0, min(most, held)
        rows[queue] = rows.get(queue, 0) + more
        total += more
        parts[-1].append(item)
    return parts


def _unhold_group(tx: Transaction, group: Group) -> None:
    allowance = tx.allowances.of(Step.UNHOLD_GROUP)
    queue, group_id = group
    limit = GroupLimit(tx, queue)
    if limit.has_no_limit or tx.counts.of(queue).held == 0:
        return
    held, free = ((), 0) if allowance.used_up else limit.to_unhold(group_id)
    # Perhaps a delayed message holds them that is due, and which this batch left to the next one.
    waits_for_due = limit.strict and free > 0 and not held and tx.allowances.of(Step.DUE).used_up
    if allowance.used_up or waits_for_due or len(make_ready(tx, queue, held, allowance)) < len(held):
        tx.freed.leave(group)
    elif free <= 0:
        limit.note_limited(group_id)


def _unhold_queue(tx: Transaction, queue: str) -> None:
    allowance = tx.allowances.of(Step.UNHOLD_QUEUE)
    if allowance.used_up:
        return
    held = read_held(tx, "select_held", queue, tx.grouped.unhold_cursor(queue), limits.DUE_BATCH_MAX + 1)
    ready = make_ready(tx, queue, held, allowance)
    tx.grouped.move_unhold_cursor(queue, ready[-1].seq if len(ready) < len(held) else None)


def wake_limited(tx: Transaction) -> None:
    """At the end of a batch, have groups with held messages freed when they get a token, or at once if they do."""
    each_rehearsed(tx, sorted(tx.rates.limited), partial(_wake_limited, tx), lambda group: [group])
    expire_buckets(tx)


def _wake_limited(tx: Transaction, group: Group) -> None:
    queue, group_id = group
    limit = GroupLimit(tx, queue)
    if (
        limit.rate is None
        or not tx.counts.of(queue).held
        or not read_held(tx, "select_held_of_group", *group, 1)
    ):
        return
    if limit.strict and limit.is_claimed_elsewhere(group_id):
        return  # the end of what is in process frees it
    if not tokens(tx, group, limit.rate):
        wake(tx, group, next_token_ms(tx, group, limit.rate))
    elif limit.left(group_id, 1):
        wake(tx, group, tx.now_ms)
