"""One batch of the reference engine: the state it works on, and the changes of messages.

Every change of a message goes through `transition`, which notes its consequences: the queue is woken, the group freed,
the event counted. The commands are functions over a `Transaction`, in modules of their own.
"""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import AckWithResult
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.types import Failure, Status
from forq_trio.model.queues.names import DLQ_SUFFIX, is_dead_letter_queue
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS
from forq_trio.model.queues.settings import QueueRules
from forq_trio.model.results.types import Ending
from forq_trio.model.schedules.types import SavedRun
from forq_trio.model.workers.withdrawn import Withdrawal
from forq_trio.storage import bound_tables, engine, rules
from forq_trio.storage.engine import Event
from forq_trio.storage.logs import DISCARDED_BY_CONSUMER, outcome_of
from forq_trio.storage.message_batches import State as MemberState
from forq_trio.storage.message_batches import state_after
from forq_trio.storage.rules import Returned
from forq_trio.storage.transitions import TRANSITIONS, UPDATED, frees_group
from oracle.lifecycle import log
from oracle.state import Row, State


@dataclass
class Transaction:
    """A batch that works on its own copy of the state. woken: queues that resumed, or in which a message became ready.

    newest_before, last_event_before: the last sequence number, and the last event, before this batch. failed: messages
    that failed in it, by sequence number. failed_queued: they are left to a sweep. freed: groups that may be
    below their limit again. unheld: queues whose held messages all become ready. limited: groups whose messages may be
    held because a token is missing. going_on: messages that are gone, behind which offers waited that are still to be
    stored. batch_notes: messages, and message batches, that ended or moved: sequence number, state as a member.
    batches_send: a message batch has something to send now.
    """

    state: State
    now_ms: int
    newest_before: int
    last_event_before: int
    failed: list[int] = field(default_factory=list)
    failed_queued: bool = False
    woken: set[str] = field(default_factory=set)
    durations: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    freed: set[tuple[str, str]] = field(default_factory=set)
    unheld: set[str] = field(default_factory=set)
    limited: set[tuple[str, str]] = field(default_factory=set)
    runs: list[SavedRun] = field(default_factory=list)
    going_on: list[Row] = field(default_factory=list)
    moved_in: Counter[str] = field(default_factory=Counter)
    withdrawn: list[Withdrawal] = field(default_factory=list)
    awaited_ends: Set[str] = frozenset()
    ended: dict[str, Ending] = field(default_factory=dict)
    batch_notes: list[tuple[int, MemberState]] = field(default_factory=list)
    batches_send: bool = False

    def savepoint(self) -> "Transaction":
        """A copy of the transaction, with which to continue if a command fails."""
        durations = {key: list(values) for key, values in self.durations.items()}
        return Transaction(
            self.state.copy(),
            self.now_ms,
            self.newest_before,
            self.last_event_before,
            self.failed.copy(),
            self.failed_queued,
            self.woken.copy(),
            durations,
            self.counted.copy(),
            self.freed.copy(),
            self.unheld.copy(),
            self.limited.copy(),
            self.runs.copy(),
            self.going_on.copy(),
            self.moved_in.copy(),
            self.withdrawn.copy(),
            self.awaited_ends,
            self.ended.copy(),
            self.batch_notes.copy(),
            self.batches_send,
        )

    def events(self) -> list[Event]:
        counted = sorted(self.counted.items())
        return [Event(kind, queue, count, reason) for (kind, queue, reason), count in counted]

    def next_due_ms(self, *, moves_staged: bool) -> int | None:
        if self.state.freed or self.state.wake:
            return self.now_ms
        due = [row.due_at for row in self.state.rows.values()] + [*self.state.wakes.values()]
        if any(stage.entry is not None for stage in self.state.stages.values()):
            due.append(self.now_ms if moves_staged else self.now_ms + limits.DUE_RETRY_MS)
        runs = [each.due_at for each in self.state.schedules.values() if each.due_at is not None]
        batches = [each.due_at for each in self.state.message_batches.values()]
        for times in (runs, batches):
            if times:
                retry_ms = self.now_ms + limits.DUE_RETRY_MS
                due.append(min(times) if moves_staged or min(times) > self.now_ms else retry_ms)
        return min([at for at in due if at is not None], default=None)

    def rules(self, queue: str) -> QueueRules:
        return self.state.rules(queue)

    def admit(self, *queues: str) -> ForqError | None:
        """The error if there would be too many queues, or if the messages of one of these are in a table."""
        return bound_tables.check_all_unbound(queues, self.state.settings.get) or rules.check_queues(
            len({*queues} - self.state.queues), len(self.state.queues)
        )

    def name(self, queue: str, made_by: str) -> ForqError | None:
        """Make a queue exist; returns the error if there are too many, in all or made by this key."""
        if queue in self.state.queues:
            return None
        own = [each for each, maker in self.state.makers.items() if maker == made_by]
        refusal = self.admit(queue) or rules.check_share_of_queues(made_by, len(own))
        if refusal is None:
            self.make_known(queue, made_by)
        return refusal

    def make_known(self, queue: str, made_by: str = "") -> None:
        """Make a queue exist. A dead-letter queue that no token named counts for the maker of its queue."""
        if queue in self.state.queues:
            return
        self.state.queues.add(queue)
        if not rules.has_share_of_queues(made_by) and is_dead_letter_queue(queue):
            made_by = self.state.makers.get(queue.removesuffix(DLQ_SUFFIX), "")
        if rules.has_share_of_queues(made_by):
            self.state.makers[queue] = made_by

    def check_admitted(self, *queues: str) -> None:
        if (refusal := self.admit(*queues)) is not None:
            raise refusal

    def dead_letter_target(self, row: Row) -> str:
        """The dead-letter queue of a message; its own one only if that exists or may be created."""
        may_be_made = row.dead_letter_queue is None or self.admit(row.dead_letter_queue) is None
        own = row.dead_letter_queue if may_be_made or row.dead_letter_queue == NO_DEAD_LETTERS else None
        return rules.dead_letter_target(row.queue, own, self.rules(row.queue))

    def measure(self, kind: str, queue: str, ms: int) -> None:
        self.durations.setdefault((kind, queue), []).append(ms)

    def transition(
        self,
        change: str,
        old: Row | None,
        new: Row | None,
        reason: str = "",
        nack_reason: str | None = None,
        given: AckWithResult | None = None,
    ) -> None:
        """Store a message in its new state. Every change of a message is made here.

        change: one of transitions.TRANSITIONS. old: None for a new message. new: None for one that is removed. reason:
        of the counted event. nack_reason: the reason that the consumer gave. given: the ack, if it has a result.
        """
        source = None if old is None else int(old.status)
        target = None if new is None else int(new.status)
        assert (change, source, target) in TRANSITIONS, (change, source, target)
        if old is not None:
            elsewhere = new is not None and (new.queue, new.group) != (old.queue, old.group)
            self._free_group(old, target, moved=elsewhere or change == UPDATED)
        if new is None:
            assert old is not None
            if self.state.defaults.history or (given is not None and self.state.history.takes_result):
                self.state.history.add(old, *outcome_of(change, reason), self.now_ms, given)
            if old.id in self.awaited_ends or given is not None or change != engine.ACKED:
                self.ended[old.id] = outcome_of(change, reason)[0]
            del self.state.rows[old.seq]
        else:
            self.state.rows[new.seq] = new
            self.make_known(new.queue)
            if change == engine.MOVED_TO_DLQ:
                self.ended[new.id] = "dead"
            if new.status is Status.READY:
                self.woken.add(new.queue)
            elif new.status is Status.FAILED:
                self.failed.append(new.seq)
        moves = change in (engine.MOVED_TO_DLQ, engine.REQUEUED)
        if old is not None and (new is None or moves):
            self.batch_notes.append((old.seq, state_after(change, reason)))
        if change in engine.EVENT_KINDS:
            named = new if change == engine.REQUEUED or old is None else old
            assert named is not None
            self.counted[change, named.queue, reason] += 1
        if old is not None and new is not None and old.queue != new.queue:
            self.moved_in[new.queue] += 1
        if self.state.defaults.events:
            log(self.state, self.now_ms, change, old, new, reason, nack_reason)

    def _free_group(self, old: Row, target: int | None, *, moved: bool) -> None:
        """Note the group of a message that is no longer processing, or no longer ready; its queue, too."""
        ends_lease = old.status is Status.PROCESSING and (moved or target != Status.PROCESSING)
        if ends_lease and self.rules(old.queue).in_flight_max is not None:
            self.woken.add(old.queue)
        has_limit = self.rules(old.queue).limits_groups
        if old.group and has_limit and frees_group(int(old.status), target, moved=moved):
            self.freed.add((old.queue, old.group))

    def change(self, change: str, row: Row, nack_reason: str | None = None, **changes: Any) -> Row:
        """Store a message with these members changed."""
        changed = msgspec.structs.replace(row, updated_at=self.now_ms, **changes)
        self.transition(change, row, changed, nack_reason=nack_reason)
        return changed

    # Changes that several commands, and due times, make

    def return_message(self, change: str, row: Row, returned: Returned, **changes: Any) -> None:
        """Take a message back from its consumer."""
        process_after = row.process_after if returned.process_after is None else returned.process_after
        self.change(
            change,
            row,
            status=returned.status,
            process_after=process_after,
            processing_started_at=None,
            lease_until=None,
            **{"token": None, **changes},
        )

    def end_lease(self, change: str, row: Row, **changes: Any) -> None:
        """End a lease. The receipt stays current until the next claim, unless the message failed."""
        returned = rules.after_lease_end(row.attempts, row.max_attempts, self.now_ms, self.rules(row.queue))
        token = row.token if returned.status is Status.READY else None
        self.return_message(change, row, returned, token=token, **changes)

    def failures_with(self, row: Row, reason: str | None) -> tuple[Failure, ...]:
        return rules.failed_again(row.failures, Failure(row.attempts, self.now_ms, reason))

    def dead_letter_or_delete(self, row: Row, event_reason: str, failure_reason: str) -> None:
        """Move a message that failed, expired or is evicted to its dead-letter queue, or delete it if it has none."""
        target = self.dead_letter_target(row)
        if target == NO_DEAD_LETTERS:
            self.clean_up(row, event_reason)
        else:
            self.dead_letter(row, target, event_reason, failure_reason)

    def clean_up(self, row: Row, event_reason: str, *, with_waiting: bool = False) -> None:
        """Remove a message for good. with_waiting: also the offer that waits behind it."""
        if row.status is Status.PROCESSING and event_reason != DISCARDED_BY_CONSUMER:
            position = self.state.withdrawn.next_position(self.now_ms)
            how: Any = outcome_of(engine.CLEANED_UP, event_reason)[0]
            self.withdrawn.append(Withdrawal(position, row.queue, row.id, how))
        self.transition(engine.CLEANED_UP, row, None, event_reason)
        if not with_waiting:
            self.let_go_on(row)

    def let_go_on(self, row: Row) -> None:
        """Note that a message leaves its queue, so that the offer behind it has to be stored."""
        if row.waiting is not None:
            self.going_on.append(row)

    def dead_letter(self, row: Row, target: str, event_reason: str, failure_reason: str) -> None:
        """Move a message to a dead-letter queue. Its own one is used only once, but "" (delete the message) stays."""
        moved = self._moved(
            row,
            target,
            ttl_ms=self.rules(target).ttl_ms,
            dead_letter_queue=NO_DEAD_LETTERS if row.dead_letter_queue == NO_DEAD_LETTERS else None,
            dead_lettered_at=self.now_ms,
            failure_reason=failure_reason,
            source_queue=row.queue,
            source_attempts=row.attempts,
            key=None if row.key is None else msgspec.structs.replace(row.key, pending=False, waiting=None),
        )
        self.transition(engine.MOVED_TO_DLQ, row, moved, event_reason)
        self.let_go_on(row)

    def requeue(self, row: Row, target: str) -> None:
        """Redrive a dead letter to `target`, with its key if that is free there."""
        key = row.key
        if key is not None:
            free = self.state.of_key(target, key.kind, key.key) is None
            key = msgspec.structs.replace(key, pending=True, waiting=None) if free else None
        moved = self._moved(
            row,
            target,
            ttl_ms=self.rules(target).ttl_ms if row.ttl_ms is None else row.ttl_ms,
            dead_lettered_at=None,
            failure_reason=None,
            source_queue=None,
            source_attempts=None,
            key=key,
        )
        self.transition(engine.REQUEUED, row, moved)
        self.let_go_on(row)

    def _moved(self, row: Row, target: str, *, ttl_ms: int, **changes: Any) -> Row:
        """The message as it is ready in another queue, with its attempts reset."""
        moved = msgspec.structs.replace(
            row,
            queue=target,
            status=Status.READY,
            position=rules.moved_position(row.seq, row.position, self.rules(target).order, self.now_ms),
            attempts=0,
            process_after=self.now_ms,
            expires_after=rules.expires_after(self.now_ms, ttl_ms),
            updated_at=self.now_ms,
            processing_started_at=None,
            lease_until=None,
            token=None,
        )
        return msgspec.structs.replace(moved, **changes)
