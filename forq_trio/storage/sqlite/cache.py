"""What the engine keeps in memory beside its tables, as of the last commit.

All of it can be had again from the file, but for the rounds that grouped queues have reached: after a start those begin
with the first ready message (`rules.group_position`).
"""

from collections.abc import Mapping, Sequence

from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.messages import QueueCounts
from forq_trio.model.queue_settings import QueueRules, QueueSettings
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.rules import rules_of

Round = tuple[str, int]
"""Queue and priority."""
Group = tuple[str, str]
"""Queue and group."""


class Cache:
    """The engine's memory and its `Snapshot`. A batch changes nothing in here; its commit does.

    grouped: queues that got messages with a group. letting_go: queues whose held messages are all to become ready, and
    the last one that did. rounds: the highest position claimed of a grouped queue and priority. wake_next, free_next:
    queues and groups that the next batch has to look at, as if it had made something ready or freed a message there.
    set_aside: messages, by sequence, that could not be settled when they fell due, and when to try them again.
    """

    def __init__(self, defaults: EngineSettings) -> None:
        self.defaults = defaults
        self.last_seq = 0
        self.next_due_ms: int | None = None
        self.counts: dict[str, QueueCounts] = {}
        self.grouped: set[str] = set()
        self.letting_go: dict[str, int] = {}
        self.wake_next: set[str] = set()
        self.free_next: set[Group] = set()
        self.rounds: dict[Round, int] = {}
        self.set_aside: dict[int, int] = {}
        self.settings: dict[str, QueueSettings] = {}
        self.tokens: dict[str, AccessToken] = {}
        self._set_rules: dict[str, QueueRules] = {}
        self._default_rules: dict[str, QueueRules] = {}

    @property
    def unfinished(self) -> bool:
        """True if the next batch has something to do whatever it is asked."""
        return bool(self.wake_next or self.free_next or self.letting_go)

    def rules(self, queue: str) -> QueueRules:
        """What holds for a queue. May be asked from any thread: what is cached for good cannot become wrong."""
        rules = self._set_rules.get(queue) or self._default_rules.get(queue)
        if rules is None:
            rules = rules_of(queue, None, self.defaults)
            if len(self._default_rules) >= limits.RULES_CACHED_MAX:
                self._default_rules.clear()
            self._default_rules[queue] = rules
        return rules

    def change_settings(self, changes: Mapping[str, QueueSettings | None]) -> None:
        """Take over what is set for these queues from now on; None: nothing."""
        changed: dict[str, QueueSettings | None] = {**self.settings, **changes}
        self.settings = {queue: settings for queue, settings in changed.items() if settings is not None}
        for queue, settings in changes.items():
            if settings is None:
                self._set_rules.pop(queue, None)
            else:
                self._set_rules[queue] = rules_of(queue, settings, self.defaults)

    def change_tokens(self, changes: Mapping[str, AccessToken | None]) -> None:
        """Take over these tokens; None: it was revoked."""
        changed: dict[str, AccessToken | None] = {**self.tokens, **changes}
        self.tokens = {name: token for name, token in changed.items() if token is not None}

    def put_aside(self, sequences: Sequence[int], now_ms: int) -> None:
        """Leave these messages alone for a while; those whose time has come are forgotten."""
        self.set_aside = {seq: retry_at for seq, retry_at in self.set_aside.items() if retry_at > now_ms}
        self.set_aside.update(dict.fromkeys(sequences, now_ms + limits.SET_ASIDE_RETRY_MS))

    def reach(self, rounds: dict[Round, int]) -> None:
        """Take over the rounds that a batch reached."""
        if len(self.rounds) + len(rounds) > limits.ROUNDS_KEPT_MAX:
            self.rounds.clear()
        self.rounds.update(rounds)

    def forget_rounds(self, queue: str) -> None:
        for reached in [each for each in self.rounds if each[0] == queue]:
            del self.rounds[reached]
