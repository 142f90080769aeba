"""The engine's cache: counts, settings, rounds and small tables, in memory, as of the last commit.

A start reads it from the tables (load.py). What no table has begins anew: the rounds of grouped queues with the first
ready message (`rules.group_position`), scans and heads with the first entry of the index, and nothing is set aside.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.consumers import Consumer, ConsumerTotals
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log, LogName
from forq_trio.model.messages import QueueCounts
from forq_trio.model.publishing import Staging
from forq_trio.model.queue_settings import QueueRules, QueueSettings, rules_of
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.schedules import ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.heads import Head
from forq_trio.storage.relational.scans import Scanned

Round = tuple[str, int]
"""Queue and priority."""
Group = tuple[str, str]
"""Queue and group."""


DUE_FROM_START, DUE_NEVER = -(2**63), 2**63 - 1


class QueueHistory(NamedTuple):
    """number, total: messages of the queue that ended so far, and their bytes; kept: those that are still there."""

    number: int
    total: int
    kept: HistoryCounts


class Cache:
    """The engine's `Snapshot`. A running batch changes nothing in it; its commit does (`Transaction.adopt`).

    queue_names: those of `counts`, sorted; replaced where it changes. makers: of queues that an access token made, its
    name; queues_made: how many by token. grouped: queues that got messages with a group. unhold_cursors: queues whose
    held messages all become ready, and the sequence of the last one that did. rounds: the highest position claimed of a
    grouped queue and priority. wake_next: queues that the next batch counts as woken. freed: groups whose held messages
    may become ready, in this order. claim_first: the queue with which the next batch's claims begin, "" for the first
    by name. maker_turn: of whose schedules one ran last in turn, "" for the secret. history: by queue. tokens by name,
    sessions by digest; both are replaced where they change. set_aside: by sequence, messages that could not be settled
    or handed out, and when to try them again. scans: how far claims by attributes have looked. heads: of queues; None
    where the database forgets at once what is gone. due_from_ms: no message is due before, but those that are set
    aside. looked: by queue, until when leased messages are not moved into their pages, because somebody looked at some.
    """

    def __init__(self, defaults: EngineSettings) -> None:
        self.defaults = defaults
        self.last_seq = 0
        self.next_due_ms: int | None = None
        self.counts: dict[str, QueueCounts] = {}
        self.queue_names: list[str] = []
        self.makers: dict[str, str] = {}
        self.queues_made = Counter[str]()
        self.grouped: set[str] = set()
        self.unhold_cursors: dict[str, int] = {}
        self.wake_next: set[str] = set()
        self.has_buckets = False
        self.rates_full_at: dict[str, int] = {}
        self.claim_first = ""
        self.maker_turn = ""
        self.freed: dict[Group, None] = {}
        self.rounds: dict[Round, int] = {}
        self.set_aside: dict[int, int] = {}
        self.scans: Scanned = {}
        self.heads: dict[str, Head] | None = None
        self.due_from_ms = DUE_FROM_START
        self.looked: dict[str, int] = {}
        self.settings: dict[str, QueueSettings] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.sessions: dict[str, UiSession] = {}
        self.redrives: dict[str, RedriveTask] = {}
        self.staging = Staging()
        self.schedules = ScheduleTotals()
        self.history: dict[str, QueueHistory] = {}
        self.logs: dict[LogName, Log] = {"events": Log(defaults.events), "history": Log(defaults.history)}
        self.consumers: dict[str, Consumer] = {}
        self.consumer_totals = ConsumerTotals()
        self._set_rules: dict[str, QueueRules] = {}
        self._default_rules: dict[str, QueueRules] = {}

    @property
    def unfinished(self) -> bool:
        """True if the next batch has work even without commands."""
        return bool(self.wake_next or self.freed or self.unhold_cursors or self.staging.in_progress)

    @property
    def leased_bytes(self) -> int:
        return self.consumer_totals.leased_bytes

    def history_of(self, queue: str | None) -> HistoryCounts:
        if queue is None:
            messages = sum([each.kept.messages for each in list(self.history.values())])
            return HistoryCounts(messages, self.logs["history"].bytes)
        found = self.history.get(queue)
        return HistoryCounts() if found is None else found.kept

    def take_counts(self, counts: Mapping[str, QueueCounts]) -> None:
        """Store the counts of these queues."""
        new = [queue for queue in counts if queue not in self.counts]
        if new:
            # A list that is sorted but for its end is sorted again in one pass.
            self.queue_names = sorted(self.queue_names + new)
        self.counts.update(counts)

    def take_makers(self, makers: Mapping[str, str]) -> None:
        """Store which access tokens made these queues."""
        self.makers.update(makers)
        self.queues_made.update(makers.values())

    def forget_counts(self, queues: Set[str]) -> None:
        """Remove these queues."""
        for queue in queues:
            self.counts.pop(queue, None)
            if queue in self.makers:
                self.queues_made[self.makers.pop(queue)] -= 1
        self.queue_names = [queue for queue in self.queue_names if queue not in queues]

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue. Callable from any thread."""
        rules = self._set_rules.get(queue) or self._default_rules.get(queue)
        if rules is None:
            rules = rules_of(queue, None, self.defaults)
            if len(self._default_rules) >= limits.RULES_CACHED_MAX:
                self._default_rules.clear()
            self._default_rules[queue] = rules
        return rules

    def rate_full_at(self, queue: str) -> int:
        return self.rates_full_at.get(queue, 0) if self.rules(queue).queue_rate is not None else 0

    def change_settings(self, changes: Mapping[str, QueueSettings | None]) -> None:
        """Store the settings of these queues; None: a queue has none."""
        changed: dict[str, QueueSettings | None] = {**self.settings, **changes}
        self.settings = {queue: settings for queue, settings in changed.items() if settings is not None}
        for queue, settings in changes.items():
            if settings is None:
                self._set_rules.pop(queue, None)
            else:
                self._set_rules[queue] = rules_of(queue, settings, self.defaults)

    def put_aside(self, sequences: Sequence[int], now_ms: int) -> None:
        """Set these messages aside for SET_ASIDE_RETRY_MS; forget those whose retry is due."""
        self.set_aside = {seq: retry_at for seq, retry_at in self.set_aside.items() if retry_at > now_ms}
        self.set_aside.update(dict.fromkeys(sequences, now_ms + limits.SET_ASIDE_RETRY_MS))

    def look_at(self, queues: Mapping[str, int], now_ms: int) -> None:
        """Store until when leased messages of these queues are not moved."""
        self.looked = {queue: until for queue, until in self.looked.items() if until > now_ms}
        self.looked.update(queues)

    def reach(self, rounds: dict[Round, int]) -> None:
        """Store the rounds that a batch reached."""
        if len(self.rounds) + len(rounds) > limits.ROUNDS_CACHED_MAX:
            self.rounds.clear()
        self.rounds.update(rounds)

    def forget_rounds(self, queues: Set[str]) -> None:
        """Forget the rounds that these queues reached."""
        for reached in [each for each in self.rounds if each[0] in queues]:
            del self.rounds[reached]
