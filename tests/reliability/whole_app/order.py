"""The order in which messages are handed out.

Checked per batch and queue, where no receiver asked for a random order: what was handed out comes, in claim order,
before everything ready that was left behind, and each receiver's messages are in claim order. Claim order is priority
(higher first), then place. Places are checked when messages are stored (`check_place`): the order of arrival, the
reverse of it in a LIFO queue, and for messages of one group, which take turns with other groups, the order of arrival
among themselves.

So between two receivers of different batches the earlier one got the earlier message of those that were ready then.

A receiver gets messages of a strict group only if no other receiver has one of it, and no earlier one waits: delayed,
for its next attempt or by its sender, or held. It may get several.
"""

from collections.abc import Callable, Sequence, Set

from forq_trio.model.messages.types import Status
from forq_trio.model.queues.settings import QueueRules
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


def check_strict_groups(
    deeds: Deeds, after: Table, stored_late: Set[int], is_strict: Callable[[str], bool]
) -> int:
    """Hold the deliveries of a batch against strict groups; returns how often a receiver got several of one.

    stored_late: see `check_order`.
    """
    given: dict[tuple[str, str], tuple[int, list[Stored]]] = {}
    for receiver, handed in enumerate(deeds.handed):
        for delivery in handed.deliveries:
            row = after.get(delivery.sequence)
            if row is None or not row.group or not is_strict(row.queue):
                continue
            first, rows = given.setdefault((row.queue, row.group), (receiver, []))
            hold(Clause.GROUP, receiver == first, "two receivers got {} and {}", rows, row)
            rows.append(row)
    for group, (_, rows) in given.items():
        last = max(rows, key=claim_key)
        others = [row for row in after.values() if (row.queue, row.group) == group and row not in rows]
        for row in others:
            hold(Clause.GROUP, row.status != Status.PROCESSING, "{} was handed out beside {}", last, row)
            waits = row.status in (Status.DELAYED, Status.HELD) and row.seq not in stored_late
            before = waits and claim_key(row) < claim_key(last)
            hold(Clause.GROUP, not before, "{} was handed out before {}", last, row)
    return sum(len(rows) > 1 for _, rows in given.values())


def check_held(table: Table, rules: Callable[[str], QueueRules]) -> None:
    """Raise Violation for a message that is held for no reason. Rates are left out: their tokens are not known here."""
    groups: dict[tuple[str, str], list[Stored]] = {}
    for row in table.values():
        if row.group:
            groups.setdefault((row.queue, row.group), []).append(row)
    for (queue, _), rows in groups.items():
        held = [row for row in rows if row.status == Status.HELD]
        if not held or rules(queue).group_rate is not None:
            continue
        first = min(held, key=claim_key)
        in_process = sum(row.status == Status.PROCESSING for row in rows)
        bound = rules(queue).group_in_flight_max
        waits = bound is not None and in_process >= bound
        if rules(queue).strict_groups:
            delayed = [row for row in rows if row.status == Status.DELAYED]
            waits = waits or in_process > 0 or any(claim_key(row) < claim_key(first) for row in delayed)
        # the delivery of a ready one will make others ready
        waits = waits or any(row.status == Status.READY for row in rows)
        hold(Clause.LATE, waits, "held for no reason: {}", first)


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
