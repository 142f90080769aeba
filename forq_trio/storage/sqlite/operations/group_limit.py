"""A queue's limit on how many messages of one group are in process (storage/engine.py's rule 8).

A claim that meets a message above the limit sets it to held: the message leaves the claim index, so that no later claim
meets it again. It becomes ready again (`unhold`) when another one of its group is settled, or when the limit is
changed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from forq_trio.model.messages import Status
from forq_trio.storage.allowance import Allowance, Step, within
from forq_trio.storage.sqlite.cache import Group
from forq_trio.storage.sqlite.row import GROUP_ID, SEQ, ReadyRow
from forq_trio.storage.sqlite.transaction import Transaction
from forq_trio.storage.transitions import HELD_BACK, UNHELD


class Held(NamedTuple):
    """A held message."""

    seq: int
    bytes: int


class GroupLimit:
    """The group limit of one queue while a batch serves its claims. in_flight_max: None where there is none."""

    def __init__(self, tx: Transaction, queue: str, in_flight_max: int | None) -> None:
        self.queue = queue
        self.in_flight_max = in_flight_max
        self._tx = tx
        self._in_process: dict[str, int] = {}

    def admits(self, group_id: str | None) -> bool:
        """True if one more message of this group may be processing; it is counted then."""
        if self.in_flight_max is None or not group_id:
            return True
        count = self._in_process.get(group_id)
        if count is None:
            count = count_in_process(self._tx, (self.queue, group_id), self.in_flight_max)
        self._in_process[group_id] = min(count + 1, self.in_flight_max)
        return count < self.in_flight_max

    def set_aside(self, row: ReadyRow, error: Exception) -> None:
        """Leave a message alone that was admitted and cannot be handed out; its group may have another one instead."""
        allowance = self._tx.allowances.of(Step.SET_ASIDE)
        allowance.charge(1 if self._tx.put_aside(self.queue, row[SEQ], error) else allowance.messages, 0)
        if row[GROUP_ID]:
            self._tx.freed.add((self.queue, row[GROUP_ID]))

    def hold(self, rows: Sequence[ReadyRow]) -> None:
        """Set these ready messages to held."""
        if not rows:
            return
        tx = self._tx
        tx.run("hold", [(tx.now_ms, row[SEQ]) for row in rows])
        tx.transition(HELD_BACK, self.queue, Status.READY, Status.HELD, rows)


def count_in_process(tx: Transaction, group: Group, bound: int) -> int:
    """How many messages of a group are processing, counted up to `bound`."""
    ((count,),) = tx.query("count_in_process", *group, bound)
    return int(count)


def unhold(tx: Transaction, groups: Sequence[Group]) -> None:
    """Make held messages ready: of these groups, as the limit allows; and of queues whose limit was changed."""
    allowance = tx.allowances.of(Step.UNHOLD_GROUP)
    for group in groups:
        queue = group[0]
        limit = tx.rules(queue).group_in_flight_max
        if limit is None or tx.counted(queue).held == 0:
            continue
        free = 0 if allowance.used_up else limit - count_in_process(tx, group, limit)
        held = _held(tx, "select_held_of_group", *group, max(free, 0))
        if allowance.used_up or len(_make_ready(tx, queue, held, allowance)) < len(held):
            tx.put_back(group)
    allowance = tx.allowances.of(Step.UNHOLD_QUEUE)
    for queue in tx.queues_unholding():
        if allowance.used_up:
            break
        held = _held(tx, "select_held", queue, tx.unhold_cursor(queue), allowance.messages + 1)
        ready = _make_ready(tx, queue, held, allowance)
        tx.move_unhold_cursor(queue, ready[-1].seq if len(ready) < len(held) else None)


def _held(tx: Transaction, statement: str, *bindings: Any) -> list[Held]:
    return [Held(*row) for row in tx.query(statement, *bindings)]


def _make_ready(tx: Transaction, queue: str, held: Sequence[Held], allowance: Allowance) -> Sequence[Held]:
    """Make held messages ready, the first ones as far as the allowance lets; returns these."""
    ready = within(allowance, held)
    if ready:
        tx.run("unhold", [(tx.now_ms, message.seq) for message in ready])
        tx.transition(UNHELD, queue, Status.HELD, Status.READY, ready)
    return ready
