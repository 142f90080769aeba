"""The reference engine: claims, and the claim filter."""

import random
import secrets
from collections.abc import Mapping, Sequence

from forq_trio.model import limits
from forq_trio.model.commands import Claim, RedrivePolicy
from forq_trio.model.messages import REASON_MAX_ATTEMPTS, Delivery, Receipt, Status
from forq_trio.model.queue_settings import NO_DEAD_LETTERS
from forq_trio.storage import engine, rules
from forq_trio.storage.engine import Receiver
from forq_trio.storage.memory.groups import must_be_held, note_round
from forq_trio.storage.memory.state import Row
from forq_trio.storage.memory.transaction import Transaction
from forq_trio.storage.transitions import HELD_BACK

Deliveries = tuple[Delivery, ...]


def serve(
    tx: Transaction, claims: Mapping[int, Claim], receivers: Mapping[str, Sequence[Receiver]]
) -> tuple[dict[int, Deliveries], list[tuple[int, Deliveries]]]:
    """Serve, queue by queue, the parked receivers first, then the batch's own claims.

    claims: the own ones by their index in the batch, as are the deliveries returned for them.
    """
    outcomes: dict[int, Deliveries] = {}
    served: list[tuple[int, Deliveries]] = []
    for queue in sorted({claim.queue for claim in claims.values()} | tx.woken):
        waiting = receivers.get(queue, ())
        own = {index: claim for index, claim in claims.items() if claim.queue == queue}
        dealt = _QueueClaims(tx, queue).deal([*(receiver.claim for receiver in waiting), *own.values()])
        outcomes.update(zip(own, dealt[len(waiting) :], strict=True))
        found = [
            (receiver.id, got) for receiver, got in zip(waiting, dealt[: len(waiting)], strict=True) if got
        ]
        served += found
        if len(found) == limits.RECEIVERS_OFFERED_MAX and tx.state.claimable(queue):
            tx.state.wake.add(queue)
    return outcomes, served


class _QueueClaims:
    """The claims on one queue in one batch. filtered: how many messages they set to held or removed."""

    def __init__(self, tx: Transaction, queue: str) -> None:
        self.tx = tx
        self.queue = queue
        self.filtered = 0

    def deal(self, claims: Sequence[Claim]) -> list[Deliveries]:
        """The deliveries of each claim, in order."""
        if self.tx.rules(self.queue).paused:
            return [()] * len(claims)
        ready = len(self.tx.state.claimable(self.queue))
        sizes = rules.share(ready, [claim.max_messages for claim in claims])
        return [self._fill(claim, size) for claim, size in zip(claims, sizes, strict=True)]

    def _fill(self, claim: Claim, size: int) -> Deliveries:
        deliveries: list[Delivery] = []
        while len(deliveries) < size and self.filtered < limits.CLAIM_FILTERED_MAX:
            candidates = self.tx.state.claimable(self.queue)
            if not candidates:
                break
            row = random.choice(candidates) if claim.shuffle else candidates[0]
            if claim.redrive_policy is not None and row.attempts >= claim.redrive_policy.max_attempts:
                self._remove_exhausted(row, claim.redrive_policy)
                self._count_filtered()
            elif must_be_held(self.tx, row):
                self.tx.change(HELD_BACK, row, status=Status.HELD)
                self._count_filtered()
            else:
                deliveries.append(self._deliver(row, claim))
        return tuple(deliveries)

    def _count_filtered(self) -> None:
        self.filtered += 1
        if self.filtered == limits.CLAIM_FILTERED_MAX and self.tx.state.claimable(self.queue):
            self.tx.state.wake.add(self.queue)

    def _remove_exhausted(self, row: Row, redrive_policy: RedrivePolicy) -> None:
        """Move a message that was delivered too often to the policy's dead-letter queue, or delete it."""
        tx, target = self.tx, redrive_policy.dead_letter_queue
        if target in (NO_DEAD_LETTERS, row.queue):
            tx.clean_up(row, "failed")
        elif (
            redrive_policy.messages_max is not None
            and tx.state.counts(target).total >= redrive_policy.messages_max
        ):
            tx.clean_up(row, "dlq_full")
        else:
            tx.dead_letter(row, target, "failed", REASON_MAX_ATTEMPTS)
            tx.state.wake.add(target)

    def _deliver(self, row: Row, claim: Claim) -> Delivery:
        tx = self.tx
        token = secrets.randbits(62)
        lease_ms = tx.rules(self.queue).lease_ms if claim.lease_ms is None else claim.lease_ms
        lease_until = tx.now_ms + lease_ms
        first_received_at = tx.now_ms if row.first_received_at is None else row.first_received_at
        claimed = tx.change(
            engine.CONSUMED,
            row,
            status=Status.PROCESSING,
            attempts=row.attempts + 1,
            processing_started_at=tx.now_ms,
            first_received_at=first_received_at,
            lease_until=lease_until,
            token=token,
        )
        note_round(tx, row)
        waited_ms = rules.waited_ms(row.process_after, row.received_at, tx.now_ms)
        tx.measure(engine.WAIT, row.queue, waited_ms)
        return Delivery(
            id=row.id,
            content=row.content,
            receipt=str(Receipt(row.seq, token)),
            attempts=claimed.attempts,
            sequence=row.seq,
            received_at=row.received_at,
            lease_until=lease_until,
            priority=row.priority,
            first_received_at=first_received_at,
            attributes=row.attributes,
            group=row.shown_group,
        )
