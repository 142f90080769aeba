"""Whether what a batch did to a message has a cause: a table before, a table after, and the batch in between.

This is no second engine: it does not say what a batch must do, only what it may do to each message.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from forq_trio.model.commands import Command, Extend, Nack, NackById
from forq_trio.model.messages.types import Receipt, Status
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS, Overflow
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.rules import dead_letter_target
from reliability.whole_app.deeds import Deeds
from reliability.whole_app.stores import Stored, Table
from reliability.whole_app.violations import Clause, hold


class Causes:
    """One batch. rules: what holds for a queue, before it and after it (time acts by the first, commands by the
    second)."""

    def __init__(self, before: Table, after: Table, deeds: Deeds, rules) -> None:
        self._before = before
        self._after = after
        self._deeds = deeds
        self._rules = rules

    def rules(self, queue: str) -> Sequence[QueueRules]:
        return self._rules(queue)

    def of_going(self, row: Stored) -> str:
        """Why a message is gone, in a word. Raises Violation when there is no reason."""
        deeds = self._deeds
        if deeds.acked(row):
            return "acked"
        if deeds.dropped_by_key(row):
            return "acked" if deeds.dropped[row.queue, str(row.key)] else "removed"
        if self.purged(row):
            return "purged"
        if row.id in deeds.removed:
            return "removed"
        hold(Clause.HOLDERS, not self._held(row), "{} went while it was held", row)
        if NO_DEAD_LETTERS in self._targets(row):
            if row.expires_after <= deeds.now_ms:
                return "expired"
            if deeds.swept and row.status == Status.FAILED:
                return "failed"
            if self._used_up(row) and (
                deeds.swept or row.queue in deeds.claimed_from or self._attempt_ended(row)
            ):
                return "failed"
        hold(Clause.LOST, self._sent_to(row.queue) and self._overflows(row), "{} is gone", row)
        return "overflow"

    def places(self, row: Stored) -> set[str]:
        """The queues that it was in, or may have gone to."""
        return {row.queue, *self._targets(row), *self._moved_to(row)}

    def purged(self, row: Stored) -> bool:
        """Whether a purge of a queue that it was in, or went to, removed it."""
        places = self.places(row)
        return any(
            purge.queue in places and (purge.up_to is None or row.seq <= purge.up_to)
            for purge in self._deeds.purges
        )

    def of_lost_offer(self, queue: str, key: str, row: Stored | None, *, waited: bool) -> str:
        """Why an offer, or what waited of it, is not there any more. row: the message of the key before."""
        deeds = self._deeds
        if (queue, key) in deeds.dropped or (waited and (queue, key) in deeds.dropped_waiting):
            return "removed"
        if row is not None and self.purged(row):
            return "purged"
        overflows = any(each.overflow is not Overflow.REJECT for each in self.rules(queue))
        hold(Clause.LOST, self._sent_to(queue) and overflows, "the offer of {} is gone: {}", key, row)
        return "overflow"

    def of_update(self, row: Stored, new: Stored, content: str) -> None:
        """Raise Violation unless `new` is what an offer with this content makes of `row`."""
        delivered = row.seq in self._deeds.delivered
        hold(Clause.ANSWER, new.content == content, "{} should have become {}: {}", row, content, new)
        hold(Clause.ATTEMPTS, new.attempts == delivered, "{} was changed: {}", row, new)
        hold(Clause.FENCE, new.token is None or new.token != row.token, "{} was changed: {}", row, new)
        if new.queue == row.queue:
            leased = new.status == Status.PROCESSING
            hold(Clause.KEPT, leased == delivered, "{} was changed: {}", row, new)

    def made_room(self, row: Stored) -> bool:
        """Whether a send pushed the message out of its full queue."""
        new = self._after.get(row.seq)
        if not self._sent_to(row.queue) or (new is not None and new.queue == row.queue):
            return False
        return any(each.overflow is not Overflow.REJECT for each in self.rules(row.queue))

    def _sent_to(self, queue: str) -> bool:
        return any(sent.queue == queue for sent in (*self._deeds.sent, *self._deeds.offers))

    def of_change(self, row: Stored, new: Stored) -> None:
        """Raise Violation unless something may have changed `row` into `new`."""
        deeds = self._deeds
        delivered = row.seq in deeds.delivered
        redriven = row.id in deeds.moved_by_hand
        hold(Clause.HOLDERS, not self._held(row) or not delivered, "{} was handed out again: {}", row, new)
        hold(Clause.HOLDERS, not self._held(row), "{} was changed while it was held: {}", row, new)
        if row.queue != new.queue or redriven:
            hold(Clause.LOST, self._may_move(row, new), "{} was moved: {}", row, new)
            hold(Clause.ATTEMPTS, new.attempts == delivered, "{} was moved: {}", row, new)
            return
        attempts = max(row.attempts - deeds.released(row.seq), 0) + delivered
        hold(Clause.ATTEMPTS, new.attempts == attempts, "{} became {}", row, new)
        if row.status == Status.PROCESSING and (delivered or new.status in (Status.READY, Status.DELAYED)):
            self._check_may_return(row, new)
        if not delivered and not deeds.touches(row):
            self._check_left_alone(row, new)

    def of_delivery(self, row: Stored | None, new: Stored) -> None:
        """Raise Violation unless the message could be handed out."""
        deeds = self._deeds
        claim, delivery = deeds.delivered[new.seq]
        hold(Clause.HOLDERS, new.status == Status.PROCESSING, "handed out, but stored as {}", new)
        hold(Clause.FENCE, Receipt.parse(delivery.receipt).token == new.token, "{}: {}", delivery, new)
        told = (delivery.id, delivery.content, delivery.attempts, delivery.lease_until)
        stored = (new.id, new.content, new.attempts, new.lease_until)
        hold(Clause.ANSWER, told == stored and claim.queue == new.queue, "handed out as {}: {}", told, new)
        # What was due once stays so, also when the clock is set back.
        was_due = row is not None and row.status != Status.DELAYED and row.process_after == new.process_after
        due = was_due or new.process_after <= deeds.now_ms
        hold(Clause.EARLY, due, "handed out at {}: {}", deeds.now_ms, new)
        held_to = self.rules(new.queue)[-1]
        hold(Clause.EARLY, not held_to.paused, "handed out from a paused queue: {}", new)
        failed = row is not None and row.status == Status.FAILED and row.queue == new.queue
        hold(Clause.ATTEMPTS, not failed, "handed out after it had failed: {}", new)
        attempts_max = held_to.max_attempts if new.max_attempts is None else new.max_attempts
        hold(Clause.ATTEMPTS, new.attempts <= attempts_max, "{} may be tried: {}", attempts_max, new)

    def of_groups(self) -> None:
        """Raise Violation if a queue or a group got above its limit; it may have been, when that was lowered."""
        before, after = _in_process(self._before), _in_process(self._after)
        queues = {queue for queue, _ in after}
        for queue in queues:
            most = self.rules(queue)[-1].in_flight_max
            was, count = (sum(each[key] for key in each if key[0] == queue) for each in (before, after))
            hold(
                Clause.EARLY, most is None or count <= max(most, was), "{} of {} are in process", count, queue
            )
        for (queue, group), count in after.items():
            bound = self.rules(queue)[-1].group_in_flight_max
            within = not group or bound is None or count <= max(bound, before[queue, group])
            hold(Clause.EARLY, within, "{} of group {} are in process, {} may be", count, group, bound)

    def may_refuse_to_extend(self, command: Command[Any], row: Stored) -> bool:
        """Whether the lease may not be extended, because it has ended and a limit is reached, or it is not ready."""
        if not isinstance(command, Extend) or row.status == Status.PROCESSING:
            return False
        limited = any(each.limits_groups or each.in_flight_max is not None for each in self.rules(row.queue))
        return limited or row.status not in (Status.READY, Status.HELD)

    def _held(self, row: Stored) -> bool:
        """Whether somebody holds it, and neither gave it back in this batch nor is somebody else entitled to act."""
        if row.status != Status.PROCESSING or (row.lease_until or 0) <= self._deeds.now_ms:
            return False
        return not self._deeds.touches(row)

    def _attempt_ended(self, row: Stored) -> bool:
        """Whether the batch ended an attempt: its consumer gave it back, or ended its lease, or time did."""
        deeds = self._deeds
        by_receipt = any(
            isinstance(command, Nack) or (isinstance(command, Extend) and command.lease_ms == 0)
            for command in deeds.worked.get(row.seq, ())
        )
        over = row.status == Status.PROCESSING and (row.lease_until or 0) <= deeds.now_ms
        return by_receipt or over or deeds.by_id.get((row.queue, row.id)) is NackById

    def _targets(self, row: Stored) -> set[str]:
        """Where it may go as a dead letter, also after an offer in the batch; "": nowhere, it is deleted."""
        offers = [each for each in self._deeds.offers if each.offered.sequence == row.seq]
        own = {row.dead_letter_queue, *(each.offering.dead_letter_queue for each in offers)}
        return {dead_letter_target(row.queue, named, each) for named in own for each in self.rules(row.queue)}

    def _moved_to(self, row: Stored) -> set[str]:
        if row.id not in self._deeds.moved_by_hand:
            return set()
        return {self._deeds.moved_by_hand[row.id] or row.source_queue or row.queue}

    def _used_up(self, row: Stored) -> bool:
        if row.max_attempts is not None:
            return row.attempts >= row.max_attempts
        return any(row.attempts >= each.max_attempts for each in self.rules(row.queue))

    def _overflows(self, row: Stored) -> bool:
        for held_to in self.rules(row.queue):
            if held_to.overflow is Overflow.DROP_OLDEST:
                return True
            if held_to.overflow is Overflow.DEAD_LETTER and NO_DEAD_LETTERS in self._targets(row):
                return True
        return False

    def _may_move(self, row: Stored, new: Stored) -> bool:
        deeds = self._deeds
        if row.id in deeds.moved_by_hand:
            # It may have become a dead letter in the same batch, and then it goes back to where it was.
            return new.queue in (self._moved_to(row) | {row.queue})
        if new.queue not in self._targets(row):
            return False
        expired = row.expires_after <= deeds.now_ms
        failed = row.status == Status.FAILED or self._used_up(row)
        overflowed = any(each.overflow is Overflow.DEAD_LETTER for each in self.rules(row.queue))
        return expired or failed or (overflowed and self._sent_to(row.queue))

    def _check_may_return(self, row: Stored, new: Stored) -> None:
        """It came back from a consumer: not after its last attempt, unless that was uncounted."""
        if self._deeds.released(row.seq):
            return
        bounds = [each.max_attempts for each in self.rules(row.queue)]
        bound = max(bounds) if row.max_attempts is None else row.max_attempts
        extended = any(isinstance(command, Extend) for command in self._deeds.worked.get(row.seq, ()))
        lasting = extended and new.status == Status.PROCESSING and not self._is_delivered(row)
        hold(Clause.ATTEMPTS, row.attempts < bound or lasting, "{} came back after {}: {}", row, bound, new)

    def _is_delivered(self, row: Stored) -> bool:
        return row.seq in self._deeds.delivered

    def _check_left_alone(self, row: Stored, new: Stored) -> None:
        """Nobody did anything to it but time."""
        now_ms = self._deeds.now_ms
        if row.status == Status.DELAYED and new.status != Status.DELAYED:
            hold(Clause.EARLY, row.process_after <= now_ms, "{} at {}: {}", row, now_ms, new)
        if row.status != Status.PROCESSING:
            hold(Clause.KEPT, new.status != Status.PROCESSING, "{} was leased to nobody: {}", row, new)
            hold(
                Clause.LOST,
                new.status != Status.FAILED or row.status == new.status,
                "{} failed: {}",
                row,
                new,
            )
        waits = row.status in (Status.READY, Status.HELD) and new.status == Status.DELAYED
        hold(Clause.LATE, not waits, "{} was put off: {}", row, new)


def _in_process(table: Table) -> Counter[tuple[str, str]]:
    """How many messages are in process, by queue and group; "" for none."""
    return Counter((row.queue, row.group or "") for row in table.values() if row.status == Status.PROCESSING)
