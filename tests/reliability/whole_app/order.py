"""The order in which messages are handed out.

Checked per batch and queue, where no receiver asked for a random order: what was handed out comes, in claim order,
before everything ready that was left behind, and each receiver's messages are in claim order. Claim order is priority
(higher first), then place. Places are checked when messages are stored (`check_place`): the order of arrival, the
reverse of it in a LIFO queue, and for messages of one group, which take turns with other groups, the order of arrival
among themselves.

So between two receivers of different batches the earlier one got the earlier message of those that were ready then.
"""

from collections.abc import Sequence, Set

from forq_trio.model.messages.types import Status
from reliability.whole_app.deeds import Deeds
from reliability.whole_app.stores import Stored, Table
from reliability.whole_app.violations import Clause, hold


def claim_key(row: Stored) -> tuple[int, int, int]:
    return -row.priority, row.position, row.seq


def check_order(deeds: Deeds, after: Table, stored_late: Set[int]) -> None:
    """Hold the deliveries of a batch against what it left behind. stored_late: sequences of what may have come after
    the deliveries."""
    queues: dict[str, list[Stored]] = {}
    shuffled = set()
    for claim, deliveries in deeds.handed:
        if claim.shuffle:
            shuffled.add(claim.queue)
            continue
        rows = [after[delivery.sequence] for delivery in deliveries if delivery.sequence in after]
        in_order = sorted(rows, key=claim_key)
        hold(Clause.ORDER, rows == in_order, "a receiver got {}", rows)
        queues.setdefault(claim.queue, []).extend(rows)
    for queue, rows in queues.items():
        if queue in shuffled or not rows:
            continue
        last = max(rows, key=claim_key)
        for row in after.values():
            if row.status == Status.READY and row.queue == queue and row.seq not in stored_late:
                hold(Clause.ORDER, claim_key(row) > claim_key(last), "{} was handed out before {}", last, row)


def check_place(row: Stored, others: Sequence[Stored], *, lifo: bool, grouped: bool) -> None:
    """A new message stands where its arrival and its group say. others: what was there, or came with it."""
    if lifo:
        hold(Clause.ORDER, row.position == -row.seq, "in a LIFO queue: {}", row)
    elif not grouped:
        hold(Clause.ORDER, row.position == row.seq, "in a FIFO queue: {}", row)
    else:
        hold(Clause.ORDER, row.position <= row.seq, "behind its own arrival: {}", row)
        if row.group:
            for other in others:
                alike = (other.queue, other.group, other.priority) == (row.queue, row.group, row.priority)
                if alike and other.seq < row.seq:
                    hold(Clause.ORDER, other.position < row.position, "of one group: {}, then {}", other, row)
