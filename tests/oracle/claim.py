"""The reference engine: claims, and the claim filter."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from forq_trio.model import limits
from forq_trio.model.commands import Claim, RedrivePolicy
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, Delivery, Receipt, Status, claim_token
from forq_trio.model.messages.where import Where, takes
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS
from forq_trio.storage import engine, rules
from forq_trio.storage.engine import Receiver
from forq_trio.storage.transitions import HELD_BACK, UNHELD
from oracle.groups import held_before, lacks_token, must_be_held, note_round, unhold_behind
from oracle.rates import note_limited, take_token, tokens, wake_queue
from oracle.state import Row
from oracle.transaction import Transaction

Deliveries = tuple[Delivery, ...]
HandedOutT = TypeVar("HandedOutT")


def serve(
    tx: Transaction, claims: Mapping[int, Claim], receivers: Mapping[str, Sequence[Receiver]]
) -> tuple[dict[int, Deliveries], list[tuple[int, Deliveries]]]:
    """Serve, queue by queue, first the parked receivers, then the batch's own claims.

    claims: the batch's own ones, by index. Returns their outcomes by index, and the deliveries of receivers by id.
    """
    outcomes: dict[int, Deliveries] = {}
    served: list[tuple[int, Deliveries]] = []
    for queue in sorted({claim.queue for claim in claims.values()} | tx.woken.intersection(receivers)):
        waiting = parked = receivers.get(queue, ())
        first_ones = parked[: _open(tx, queue)]
        if not any(receiver.claim.where for receiver in first_ones):
            waiting = first_ones  # a message that does not match some of them may match the others
        own = {index: claim for index, claim in claims.items() if claim.queue == queue}
        dealt = QueueClaims(tx, queue).deal([*(receiver.claim for receiver in waiting), *own.values()])
        outcomes |= zip(own, dealt[len(waiting) :], strict=True)
        found = [
            (receiver.id, got) for receiver, got in zip(waiting, dealt[: len(waiting)], strict=True) if got
        ]
        served += found
        if len(found) == limits.RECEIVERS_OFFERED_MAX and _open(tx, queue):
            tx.state.wake.add(queue)
        if len(found) == limits.RECEIVERS_OFFERED_MAX or len(waiting) < len(parked) or not all(dealt):
            wake_queue(tx, queue)
    return outcomes, served


def _open(tx: Transaction, queue: str, *, with_held: bool = False) -> int:
    """How many of the ready messages the pause and the queue's own limits permit to be delivered now.

    with_held: also of those that are held behind them.
    """
    rules_now = tx.rules(queue)
    ready = 0 if rules_now.paused else len(tx.state.claimable(queue))
    if ready and with_held:
        ready += len(tx.state.of_queue(queue, Status.HELD))
    rate = rules_now.queue_rate
    if rate is not None:
        ready = min(ready, tokens(tx, (queue, ""), rate))
    if rules_now.in_flight_max is None:
        return ready
    in_process = len(tx.state.of_queue(queue, Status.PROCESSING))
    return min(ready, max(rules_now.in_flight_max - in_process, 0))


class QueueClaims:
    """The claims on one queue in one batch."""

    def __init__(self, tx: Transaction, queue: str) -> None:
        self.tx = tx
        self.queue = queue

    @property
    def open(self) -> bool:
        """Whether a message can be delivered now, provided the limit of its group permits it."""
        return _open(self.tx, self.queue) > 0

    def deal(self, claims: Sequence[Claim]) -> list[Deliveries]:
        """The deliveries of each claim, in order."""
        strict = self.tx.rules(self.queue).strict_groups
        if strict or any(claim.where for claim in claims):
            return [
                self._fill(claim, min(claim.max_messages, _open(self.tx, self.queue, with_held=strict)))
                for claim in claims
            ]
        sizes = rules.share(_open(self.tx, self.queue), [claim.max_messages for claim in claims])
        return [self._fill(claim, size) for claim, size in zip(claims, sizes, strict=True)]

    def _fill(self, claim: Claim, size: int) -> Deliveries:
        def deliver(row: Row) -> Delivery:
            return self._deliver(row, claim)

        return tuple(
            self.fill(size, deliver, shuffle=claim.shuffle, policy=claim.redrive_policy, where=claim.where)
        )

    def fill(
        self,
        size: int,
        hand_out: Callable[[Row], HandedOutT],
        *,
        shuffle: bool = False,
        policy: RedrivePolicy | None = None,
        where: Where = (),
    ) -> list[HandedOutT]:
        """Deliver up to `size` messages, one by one."""
        tx = self.tx
        handed_out: list[HandedOutT] = []
        strict = tx.rules(self.queue).strict_groups
        if strict and where:
            return handed_out
        mine: set[str] = set()  # the groups of messages that are handed out
        while len(handed_out) < size and self.open:
            candidates = tx.state.claimable(self.queue)
            if where:
                candidates = [row for row in candidates if takes(where, row.attributes)]
            if not candidates:
                break
            row = random.choice(candidates) if shuffle and not strict else candidates[0]
            away = self._exhausted(row, policy)
            before = held_before(tx, row, mine)
            if away is not None:
                self._remove(row, away)
            elif before is not None:
                tx.change(UNHELD, before, status=Status.READY)
                tx.state.wake.add(self.queue)
            elif must_be_held(tx, row, mine) or lacks_token(tx, row):
                tx.change(HELD_BACK, row, status=Status.HELD)
                note_limited(tx, row)
            else:
                handed_out.append(hand_out(row))
                if strict and row.group and row.group not in mine:
                    mine.add(row.group)
                    unhold_behind(tx, row, size - len(handed_out))
        return handed_out

    def _exhausted(self, row: Row, policy: RedrivePolicy | None) -> rules.Exhausted | None:
        tx = self.tx

        def takes(queue: str, messages_max: int | None) -> bool:
            has_space = messages_max is None or tx.state.counts(queue).total < messages_max
            return has_space and tx.admit(queue) is None

        own = tx.dead_letter_target(row)
        return rules.exhausted(row, own, row.default_max_receives, policy, tx.rules(self.queue), takes)

    def _remove(self, row: Row, away: rules.Exhausted) -> None:
        """Move a message that was delivered too often to its dead-letter queue, or delete it."""
        if away.target == NO_DEAD_LETTERS:
            self.tx.clean_up(row, away.reason)
        else:
            self.tx.dead_letter(row, away.target, away.reason, REASON_MAX_ATTEMPTS)
            self.tx.state.wake.add(away.target)

    def _deliver(self, row: Row, claim: Claim) -> Delivery:
        token, named = claim_token(row.id), row.pending_key
        lease_ms = self.tx.rules(self.queue).lease_ms if claim.lease_ms is None else claim.lease_ms
        claimed = self.lease(row, lease_ms, token)
        assert claimed.lease_until is not None
        assert claimed.first_received_at is not None
        return Delivery(
            id=row.id,
            content=row.content,
            receipt=str(Receipt(row.seq, token)),
            attempts=claimed.attempts,
            sequence=row.seq,
            received_at=row.received_at,
            lease_until=claimed.lease_until,
            priority=row.priority,
            first_received_at=claimed.first_received_at,
            attributes=row.attributes or {},
            group=row.shown_group,
            key=None if named is None else named[1],
            kind="" if named is None else named[0],
            max_attempts=row.max_attempts,
        )

    def lease(self, row: Row, lease_ms: int, token: int) -> Row:
        """Lease a ready message."""
        tx = self.tx
        claimed = tx.change(
            engine.CONSUMED,
            row,
            status=Status.PROCESSING,
            attempts=row.attempts + 1,
            processing_started_at=tx.now_ms,
            first_received_at=tx.now_ms if row.first_received_at is None else row.first_received_at,
            lease_until=tx.now_ms + lease_ms,
            token=token,
        )
        note_round(tx, row)
        take_token(tx, row)
        tx.measure(engine.WAIT, row.queue, rules.waited_ms(row.process_after, row.received_at, tx.now_ms))
        return claimed
