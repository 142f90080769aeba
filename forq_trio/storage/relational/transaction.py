"""The running batch: its connection, its time, and the parts of the engine's memory.

The operations are functions over a Transaction. They run statements, read and change the parts (listed in
parts/parts.py), and note every change of a message with `transition`, from which counts, events, wake-ups, due times
and freed groups follow. A commit adopts the changes of a batch to the parts, a rollback discards them.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from forq_trio.model import limits
from forq_trio.model.commands import Command
from forq_trio.model.errors import ForqError, Overloaded
from forq_trio.model.message_batches.types import OWN_ATTRIBUTES
from forq_trio.model.queues.settings import QueueRules, QueueSettings
from forq_trio.storage.allowance import Allowances
from forq_trio.storage.bound_tables import check_all_unbound
from forq_trio.storage.engine import CONSUMED, EVENT_KINDS, PRODUCED, REQUEUED
from forq_trio.storage.relational.connection import Rows, WriteConnection
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.relational.parts.inserts import sent_place
from forq_trio.storage.relational.parts.parts import Parts
from forq_trio.storage.relational.row import SEQ, Row, clamped
from forq_trio.storage.rules import check_queues, check_share_of_queues, has_share_of_queues
from forq_trio.storage.transitions import (
    FAILED,
    HELD_BACK,
    PROCESSING,
    READY,
    TRANSITIONS,
    UPDATED,
    frees_group,
)

_COUNTED = frozenset(EVENT_KINDS)


class Transaction(Parts):
    """One object that lives as long as the parts; `begin` starts each batch."""

    connection: WriteConnection
    ids: MessageIds
    now_ms: int  # epoch ms, the same for the whole batch
    lease_mark: int = 0  # the token of each claim begins with it (storage/lease_marks.py); 0: there is none
    isolated: bool  # each command and each due message runs in a savepoint of its own (`attempt`)
    refused: Set[type[Command[Any]]]  # see Batch
    allowances: Allowances  # how much the steps of the batch may still do

    def begin(
        self,
        connection: WriteConnection,
        ids: MessageIds,
        now_ms: int,
        *,
        isolated: bool = False,
        shared: bool = False,
        refused: Set[type[Command[Any]]] = frozenset(),
    ) -> None:
        """Begin a batch, with nothing left of an earlier one. shared, refused: see Batch."""
        self.connection = connection
        self.ids = ids
        self.now_ms = self.set_aside.at_ms = now_ms
        self.isolated = isolated
        self.refused = refused
        self.allowances = Allowances(shared=shared)
        self._waits_before = 0
        ids.at(now_ms)

    # Statements

    def query(self, name: str, *bindings: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        if self.inserts.waiting:
            self.write_inserts()
        return self.connection.query(name, *bindings)

    def begin_step(self) -> None:
        """Begin a step, which may wait for the database WAITS_OF_A_STEP_MAX times."""
        self._waits_before = self.connection.waits

    @property
    def waited_out(self) -> bool:
        """Whether the step has waited as often as it may: the next batch does the rest, and others run in between."""
        return self.connection.waits - self._waits_before >= limits.WAITS_OF_A_STEP_MAX

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        """Run a named statement for each tuple of bindings, with one wait for all; returns the rows of each."""
        if not rows:
            return []
        if self.inserts.waiting:
            self.write_inserts()
        return self.connection.query_each(name, rows)

    def query_without_inserts(self, name: str, *bindings: Any) -> list[Any]:
        """`query` for messages that were claimed or read before, so that new messages need not be written first."""
        return self.connection.query(name, *bindings)

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a named statement once for each tuple of bindings."""
        if rows:
            if self.inserts.waiting:
                self.write_inserts()
            self.connection.run(name, rows)

    def query_but_set_aside(self, name: str, name_but: str, *bindings: Any, limit: int) -> list[Any]:
        """Return the rows of the statement `name`, without messages that are set aside.

        If any are, `name_but` runs instead, which takes their sequence numbers as the binding before `limit`.
        """
        return list(self.rows_but_set_aside(name, name_but, *bindings, limit=limit))

    def rows_but_set_aside(self, name: str, name_but: str, *bindings: Any, limit: int) -> Rows:
        """`query_but_set_aside` for rows that are read one by one."""
        aside = self.set_aside.sequences()
        if self.inserts.waiting:
            self.write_inserts()
        if aside:
            return self.connection.rows(name_but, *bindings, str(aside), limit)
        return self.connection.rows(name, *bindings, limit)

    @staticmethod
    def attributes_of_copy(attributes: Mapping[str, str] | None) -> dict[str, str] | None:
        """The attributes of an edited copy: it is no member of the batch of its original."""
        if attributes is None:
            return None
        return {name: text for name, text in attributes.items() if name not in OWN_ATTRIBUTES}

    def delete(self, seqs: list[int]) -> None:
        """Remove these messages."""
        if len(seqs) == 1:
            self.query_without_inserts("delete_message", seqs[0])
        elif seqs:
            self.query_without_inserts("delete_messages", str(seqs))

    def write_inserts(self) -> None:
        """Write the rows of new messages that are not written yet."""
        self.inserts.write(self.connection.run)

    def leave_inserts(self) -> None:
        """Leave the rows of new messages unwritten until something needs them: they may be claimed first."""
        if self.isolated:
            self.write_inserts()
        else:
            self.inserts.let_wait()

    def attempt(self, work: Callable[[], None]) -> Exception | None:
        """Run `work` in a savepoint. If it raises, everything it did is undone and the exception is returned.

        Errors of the database itself are raised, because the work did not cause them.
        """
        copies = self.copy()
        try:
            with self.connection.savepoint():
                work()
        except self.connection.storage_errors:
            raise
        except Exception as error:
            self.restore(copies)
            return error
        return None

    def copy(self) -> Any:
        """A copy of the state with which `restore` can undo later changes (but not statements)."""
        return [part.copy() for part in self._all]

    def restore(self, copied: Any) -> None:
        """Undo what was changed since this copy was made. A copy can be restored only once."""
        for part, each in zip(self._all, copied, strict=True):
            part.restore(each)

    # Queues

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue, as of the last command."""
        return self.settings.rules(queue)

    def admit(self, *queues: str) -> ForqError | None:
        """Why these queues cannot get messages: there would be too many queues, or one of them takes none."""
        return check_all_unbound(queues, self.settings.of) or self.counts.admit(*queues)

    def check_takes_messages(self, *queues: str | None) -> ForqError | None:
        """Why one of these queues takes no messages, apart from the number of queues; each None is skipped."""
        return check_all_unbound(queues, self.settings.of)

    def admit_settings(self, queue: str) -> Overloaded | None:
        """Overloaded if so many queues have settings that one more may not."""
        more = self.settings.more_with(queue)
        return check_queues(more, self.settings.total()) if more else None

    def is_known(self, queue: str) -> bool:
        """Whether a queue has or had messages, or has settings, as of the last command."""
        return self.counts.exists(queue) or self.settings.of(queue) != QueueSettings()

    def name(self, queue: str, made_by: str) -> ForqError | None:
        """Make a queue known that a key uses; returns the error if there are too many, in all or of this key."""
        if self.counts.exists(queue):
            return None
        refusal = self.admit(queue) or check_share_of_queues(made_by, self.counts.made_by(made_by))
        if refusal is None:
            if has_share_of_queues(made_by):
                self.counts.charge(queue, made_by)
            self.counts.make_known(queue)
        return refusal

    # Changes of messages

    def transition(
        self,
        change: str,
        queue: str,
        source: int | None,
        target: int | None,
        messages: Sequence[Any],
        *,
        size: int = 0,
        due_ms: int | None = None,
        to: str | None = None,
        leaves_group: bool = False,
        reason: str = "",
        nack_reason: str | None = None,
    ) -> None:
        """Note that `messages` of `queue` go from one status to another. Every change of a message is noted here.

        change: one of transitions.TRANSITIONS with `source` (None: not stored before) and `target` (None: gone).
        messages: see `EventLog.note`; each has `group_id` if the change may free its group's limit.
        size: the bytes of all of them together, if they are new, removed or moved. due_ms: their earliest due time.
        to: the queue they move to, None for the same. leaves_group: they have another group now, or none. reason: of
        the counted event. nack_reason: the reason that the consumer gave.
        """
        assert (change, source, target) in TRANSITIONS, (change, source, target)
        count = len(messages)
        self.figures.changes += count
        if source is not None:  # these may have been the last of their group, or the first that are ready
            known = self.lookups.forget_positions(queue)
            if to is not None:
                known |= self.lookups.forget_positions(to)
                self.connection.changed_in(to)
                self.figures.moved_in[to] = self.figures.moved_in.get(to, 0) + count
            if known:
                self.write_inserts()  # positions are read again: unwritten rows may be the last of groups
        if source != target or to is not None:
            self.counts.move(queue, source, to or queue, target, count, size)
        elsewhere = leaves_group or to is not None or change == UPDATED
        if frees_group(source, target, moved=elsewhere):
            self._free(queue, source, messages)
        if self.heads is not None:
            self._keep_head(change, queue, source, target, messages, to or queue)
        if target == READY:
            self.wakes.woken.add(to or queue)
            if source is not None or to is not None:
                self.scans.stir(to or queue)
        elif target == FAILED:
            self.leftovers.failed += [message.seq for message in messages]
        if due_ms is not None:
            self.due.note(due_ms)
        if (target is None or to is not None) and self.message_batches.totals.members:
            self.message_batches.note(change, reason, messages)
        if change in _COUNTED:
            self.figures.count(change, to or queue if change == REQUEUED else queue, reason, count)
        if self.events.enabled:
            self.events.note(self.now_ms, change, queue, messages, to, reason, nack_reason)

    def _keep_head(
        self,
        change: str,
        queue: str,
        source: int | None,
        target: int | None,
        messages: Sequence[Any],
        to: str,
    ) -> None:
        assert self.heads is not None
        if source == READY:
            rows = change in (CONSUMED, HELD_BACK)
            self.heads.leave(queue, [each[SEQ] if rows else each.seq for each in messages])
        if target == READY:
            new = change == PRODUCED
            places = [sent_place(each) if new else each.place for each in messages]
            self.heads.join(to, places)

    def _free(self, queue: str, source: int | None, messages: Sequence[Row]) -> None:
        """Note that the queue, and the groups of these messages, may be below their limits again."""
        rules = self.rules(queue)
        if rules.in_flight_max is not None and source == PROCESSING:
            self.wakes.woken.add(queue)
        if rules.limits_groups:
            self.freed.update((queue, message.group_id) for message in messages if message.group_id)

    # The end of the batch

    def unfinished(self) -> bool:
        """Whether the next batch has something to do at once."""
        return bool(self.wakes.next or self.freed or self.grouped.queues_unholding())

    def save(self) -> None:
        """Write the events of this batch, the changed counts of queues, and the last sequence number."""
        if self.inserts.waiting:
            self.write_inserts()
        self.events.write(self.run)
        counts, sequence = self.counts, self.sequence
        if not counts.changes and not counts.forgotten and not sequence.revised:
            return
        for queue in counts.forgotten:
            self.query("forget_counts", queue)
        if counts.forgotten or sequence.revised:
            self.query("save_last_sequence", sequence.last)
        rows = [
            (
                queue,
                now.ready,
                now.processing,
                now.failed,
                now.delayed,
                now.held,
                clamped(now.bytes),
                queue in self.grouped,
                self.grouped.unhold_cursor(queue),
                self.now_ms,
                sequence.last,
            )
            for queue, now in counts.sum_up().items()
        ]
        self.run("save_counts", rows)
        if counts.new_makers:
            self.run("save_maker", [(made_by, queue) for queue, made_by in counts.new_makers.items()])

    def adopt(self) -> None:
        """Adopt the changes of the batch: it was committed."""
        for part in self._all:
            part.adopt()

    def discard(self) -> None:
        """Discard the changes of the batch: it was rolled back."""
        for part in self._all:
            part.discard()
