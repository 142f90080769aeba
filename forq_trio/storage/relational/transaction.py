"""The state of one batch while it runs; thrown away whole when the batch is rolled back.

The operations are functions over a Transaction: they run statements, and note every change of a message by
`transition`, from which counts, events, wake-ups, due times and freed groups follow. Counts, sequence numbers, ids and
settings are in memory, in the cache (cache.py). A Transaction has what this batch changes of them and reads the rest
from the cache; `adopt` moves its changes there after a commit. Its counts are in counts.py, its savepoints in
isolation.py, what it has looked up in lookups.py.
"""

from collections.abc import Sequence, Set
from itertools import chain, islice
from math import inf
from typing import Any

from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.consumers import Consumer
from forq_trio.model.errors import ForqError, Overloaded
from forq_trio.model.queue_settings import QueueRules, QueueSettings, rules_of
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.schedules import SavedRun
from forq_trio.model.sessions import UiSession
from forq_trio.storage.allowance import Allowances
from forq_trio.storage.engine import CONSUMED, EVENT_KINDS, OFFERED, PRODUCED, REQUEUED, Event
from forq_trio.storage.relational.cache import DUE_FROM_START, DUE_NEVER, Cache, Group, Round
from forq_trio.storage.relational.changes import Changes
from forq_trio.storage.relational.connection import Connection, Rows
from forq_trio.storage.relational.counts import Counts
from forq_trio.storage.relational.heads import Heads, sent_places
from forq_trio.storage.relational.history import HistoryChanges
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.relational.isolation import Isolation
from forq_trio.storage.relational.lifecycle import LOGGED_QUEUE, Noted, note, write
from forq_trio.storage.relational.lookups import Lookups
from forq_trio.storage.relational.row import SEQ, Row, Waiting, clamped, write_settings
from forq_trio.storage.relational.scans import Scans
from forq_trio.storage.rules import check_all_unbound, check_queues
from forq_trio.storage.transitions import FAILED, HELD_BACK, PROCESSING, READY, TRANSITIONS, frees_group

_COUNTED = frozenset(EVENT_KINDS)


class Transaction(Isolation, Counts, Lookups):
    """What one batch has changed so far.

    newest_before, last_seq: the last sequence given out before this batch, and by now. woken: queues in which messages
    became ready, or that were resumed; woken_elsewhere: by other processes. due_ms: the earliest due time of the
    messages that this batch changed. due_settled: due messages were settled, so the next due time has to be read
    from the index. next_due_ms: that time, once the batch has run. failed: messages that failed, by sequence;
    failed_queued: some of them are left for a sweep. freed: groups that may be below their limit again. wake_next:
    queues that the next batch counts as woken. has_buckets: tokens were taken, now or before. limited: groups whose
    messages may be held for want of a token. rates_full_at: by queue, see Snapshot. allowances: what its steps may
    still do. changed: how many changes of messages it made. waiting: offers that waited behind messages that are
    gone, by queue, and kind and key. revised: numbers were given out that are no message's. claim_first: the queue
    with which claims begin (storage/engine.py's rule 12); claim_first_next: in the next batch, "" for the first one
    by name. rounds: those that grouped queues reached. schedules: how many there are, and when the next run was due;
    schedules_changed: it may be another time now. maker_turn: see `Cache`. runs: what became of those of this
    batch. looked: see `Cache`. last_moved: sequence and id of the last message of a queue that is in a page only,
    once that was read. durations: see BatchResult. event_log: the events that are kept, without those of this batch
    until its end. tokens, sessions, redrives, consumers: all, as of the last command.
    """

    def __init__(
        self,
        connection: Connection,
        cache: Cache,
        now_ms: int,
        ids: MessageIds,
        *,
        isolated: bool = False,
        shared: bool = False,
        put_back_refused: bool = False,
    ) -> None:
        Isolation.__init__(self, connection, cache, now_ms, isolated=isolated)
        Counts.__init__(self, cache)
        Lookups.__init__(self)
        self.ids = ids
        self.newest_before = cache.last_seq
        self.last_seq = cache.last_seq
        self.woken: set[str] = set(cache.wake_next)
        self.woken_elsewhere: Set[str] = frozenset()
        self.wake_next: set[str] = set()
        self.has_buckets = cache.has_buckets
        self.limited: set[Group] = set()
        self.rates_full_at: dict[str, int] = {}
        self.due_ms: int | None = None
        self.due_settled = False
        self.next_due_ms: int | None = None
        self.failed: list[int] = []
        self.failed_queued = False
        self.put_back_refused = put_back_refused
        self.allowances = Allowances(shared=shared)
        self.changed = 0
        self.waiting: list[tuple[str, tuple[str, str], Waiting]] = []
        self.revised = False
        self.claim_first = cache.claim_first
        self.claim_first_next = ""
        self.scans = Scans(cache.scans)
        self.heads = None if cache.heads is None else Heads(cache.heads)
        self.due_from_ms = cache.due_from_ms
        self.looked: dict[str, int] = {}
        self.last_moved: dict[str, tuple[int, str]] = {}
        self.freed: set[Group] = set()
        self._groups_taken: dict[Group, None] = {}
        self._groups_left: dict[Group, None] = {}
        self.rounds: dict[Round, int] = {}
        self.durations: dict[tuple[str, str], list[int]] = {}
        self.tokens: Changes[AccessToken] = Changes(cache.tokens, {})
        self.sessions: Changes[UiSession] = Changes(cache.sessions, {})
        self.redrives: Changes[RedriveTask] = Changes(cache.redrives, {})
        self.staging = cache.staging
        self.schedules = cache.schedules
        self.schedules_changed = False
        self.maker_turn = cache.maker_turn
        self.runs: list[SavedRun] = []
        self.history = HistoryChanges(cache)
        self.consumers: Changes[Consumer] = Changes(cache.consumers, {})
        self.consumer_totals = cache.consumer_totals
        self.event_log = cache.logs["events"]
        self._lifecycle: Noted | None = [] if cache.defaults.events else None
        self._grouped: set[str] = set()
        self._unhold_cursors: dict[str, int | None] = {}
        self._settings: dict[str, QueueSettings | None] = {}
        self._rules: dict[str, QueueRules] = {}
        self._events: dict[tuple[str, str, str], int] = {}
        ids.at(now_ms)

    # Statements

    def query_but_set_aside(self, name: str, name_but: str, *bindings: Any, limit: int) -> list[Any]:
        """Return the rows of the statement `name`, without messages that are set aside.

        If there are any, it runs `name_but` instead, which takes their sequences as the binding before `limit`.
        """
        return list(self.rows_but_set_aside(name, name_but, *bindings, limit=limit))

    def rows_but_set_aside(self, name: str, name_but: str, *bindings: Any, limit: int) -> Rows:
        """`query_but_set_aside`, for rows that are read one by one."""
        aside = self.sequences_set_aside()
        if self.inserts.waiting:
            self.write_inserts()
        if aside:
            return self.connection.rows(name_but, *bindings, str(aside), limit)
        return self.connection.rows(name, *bindings, limit)

    def next_revision(self) -> int:
        """A new revision of a key."""
        self.revised = True
        self.last_seq += 1
        return self.last_seq

    def delete(self, seqs: list[int]) -> None:
        """Remove these messages."""
        if len(seqs) == 1:
            self.query_written("delete_message", seqs[0])
        elif seqs:
            self.query_written("delete_messages", str(seqs))

    # Queues

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue, as of the last command."""
        return (self._rules.get(queue) if self._rules else None) or self._cache.rules(queue)

    def admit_settings(self, queue: str) -> Overloaded | None:
        """Overloaded if too many queues have settings for one more."""
        stored = self._cache.settings
        if queue in stored or self._settings.get(queue) is not None:
            return None
        new = sum(settings is not None and name not in stored for name, settings in self._settings.items())
        return check_queues(1, len(stored) + new)

    def admit(self, *queues: str) -> ForqError | None:
        """Why there may be no messages in these queues: they would be too many, or one of them is bound to a table."""
        return check_all_unbound(queues, self.settings) or super().admit(*queues)

    def all_settings(self) -> dict[str, QueueSettings]:
        """The settings of the queues that have any, as of the last command."""
        changed: dict[str, QueueSettings | None] = {**self._cache.settings, **self._settings}
        return {queue: settings for queue, settings in changed.items() if settings is not None}

    def settings(self, queue: str) -> QueueSettings:
        """The settings of a queue, as of the last command."""
        known = self._settings[queue] if queue in self._settings else self._cache.settings.get(queue)
        return known or QueueSettings()

    def set(self, queue: str, settings: QueueSettings) -> None:
        """Set the settings of a queue, in the table too. A queue without settings has no row."""
        if settings == QueueSettings():
            self._settings[queue] = None
            self.query("forget_settings", queue)
        else:
            self._settings[queue] = settings
            self.query("save_settings", queue, write_settings(settings), self.now_ms)
        self._rules[queue] = self.rules_with(queue, settings)
        self.scans.forget(queue)

    def rules_with(self, queue: str, settings: QueueSettings) -> QueueRules:
        """The rules that a queue would have with these settings."""
        return rules_of(queue, settings, self._cache.defaults)

    def grouped(self, queue: str) -> bool:
        """True if messages with a group were sent to `queue` while it was first in, first out."""
        return queue in self._grouped or (queue in self._cache.grouped and queue not in self._forgotten)

    def make_grouped(self, queue: str) -> None:
        self._grouped.add(queue)
        self._changes_of(queue)

    def unhold_cursor(self, queue: str) -> int | None:
        """The sequence up to which all held messages became ready; None where they stay held."""
        return (
            self._unhold_cursors[queue]
            if queue in self._unhold_cursors
            else self._cache.unhold_cursors.get(queue)
        )

    def queues_unholding(self) -> list[str]:
        """The queues whose held messages all become ready, by name."""
        if not self._cache.unhold_cursors and not self._unhold_cursors:
            return []
        return sorted(
            q
            for q in {*self._cache.unhold_cursors, *self._unhold_cursors}
            if self.unhold_cursor(q) is not None
        )

    def move_unhold_cursor(self, queue: str, last: int | None) -> None:
        """Note the sequence up to which held messages became ready; 0 to begin, None to end."""
        self._unhold_cursors[queue] = last
        self._changes_of(queue)

    def take_groups(self, most: int) -> list[Group]:
        """The groups whose held messages may become ready: those that earlier batches left, then those freed so far."""
        left = self._cache.freed
        if not left and not self.freed:
            return []
        freed = [group for group in sorted(self.freed) if group not in left]
        self.freed.clear()
        groups = list(islice(chain(left, freed), most))
        self._groups_taken = dict.fromkeys(groups[: len(left)])
        self._groups_left = dict.fromkeys(freed[max(most - len(left), 0) :])
        return groups

    def put_back(self, group: Group) -> None:
        """Leave a group to the next batch."""
        self._groups_left[group] = None

    def is_left(self, group: Group) -> bool:
        """True if the held messages of a freed group are left to the next batch."""
        left = self._cache.freed
        if group in self._groups_left:
            return True
        return len(left) > len(self._groups_taken) and group in left and group not in self._groups_taken

    def forget(self, queue: str) -> None:
        """Forget an empty queue."""
        self._forget_counts(queue)
        if self.heads is not None:
            self.heads.forget(queue)
        self._grouped.discard(queue)
        self._unhold_cursors[queue] = None
        self.set(queue, QueueSettings())

    def round_of(self, queue: str, priority: int) -> int | None:
        """The round that a grouped queue has reached in this priority, None if nothing was claimed since the start."""
        reached = self.rounds.get((queue, priority))
        return self._cache.rounds.get((queue, priority)) if reached is None else reached

    def reach_round(self, queue: str, priority: int, position: int) -> None:
        """Note that a message of a grouped queue, at this position, is claimed."""
        reached = self.round_of(queue, priority)
        if reached is None or position > reached:
            self.rounds[queue, priority] = position

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
        messages: see `lifecycle.note`; each has `group_id` where it may free its group's limit.
        size: the bytes of all of them, where they come, go or move. due_ms: the earliest due time of them. to: the
        queue they move to, None for the same. leaves_group: they have another group now, or none. reason: for the event
        that is counted. nack_reason: the consumer's own reason.
        """
        assert (change, source, target) in TRANSITIONS, (change, source, target)
        count = len(messages)
        self.changed += count
        if source is not None:  # these may have been the last of their group, or the first that are ready
            self.forget_positions(queue)
            if to is not None:
                self.forget_positions(to)
                self.connection.moved_to(to)
        if source != target or to is not None:
            self._count(queue, source, to or queue, target, count, size)
        if frees_group(source, target, moved=leaves_group or to is not None):
            self._free(queue, source, messages)
        if self.heads is not None:
            self._keep_head(self.heads, change, queue, source, target, messages, to or queue)
        if target == READY:
            self.woken.add(to or queue)
            if source is not None or to is not None:
                self.scans.stir(to or queue)
        elif target == FAILED:
            self.failed += [message.seq for message in messages]
        # Compared also the first time: of a damaged row it may be text, which must fail here, where that is isolated.
        if due_ms is not None and due_ms < (inf if self.due_ms is None else self.due_ms):
            self.due_ms = due_ms
        if change in _COUNTED:
            key = (change, to or queue if change == REQUEUED else queue, reason)
            self._events[key] = self._events.get(key, 0) + count
        if self._lifecycle is not None:
            note(self._lifecycle, self.now_ms, change, queue, messages, to, reason, nack_reason)

    def _keep_head(
        self,
        heads: Heads,
        change: str,
        queue: str,
        source: int | None,
        target: int | None,
        messages: Sequence[Any],
        to: str,
    ) -> None:
        if source == READY:
            rows = change in (CONSUMED, HELD_BACK)
            heads.leave(queue, [each[SEQ] if rows else each.seq for each in messages])
        if target == READY:
            heads.join(to, sent_places(messages) if change == PRODUCED else [each.place for each in messages])

    def due_from(self) -> int:
        """No message is due before, except those that are set aside. Only where heads are used."""
        if self.heads is None:
            return DUE_FROM_START
        return self.due_from_ms if self.due_ms is None else min(self.due_from_ms, self.due_ms)

    def found_due(self, first: Sequence[int]) -> None:
        """At the end of the batch this is the first due time of all messages; none: no message is ever due."""
        self.due_from_ms = first[0] if first else DUE_NEVER
        self.due_ms = None

    def may_be_due(self, due_ms: int) -> None:
        """Note when a message is due that the table has again."""
        self.due_ms = due_ms if self.due_ms is None else min(due_ms, self.due_ms)

    def looked_at(self, queue: str) -> bool:
        """True while leased messages of a queue stay in the table, because somebody looked at some."""
        return queue in self.looked or self._cache.looked.get(queue, 0) > self.now_ms

    def look_at(self, queue: str) -> None:
        """Somebody looks at leased messages of a queue."""
        self.looked[queue] = self.now_ms + limits.CONSUMER_LOOKED_MS

    def note_offer(self, queue: str, outcome: str) -> None:
        """Count an offer."""
        key = (OFFERED, queue, outcome)
        self._events[key] = self._events.get(key, 0) + 1

    def _free(self, queue: str, source: int | None, messages: Sequence[Row]) -> None:
        """The queue, and the groups of these messages, may be below their limits again."""
        rules = self.rules(queue)
        if rules.in_flight_max is not None and source == PROCESSING:
            self.woken.add(queue)
        if rules.group_in_flight_max is not None or rules.group_rate is not None:
            self.freed.update((queue, message.group_id) for message in messages if message.group_id)

    # What follows

    def unfinished(self) -> bool:
        """True if the next batch has something to do at once."""
        groups = self.freed or self._groups_left or len(self._cache.freed) > len(self._groups_taken)
        return bool(self.wake_next or groups or self.queues_unholding())

    def measured(self, kind: str, queue: str) -> list[int]:
        """The list of durations of a kind and queue, to append to."""
        key = (kind, queue)
        durations = self.durations.get(key)
        if durations is None:
            durations = self.durations[key] = []
        return durations

    def events(self) -> list[Event]:
        return [Event(kind, queue, n, reason) for (kind, queue, reason), n in sorted(self._events.items())]

    def logged(self) -> Set[str]:
        return {event[LOGGED_QUEUE] for event in self._lifecycle} if self._lifecycle else frozenset()

    # The end of the batch

    def save(self) -> None:
        """Write the events of this batch, and the changed counts of queues with the last sequence number."""
        if self.inserts.waiting:
            self.write_inserts()
        if self._lifecycle:
            self.event_log = write(self.run, self._lifecycle, self.event_log)
        if not self._changes and not self._forgotten and not self.revised:
            return
        for queue in self._forgotten:
            self.query("forget_counts", queue)
        if self._forgotten or self.revised:
            self.query("save_last_sequence", self.last_seq)
        self._counts = {queue: self._with_changes(queue, each) for queue, each in self._changes.items()}
        rows = [
            (
                queue,
                now.ready,
                now.processing,
                now.failed,
                now.delayed,
                now.held,
                clamped(now.bytes),
                self.grouped(queue),
                self.unhold_cursor(queue),
                self.now_ms,
                self.last_seq,
            )
            for queue, now in self._counts.items()
        ]
        self.run("save_counts", rows)
        if self._makers:
            self.run("save_maker", [(made_by, queue) for queue, made_by in self._makers.items()])

    def adopt(self) -> None:
        """Move the changes of this batch into the cache: it was committed."""
        cache = self._cache
        self.history.adopt()
        cache.last_seq = self.last_seq
        cache.staging = self.staging
        cache.schedules = self.schedules
        cache.maker_turn = self.maker_turn
        cache.consumer_totals = self.consumer_totals
        cache.logs["events"] = self.event_log
        cache.next_due_ms = self.next_due_ms
        cache.due_from_ms = self.due_from()
        for queue in self._forgotten:
            cache.grouped.discard(queue)
            cache.unhold_cursors.pop(queue, None)
        if self._forgotten:
            cache.forget_counts(self._forgotten)
            cache.forget_rounds(self._forgotten)
        cache.take_counts(self._counts)
        cache.take_makers(self._makers)
        cache.grouped |= self._grouped
        for queue, last in self._unhold_cursors.items():
            if last is None:
                cache.unhold_cursors.pop(queue, None)
            else:
                cache.unhold_cursors[queue] = last
        cache.wake_next = self.wake_next
        self.scans.adopt()
        if self.looked:
            cache.look_at(self.looked, self.now_ms)
        if self.heads is not None:
            self.heads.adopt()
        cache.has_buckets = self.has_buckets
        cache.rates_full_at.update(self.rates_full_at)
        cache.claim_first = self.claim_first_next
        for group in self._groups_taken:
            cache.freed.pop(group, None)
        if self._groups_left or self.freed:
            cache.freed |= self._groups_left | dict.fromkeys(sorted(self.freed))
        if self.rounds:
            cache.reach(self.rounds)
        if self._settings:
            cache.change_settings(self._settings)
        if self.set_aside or (cache.set_aside and self.due_settled):
            cache.put_aside([message.sequence for message in self.set_aside], self.now_ms)
        if self.tokens.changed:
            cache.tokens = self.tokens.merged()
        if self.sessions.changed:
            cache.sessions = self.sessions.merged()
        if self.redrives.changed:
            cache.redrives = self.redrives.merged()
        if self.consumers.changed:
            cache.consumers = self.consumers.merged()
