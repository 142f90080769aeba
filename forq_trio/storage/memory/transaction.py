"""One batch of the reference engine: the state it works on, and the few ways in which messages change.

Everything goes through `put` and `remove`, so that what follows from a change (who is woken, whose group has room) is
noted in one place. The commands are functions over a `Transaction`, in modules of their own.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from forq_trio.model.messages import Failure, Status
from forq_trio.model.queue_settings import NO_DEAD_LETTERS, QueueRules
from forq_trio.storage import engine, rules
from forq_trio.storage.engine import Event
from forq_trio.storage.memory.state import Row, State
from forq_trio.storage.rules import Returned


@dataclass
class Transaction:
    """One batch at work on a state that it owns. woken: queues in which a message became ready, or that resumed."""

    state: State
    now_ms: int
    failed_queued: bool = False
    woken: set[str] = field(default_factory=set)
    durations: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def savepoint(self) -> "Transaction":
        """What it is now, to take its place should a command fail."""
        durations = {key: list(values) for key, values in self.durations.items()}
        return Transaction(
            self.state.copy(),
            self.now_ms,
            self.failed_queued,
            self.woken.copy(),
            durations,
            self.counted.copy(),
        )

    def events(self) -> list[Event]:
        counted = sorted(self.counted.items())
        return [Event(kind, queue, count, reason) for (kind, queue, reason), count in counted]

    def next_due_ms(self) -> int | None:
        if self.state.letting_go or self.state.freed or self.state.wake:
            return self.now_ms
        due = (row.due_at for row in self.state.rows.values())
        return min((at for at in due if at is not None), default=None)

    def rules(self, queue: str) -> QueueRules:
        return self.state.rules(queue)

    def count(self, kind: str, queue: str, reason: str = "") -> None:
        self.counted[kind, queue, reason] += 1

    def measure(self, kind: str, queue: str, ms: int) -> None:
        self.durations.setdefault((kind, queue), []).append(ms)

    def put(self, row: Row) -> None:
        """Store a row, new or in the place of the one it was."""
        self._leave(self.state.rows.get(row.seq), row)
        self.state.rows[row.seq] = row
        self.state.queues.add(row.queue)
        if row.status is Status.READY:
            self.woken.add(row.queue)
        elif row.status is Status.FAILED:
            self.failed_queued = True

    def change(self, row: Row, **changes: Any) -> Row:
        changed = msgspec.structs.replace(row, updated_at=self.now_ms, **changes)
        self.put(changed)
        return changed

    def remove(self, row: Row) -> None:
        self._leave(row, None)
        del self.state.rows[row.seq]

    def _leave(self, old: Row | None, new: Row | None) -> None:
        """Note the group of a message that is in process, or ready, no more. A claim itself gives nobody room."""
        if old is None or not old.group or old.status not in (Status.READY, Status.PROCESSING):
            return
        kept = (old.status, Status.PROCESSING, Status.HELD)
        stays = new is not None and new.queue == old.queue and new.status in kept
        if not stays and self.rules(old.queue).group_in_flight_max is not None:
            self.state.freed.add((old.queue, old.group))

    # What several commands, and time, do to a message

    def give_back(self, row: Row, fate: Returned, **changes: Any) -> None:
        """It comes back from a consumer."""
        self.change(
            row,
            status=fate.status,
            process_after=row.process_after if fate.process_after is None else fate.process_after,
            processing_started_at=None,
            lease_until=None,
            **{"token": None, **changes},
        )

    def end_lease(self, row: Row, **changes: Any) -> None:
        """Its lease ends: the receipt stays good until the next claim, unless the message failed."""
        fate = rules.after_lease_end(row.attempts, row.max_attempts, self.now_ms, self.rules(row.queue))
        token = row.token if fate.status is Status.READY else None
        self.give_back(row, fate, token=token, **changes)

    def failures_with(self, row: Row, reason: str | None) -> tuple[Failure, ...]:
        return rules.failed_again(row.failures, Failure(row.attempts, self.now_ms, reason))

    def bury(self, row: Row, event_reason: str, failure_reason: str) -> None:
        """It failed, expired or makes room: to the dead-letter queue that holds for it, or away."""
        target = rules.dead_letter_target(row.queue, row.dead_letter_queue, self.rules(row.queue))
        if target == NO_DEAD_LETTERS:
            self.clean_up(row, event_reason)
        else:
            self.dead_letter(row, target, event_reason, failure_reason)

    def clean_up(self, row: Row, event_reason: str) -> None:
        self.remove(row)
        self.count(engine.CLEANED_UP, row.queue, event_reason)

    def dead_letter(self, row: Row, target: str, event_reason: str, failure_reason: str) -> None:
        """Move it to a dead-letter queue. A target of its own is used once: nothing is sent round."""
        self.count(engine.MOVED_TO_DLQ, row.queue, event_reason)
        self._move(
            row,
            target,
            ttl_ms=self.rules(target).ttl_ms,
            dead_letter_queue=NO_DEAD_LETTERS if row.dead_letter_queue == NO_DEAD_LETTERS else None,
            dead_lettered_at=self.now_ms,
            failure_reason=failure_reason,
            source_queue=row.queue,
            source_attempts=row.attempts,
        )

    def requeue(self, row: Row, target: str) -> None:
        """Move a dead letter back among the living, as an administrator wishes."""
        self.count(engine.REQUEUED, target)
        self._move(
            row,
            target,
            ttl_ms=self.rules(target).ttl_ms if row.ttl_ms is None else row.ttl_ms,
            dead_lettered_at=None,
            failure_reason=None,
            source_queue=None,
            source_attempts=None,
        )

    def _move(self, row: Row, target: str, *, ttl_ms: int, **changes: Any) -> None:
        """Make it ready in another queue, as if it had never been tried."""
        changed = msgspec.structs.replace(
            row,
            queue=target,
            status=Status.READY,
            position=rules.moved_position(row.seq, row.position, self.rules(target).order),
            attempts=0,
            process_after=self.now_ms,
            expires_after=rules.expires_after(self.now_ms, ttl_ms),
            updated_at=self.now_ms,
            processing_started_at=None,
            lease_until=None,
            token=None,
        )
        self.put(msgspec.structs.replace(changed, **changes))
