"""A queue's bound on how many messages of one group are in process (engine.py's rule 8).

A claim that meets a message above the bound holds it: it leaves the claim index, so that no later claim meets it again.
It comes back when its group has room, or when the bound is changed.
"""

from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.messages import Status
from forq_trio.storage.sqlite.cache import Group
from forq_trio.storage.sqlite.transaction import Transaction


class Bounded:
    """The bound of one queue, while claims of a batch are served.

    left: how many more messages may be set aside, that is held back, or removed because they were delivered too often.
    """

    def __init__(self, tx: Transaction, queue: str, bound: int | None) -> None:
        self.queue = queue
        self.bound = bound
        self._tx = tx
        self._in_process: dict[str, int] = {}
        self.left = limits.SET_ASIDE_BATCH_MAX

    def admits(self, group_id: str | None) -> bool:
        """True if one more of this group may go into process; it is counted then."""
        if self.bound is None or not group_id:
            return True
        count = self._in_process.get(group_id)
        if count is None:
            count = count_in_process(self._tx, (self.queue, group_id), self.bound)
        self._in_process[group_id] = min(count + 1, self.bound)
        return count < self.bound

    def hold(self, seqs: Sequence[int]) -> None:
        if not seqs:
            return
        tx = self._tx
        tx.run("hold", [(tx.now_ms, seq) for seq in seqs])
        tx.add(self.queue, Status.READY, -len(seqs))
        tx.add(self.queue, Status.HELD, len(seqs))
        self.left -= len(seqs)


def count_in_process(tx: Transaction, group: Group, bound: int) -> int:
    """How many messages of a group are in process; more than `bound` are not counted."""
    ((count,),) = tx.query("count_in_process", *group, bound)
    return int(count)


def let_go(tx: Transaction) -> None:
    """Make held messages ready: those whose group has room, and those whose queue's bound was changed."""
    for group in sorted(tx.freed):
        bound = tx.rules(group[0]).group_in_flight_max
        if bound is not None and tx.counted(group[0]).held > 0:
            room = bound - count_in_process(tx, group, bound)
            if room > 0:
                _make_ready(tx, group[0], [seq for (seq,) in tx.query("let_group_go", *group, room)])
    left = limits.DUE_BATCH_MAX
    for queue in tx.all_letting_go():
        seqs = [seq for (seq,) in tx.query("select_held", queue, tx.letting_go(queue), left + 1)]
        now, later = seqs[:left], seqs[left:]
        _make_ready(tx, queue, now)
        if not later:
            tx.let_go(queue, None)
        elif now:
            tx.let_go(queue, now[-1])
        left -= len(now)


def _make_ready(tx: Transaction, queue: str, seqs: Sequence[int]) -> None:
    tx.run("let_go", [(tx.now_ms, seq) for seq in seqs])
    if seqs:
        tx.add(queue, Status.HELD, -len(seqs))
        tx.add(queue, Status.READY, len(seqs))
