"""What a batch says it did, sorted by the message it did it to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from forq_trio.model.commands import (
    Ack,
    AckById,
    AckRevision,
    AddToMessageBatch,
    CancelRunning,
    Claim,
    Claims,
    Command,
    Configure,
    Delete,
    DropKey,
    Extend,
    ForgetQueue,
    Nack,
    NackById,
    OfferMany,
    Pause,
    Produce,
    ProduceMany,
    Purge,
    Redrive,
    Release,
    RescheduleKey,
    Resubmit,
    Sweep,
)
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Produced, Receipt, Status
from forq_trio.storage.engine import Batch, BatchResult, Deferred
from reliability.whole_app.stores import Stored, Table, key_name

SETTLING = (Ack, Nack, Extend, Release)


class Sent(NamedTuple):
    """A message that was taken, into `queue`; produced: as the engine answered. copy: of a dead letter; of the message
    only the content is known then."""

    queue: str
    message: NewMessage
    produced: Produced
    copy: bool = False


class Offer(NamedTuple):
    """An offer that changed something. key: with its kind."""

    queue: str
    key: str
    offering: Offering
    offered: Offered


class Settled(NamedTuple):
    """What became of one receipt."""

    command: Any
    receipt: Receipt
    worked: bool


class Handed(NamedTuple):
    """One receiver's messages."""

    claim: Claim
    deliveries: tuple[Delivery, ...]


class Deeds:
    """What one batch did. settled: everything about receipts; of a sequence: those that worked.

    by_id: (queue, id) of messages that were settled without a receipt, and by what. moved_by_hand: ids that were
    redriven; removed: ids that were deleted or cancelled, or replaced by an edited copy. claimed_from: queues with
    claims. offers: in the order in which they were done. updated, rescheduled: sequences of messages that they, or
    new due times, changed. dropped: (queue, key) whose message was removed, and whether it was acknowledged by its
    revision; dropped_waiting: those of which only what waited was.
    """

    def __init__(self, batch: Batch, result: BatchResult, parked: Mapping[int, Claim], before: Table) -> None:
        self._before = before
        self.now_ms = batch.now_ms
        self.sent: list[Sent] = []
        self.settled: list[Settled] = []
        self.worked: dict[int, list[Any]] = {}
        self.by_id: dict[tuple[str, str], type] = {}
        self.moved_by_hand: dict[str, str | None] = {}
        self.removed: set[str] = set()
        self.purges: list[Purge] = []
        self.swept = False
        self.reconfigured: set[str] = set()
        self.handed: list[Handed] = []
        self.offers: list[Offer] = []
        self.rescheduled: set[int] = set()
        self.dropped: dict[tuple[str, str], bool] = {}
        self.dropped_waiting: set[tuple[str, str]] = set()
        claims = [command.queue for command in batch.commands if isinstance(command, Claim)]
        self.claimed_from = {*claims, *batch.receivers}
        for command, outcome in zip(batch.commands, result.outcomes, strict=True):
            if isinstance(outcome, Deferred):
                if outcome.done:
                    self._note(command.part(0, len(outcome.done)), outcome.done)
            elif not isinstance(outcome, Exception):
                self._note(command, outcome)
        # A batch runs kind by kind, not in the order in which it was asked.
        self.sent.sort(key=lambda sent: (sent.produced.sequence, sent.produced.duplicate))
        # A revision is a sequence number, and each change has a new one.
        self.offers.sort(key=lambda offer: offer.offered.revision)
        changed = [each.offered for each in self.offers if not each.offered.once_more]
        self.updated = {offered.sequence for offered in changed if offered.outcome == "updated"}
        self.handed += [Handed(parked[receiver], deliveries) for receiver, deliveries in result.served]
        self.delivered = {
            Receipt.parse(delivery.receipt).seq: (handed.claim, delivery)
            for handed in self.handed
            for delivery in handed.deliveries
        }

    def touches(self, row: Any) -> bool:
        """Whether somebody who holds the message settled it, or it was changed by its key."""
        changed = row.seq in self.updated or row.seq in self.rescheduled
        return changed or row.seq in self.worked or (row.queue, row.id) in self.by_id

    def takes(self, command: Any, receipt: Receipt, row: Stored) -> bool:
        """Whether the command takes this receipt of the message, by the claim that gave it."""
        claims = getattr(command, "claims", Claims.CURRENT)
        # an extension of the same batch may have leased it again
        extended = any(isinstance(each, Extend) for each in self.worked.get(row.seq, ()))
        leased = row.status == Status.PROCESSING or extended
        if claims is Claims.ANY:
            was_given = row.token == receipt.token or (row.attempts > 0 and receipt.is_of(row.id))
            return was_given and (leased or not isinstance(command, Extend))
        return row.token == receipt.token and (leased or claims is Claims.CURRENT)

    def dropped_by_key(self, row: Stored) -> bool:
        return row.key is not None and (row.queue, row.key) in self.dropped

    def released(self, seq: int) -> bool:
        return any(isinstance(command, Release) for command in self.worked.get(seq, ()))

    def acked(self, row: Any) -> bool:
        by_receipt = any(isinstance(command, Ack) for command in self.worked.get(row.seq, ()))
        return by_receipt or self.by_id.get((row.queue, row.id)) is AckById

    def _source(self, queue: str, message_id: str) -> str:
        """Where a dead letter came from, perhaps in this very batch."""
        row = next(row for row in self._before.values() if row.id == message_id)
        return row.source_queue or queue if row.queue == queue else row.queue

    def _note(self, command: Command[Any], outcome: Any) -> None:
        match command:
            case Produce():
                self.sent.append(Sent(command.queue, command.message, outcome))
            case ProduceMany():
                for message, produced in zip(command.messages, outcome, strict=True):
                    self.sent.append(Sent(command.queue, message, produced))
            case AddToMessageBatch():
                for each, produced in zip(command.messages, outcome, strict=True):
                    if isinstance(produced, Produced):
                        self.sent.append(Sent(each.queue, each.message, produced))
            case Resubmit() if outcome is not None:
                copy = NewMessage(command.content or "")
                target = command.target or self._source(command.queue, command.message_id)
                self.sent.append(Sent(target, copy, outcome, copy=True))
                if command.remove:
                    self.removed.add(command.message_id)
            case Ack() | Nack() | Extend() | Release():
                for receipt, told in zip(command.receipts, outcome, strict=True):
                    worked = told not in (None, False)  # nor the REFUSED of a nack, which equals False
                    self.settled.append(Settled(command, receipt, worked))
                    if worked:
                        self.worked.setdefault(receipt.seq, []).append(command)
            case AckById() | NackById() if outcome:
                self.by_id[command.queue, command.message_id] = type(command)
            case Redrive():
                done = zip(command.message_ids, outcome, strict=True)
                self.moved_by_hand.update({each: command.target for each, moved in done if moved})
            case Delete():
                done = zip(command.message_ids, outcome, strict=True)
                self.removed.update(each for each, removed in done if removed)
            case CancelRunning():
                self.removed.add(command.message_id)
            case OfferMany() | RescheduleKey() | DropKey() | AckRevision():
                self._note_keyed(command, outcome)
            case _:
                self._note_administration(command, outcome)

    def _note_keyed(self, command: Command[Any], outcome: Any) -> None:
        match command:
            case OfferMany():
                self.offers += [
                    Offer(command.queue, key_name(each.kind, each.key), each, offered)
                    for each, offered in zip(command.offerings, outcome, strict=True)
                    if isinstance(offered, Offered) and offered.outcome != "ignored"
                ]
            case RescheduleKey() if outcome is not None and not command.once_more:
                self.rescheduled.add(outcome.sequence)
            case DropKey() | AckRevision() if outcome:
                key = command.queue, key_name(command.kind, command.key)
                if isinstance(command, DropKey) and command.once_more:
                    self.dropped_waiting.add(key)
                else:
                    self.dropped[key] = isinstance(command, AckRevision)

    def _note_administration(self, command: Command[Any], outcome: Any) -> None:
        match command:
            case Purge():
                self.purges.append(command)
            case Sweep():
                self.swept = True
            case Configure() | Pause() | ForgetQueue():
                self.reconfigured.add(command.queue)
            case Claim():
                if outcome:
                    self.handed.append(Handed(command, outcome))


def queues_reconfigured(batch: Batch) -> set[str]:
    """The queues whose rules this batch may change."""
    return {
        command.queue for command in batch.commands if isinstance(command, Configure | Pause | ForgetQueue)
    }


def queues_forgotten(batch: Batch, result: BatchResult) -> set[str]:
    """The queues that this batch deleted."""
    done = zip(batch.commands, result.outcomes, strict=True)
    return {
        command.queue for command, outcome in done if isinstance(command, ForgetQueue) and outcome is True
    }
