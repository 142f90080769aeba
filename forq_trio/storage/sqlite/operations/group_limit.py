"""A queue's limit on how many messages of one group are in process (storage/engine.py's rule 8).

A claim that meets a message above the limit sets it to held: the message leaves the claim index, so that no later claim
meets it again. It becomes ready again (`unhold`) when another one of its group is settled, or when the limit is
changed.
"""

from collections.abc import Sequence
from typing import Any

from forq_trio.model import limits
from forq_trio.model.messages import Status
from forq_trio.storage.sqlite.cache import Group
from forq_trio.storage.sqlite.transaction import Transaction
from forq_trio.storage.transitions import HELD_BACK, UNHELD

_SEQ, _GROUP_ID = 0, 8


class GroupLimit:
    """The group limit of one queue while a batch serves its claims. in_flight_max: None where there is none.

    left: how many more messages the claims may filter out: set to held, remove because of a redrive policy, or set
    aside because they are damaged.
    """

    def __init__(self, tx: Transaction, queue: str, in_flight_max: int | None) -> None:
        self.queue = queue
        self.in_flight_max = in_flight_max
        self._tx = tx
        self._in_process: dict[str, int] = {}
        self.left = limits.CLAIM_FILTERED_MAX

    def admits(self, group_id: str | None) -> bool:
        """True if one more message of this group may be processing; it is counted then."""
        if self.in_flight_max is None or not group_id:
            return True
        count = self._in_process.get(group_id)
        if count is None:
            count = count_in_process(self._tx, (self.queue, group_id), self.in_flight_max)
        self._in_process[group_id] = min(count + 1, self.in_flight_max)
        return count < self.in_flight_max

    def set_aside(self, row: Any, error: Exception) -> None:
        """Leave a message alone that was admitted and cannot be handed out; its group may have another one instead."""
        if self._tx.put_aside(self.queue, row[_SEQ], error):
            self.left -= 1
        else:
            self.left = 0
        if row[_GROUP_ID]:
            self._tx.freed.add((self.queue, row[_GROUP_ID]))

    def hold(self, rows: Sequence[Any]) -> None:
        """Set these ready messages, rows of `select_ready`, to held."""
        if not rows:
            return
        tx = self._tx
        tx.run("hold", [(tx.now_ms, row[_SEQ]) for row in rows])
        tx.transition(HELD_BACK, self.queue, Status.READY, Status.HELD, rows)
        self.left -= len(rows)


def count_in_process(tx: Transaction, group: Group, bound: int) -> int:
    """How many messages of a group are processing, counted up to `bound`."""
    ((count,),) = tx.query("count_in_process", *group, bound)
    return int(count)


def unhold(tx: Transaction) -> None:
    """Make held messages ready: where their group is below its limit again, or the limit of their queue was changed."""
    for group in sorted(tx.freed):
        limit = tx.rules(group[0]).group_in_flight_max
        if limit is not None and tx.counted(group[0]).held > 0:
            free = limit - count_in_process(tx, group, limit)
            if free > 0:
                _make_ready(tx, group[0], tx.query("select_held_of_group", *group, free))
    left = limits.DUE_BATCH_MAX
    for queue in tx.queues_unholding():
        rows = tx.query("select_held", queue, tx.unhold_cursor(queue), left + 1)
        now, later = rows[:left], rows[left:]
        _make_ready(tx, queue, now)
        if not later:
            tx.move_unhold_cursor(queue, None)
        elif now:
            tx.move_unhold_cursor(queue, now[-1][_SEQ])
        left -= len(now)


def _make_ready(tx: Transaction, queue: str, rows: Sequence[Any]) -> None:
    if rows:
        tx.run("unhold", [(tx.now_ms, row[_SEQ]) for row in rows])
        tx.transition(UNHELD, queue, Status.HELD, Status.READY, rows)
