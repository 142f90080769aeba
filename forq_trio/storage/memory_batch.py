"""One batch of the reference engine at work: settle what is due, then the commands, then the claims."""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import uuid6

from forq_trio import limits
from forq_trio.commands import (
    Ack,
    AckById,
    Claim,
    Command,
    Extend,
    Nack,
    NackById,
    Optimize,
    Ping,
    Produce,
    ProduceMany,
    Release,
    Sweep,
    SweepKind,
    Swept,
)
from forq_trio.errors import InvalidContent, Overloaded
from forq_trio.model import (
    REASON_EXPIRED,
    REASON_MAX_ATTEMPTS,
    Delivery,
    NewMessage,
    Produced,
    Receipt,
    Status,
    is_dead_letter_queue,
)
from forq_trio.storage import engine, rules
from forq_trio.storage.engine import EngineSettings, Event
from forq_trio.storage.memory_state import FirstSend, Row, State

_KINDS: tuple[type[Command[Any]], ...] = (
    Produce,
    ProduceMany,
    Ack,
    AckById,
    Nack,
    NackById,
    Extend,
    Release,
    Sweep,
    Optimize,
    Ping,
    Claim,
)
ORDER = {kind: place for place, kind in enumerate(_KINDS)}
"""Which kinds of command of a batch go first; those of one kind keep their order."""


class Transaction:
    """One batch at work on a state that it owns. made_ready: queues in which a message became ready."""

    def __init__(self, state: State, settings: EngineSettings, now_ms: int) -> None:
        self.state = state
        self.settings = settings
        self.now_ms = now_ms
        self.failed_queued = False
        self.made_ready: set[str] = set()
        self._events: Counter[tuple[str, str, str]] = Counter()

    def events(self) -> list[Event]:
        counted = sorted(self._events.items())
        return [Event(kind, queue, count, reason) for (kind, queue, reason), count in counted]

    def next_due_ms(self) -> int | None:
        due = (row.due_at for row in self.state.rows.values())
        return min((at for at in due if at is not None), default=None)

    def _count(self, kind: str, queue: str, reason: str = "") -> None:
        self._events[kind, queue, reason] += 1

    def _put(self, row: Row) -> None:
        self.state.rows[row.seq] = row
        self.state.queues.add(row.queue)
        if row.status is Status.READY:
            self.made_ready.add(row.queue)
        elif row.status is Status.FAILED:
            self.failed_queued = True

    def _change(self, row: Row, **changes: Any) -> Row:
        changed = msgspec.structs.replace(row, updated_at=self.now_ms, **changes)
        self._put(changed)
        return changed

    # What falls due

    def settle(self) -> None:
        """Deal with what is due, in rounds, because what one round made ready may have expired meanwhile."""
        left = limits.DUE_BATCH_MAX
        while left and (due := self._due()[:left]):
            left -= len(due)
            for row in due:
                self._settle_row(row)

    def _due(self, *statuses: Status) -> list[Row]:
        """What is due now, longest due first; statuses: only those, all when none is given."""
        due = [
            (row.due_at, row.seq)
            for row in self.state.rows.values()
            if row.due_at is not None and row.due_at <= self.now_ms and row.status in (statuses or Status)
        ]
        return [self.state.rows[seq] for _, seq in sorted(due)]

    def _settle_row(self, row: Row) -> None:
        if row.status is not Status.PROCESSING and row.expires_after <= self.now_ms:
            self._expire(row)
        elif row.status is Status.PROCESSING:
            self._recover(row)
        else:
            self._change(row, status=Status.READY)

    def _expire(self, row: Row) -> None:
        self._bury(row, "expired", REASON_EXPIRED)

    def _bury(self, row: Row, event_reason: str, failure_reason: str) -> None:
        """Move a message to the dead-letter queue of its queue, or remove it if it is in one already."""
        if is_dead_letter_queue(row.queue):
            del self.state.rows[row.seq]
            self._count(engine.CLEANED_UP, row.queue, event_reason)
            return
        self._count(engine.MOVED_TO_DLQ, row.queue, event_reason)
        self._change(
            row,
            queue=rules.dead_letter_name(row.queue),
            status=Status.READY,
            attempts=0,
            process_after=self.now_ms,
            expires_after=rules.expires_after(self.now_ms, self.settings.dlq_ttl_ms),
            processing_started_at=None,
            lease_until=None,
            token=None,
            failure_reason=failure_reason,
            source_queue=row.queue,
        )

    def _recover(self, row: Row) -> None:
        self._end_lease(row)
        self._count(engine.STALE_RECOVERED, row.queue)

    def _end_lease(self, row: Row) -> None:
        fate = rules.after_lease_end(row.attempts, row.max_attempts, self.now_ms, self.settings)
        self._give_back(row, fate, token=row.token if fate.status is Status.READY else None)

    def _give_back(self, row: Row, fate: rules.Returned, **changes: Any) -> None:
        self._change(
            row,
            status=fate.status,
            process_after=row.process_after if fate.process_after is None else fate.process_after,
            processing_started_at=None,
            lease_until=None,
            **{"token": None, **changes},
        )

    # Commands

    def execute(self, command: Command[Any]) -> Any:
        match command:
            case Produce(queue, message):
                return self._produce(queue, (message,))[0]
            case ProduceMany(queue, messages):
                return self._produce(queue, messages)
            case Ack(queue, receipts, message_id):
                return tuple(self._ack(self._current(queue, receipt, message_id)) for receipt in receipts)
            case AckById(queue, message_id):
                return self._ack(self._in_process(queue, message_id))
            case Nack(queue, receipts, delay_ms, reason, message_id):
                return tuple(
                    self._nack(self._current(queue, receipt, message_id), delay_ms, reason)
                    for receipt in receipts
                )
            case NackById(queue, message_id):
                return self._nack(self._in_process(queue, message_id), None, None)
            case Extend(queue, receipts, lease_ms):
                return tuple(self._extend(self._current(queue, receipt), lease_ms) for receipt in receipts)
            case Release(queue, receipts, delay_ms):
                return tuple(self._release(self._current(queue, receipt), delay_ms) for receipt in receipts)
            case Sweep(kind):
                return self._sweep(kind)
            case Optimize() | Ping():
                return None
        raise TypeError(f"not a command of this step: {command!r}")

    def _produce(self, queue: str, messages: Sequence[NewMessage]) -> tuple[Produced, ...]:
        """Store all messages or none: what can be refused is refused before the first one is stored."""
        if queue not in self.state.queues and len(self.state.queues) >= limits.QUEUES_MAX:
            raise Overloaded(f"there are {limits.QUEUES_MAX} queues already")
        try:
            for message in messages:
                message.content.encode()
        except UnicodeEncodeError:
            raise InvalidContent from None
        return tuple(self._store(queue, message) for message in messages)

    def _store(self, queue: str, message: NewMessage) -> Produced:
        if message.deduplication_id is not None:
            first = self.state.first_sends.get((queue, message.deduplication_id))
            if first is not None and first.expires_at > self.now_ms:
                return Produced(first.id, first.seq, duplicate=True)
        now_ms = self.now_ms
        process_after = now_ms if message.process_after_ms is None else message.process_after_ms
        self.state.last_seq += 1
        row = Row(
            seq=self.state.last_seq,
            id=str(uuid6.uuid7()),
            queue=queue,
            content=message.content,
            status=rules.initial_status(process_after, now_ms),
            priority=message.priority,
            position=self.state.last_seq,
            received_at=now_ms,
            process_after=process_after,
            updated_at=now_ms,
            expires_after=rules.expires_after(process_after, self.settings.queue_ttl_ms),
        )
        if message.deduplication_id is not None:
            self.state.first_sends[queue, message.deduplication_id] = FirstSend(
                row.id, row.seq, now_ms + message.deduplication_window_ms
            )
        self._put(row)
        self._count(engine.PRODUCED, queue)
        return Produced(row.id, row.seq)

    def _current(self, queue: str, receipt: Receipt, message_id: str | None = None) -> Row | None:
        """The message this receipt is the current one of."""
        row = self.state.rows.get(receipt.seq)
        if row is None or row.queue != queue or row.token != receipt.token:
            return None
        return row if message_id in (None, row.id) else None

    def _in_process(self, queue: str, message_id: str) -> Row | None:
        for row in self.state.of_queue(queue):
            if row.id == message_id and row.status is Status.PROCESSING:
                return row
        return None

    def _ack(self, row: Row | None) -> bool:
        if row is None:
            return False
        del self.state.rows[row.seq]
        self._count(engine.ACKED, row.queue)
        return True

    def _nack(self, row: Row | None, delay_ms: int | None, reason: str | None) -> bool:
        if row is None:
            return False
        fate = rules.after_nack(row.attempts, row.max_attempts, delay_ms, self.now_ms, self.settings)
        self._give_back(row, fate, last_error=row.last_error if reason is None else reason)
        self._count(engine.NACKED, row.queue)
        return True

    def _extend(self, row: Row | None, lease_ms: int) -> int | None:
        if row is None:
            return None
        if lease_ms == 0:
            self._end_lease(row)
            return self.now_ms
        started_at = self.now_ms if row.processing_started_at is None else row.processing_started_at
        lease_until = self.now_ms + lease_ms
        self._change(row, status=Status.PROCESSING, lease_until=lease_until, processing_started_at=started_at)
        return lease_until

    def _release(self, row: Row | None, delay_ms: int) -> bool:
        if row is None:
            return False
        fate = rules.after_release(delay_ms, self.now_ms)
        self._give_back(row, fate, attempts=rules.uncounted(row.attempts))
        self._count(engine.RELEASED, row.queue)
        return True

    def _sweep(self, kind: SweepKind) -> Swept:
        match kind:
            case SweepKind.EXPIRED:
                self._forget_first_sends()
                return self._sweep_rows(self._expired(in_dlq=False), self._expire)
            case SweepKind.EXPIRED_DLQ:
                return self._sweep_rows(self._expired(in_dlq=True), self._expire)
            case SweepKind.FAILED:
                return self._sweep_rows(self._failed(in_dlq=False), self._bury_failed)
            case SweepKind.FAILED_DLQ:
                return self._sweep_rows(self._failed(in_dlq=True), self._bury_failed)
            case SweepKind.STALE:
                return self._sweep_rows(self._due(Status.PROCESSING), self._recover)

    def _sweep_rows(self, rows: list[Row], deal_with: Callable[[Row], None]) -> Swept:
        swept = rows[: limits.SWEEP_BATCH_MAX]
        for row in swept:
            deal_with(row)
        return Swept(len(swept), more=len(rows) > len(swept))

    def _expired(self, *, in_dlq: bool) -> list[Row]:
        return [
            row
            for row in self._due(Status.READY, Status.DELAYED)
            if row.expires_after <= self.now_ms and is_dead_letter_queue(row.queue) is in_dlq
        ]

    def _failed(self, *, in_dlq: bool) -> list[Row]:
        return [
            row
            for row in self.state.rows.values()
            if row.status is Status.FAILED and is_dead_letter_queue(row.queue) is in_dlq
        ]

    def _bury_failed(self, row: Row) -> None:
        self._bury(row, "failed", REASON_MAX_ATTEMPTS)

    def _forget_first_sends(self) -> None:
        self.state.first_sends = {
            key: first for key, first in self.state.first_sends.items() if first.expires_at > self.now_ms
        }

    # Claims

    def claim(self, queue: str, claims: Sequence[Claim]) -> list[tuple[Delivery, ...]]:
        """Deal the ready messages of one queue among all claims on it."""
        ready = self.state.claimable(queue)
        sizes = rules.share(len(ready), [claim.max_messages for claim in claims])
        return [
            tuple(self._deliver(row, claim) for row in part)
            for claim, part in zip(claims, rules.slices(ready, sizes), strict=True)
        ]

    def _deliver(self, row: Row, claim: Claim) -> Delivery:
        token = secrets.randbits(62)
        lease_until = self.now_ms + claim.lease_ms
        claimed = self._change(
            row,
            status=Status.PROCESSING,
            attempts=row.attempts + 1,
            processing_started_at=self.now_ms,
            lease_until=lease_until,
            token=token,
        )
        self._count(engine.CONSUMED, row.queue)
        return Delivery(
            id=row.id,
            content=row.content,
            receipt=str(Receipt(row.seq, token)),
            attempts=claimed.attempts,
            sequence=row.seq,
            received_at=row.received_at,
            lease_until=lease_until,
        )
