"""The settings of queues, and the rules that follow from them."""

from typing import Any

from forq_trio.model import limits
from forq_trio.model.queues.settings import QueueRules, QueueSettings, rules_of
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.parts.damaged import whole
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import read_settings
from forq_trio.storage.relational.statements import Query

Shipped = dict[str, QueueSettings | None]
"""The changed settings by queue; None for a queue that has none any more."""


class Settings(Part):
    """The settings of the queues that have any. Claims and sends read rules from here, never from the database."""

    shipped = Shipped

    def __init__(self, defaults: EngineSettings) -> None:
        self.defaults = defaults  # the server's own, for what a queue does not set
        self.committed: dict[str, QueueSettings] = {}  # by queue; replaced where it changes
        self._set_rules: dict[str, QueueRules] = {}  # of the queues in `committed`
        self._default_rules: dict[str, QueueRules] = {}  # of the others, RULES_CACHED_MAX at most
        self._changed: Shipped = {}  # what the batch set
        self._changed_rules: dict[str, QueueRules] = {}  # the rules of those queues

    def of(self, queue: str) -> QueueSettings:
        """The settings of a queue, as of the last command."""
        known = self._changed[queue] if queue in self._changed else self.committed.get(queue)
        return known or QueueSettings()

    def all(self) -> dict[str, QueueSettings]:
        """The settings of the queues that have any, as of the last command."""
        changed: Shipped = {**self.committed, **self._changed}
        return {queue: settings for queue, settings in changed.items() if settings is not None}

    def more_with(self, queue: str) -> int:
        """How many more queues would have settings if this one had some: 1, or 0 if it already has."""
        return int(queue not in self.committed and self._changed.get(queue) is None)

    def total(self) -> int:
        """How many queues have settings or had some before the batch."""
        new = sum(each is not None and queue not in self.committed for queue, each in self._changed.items())
        return len(self.committed) + new

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue, as of the last command."""
        changed = self._changed_rules and self._changed_rules.get(queue)
        known = changed or self._set_rules.get(queue) or self._default_rules.get(queue)
        return known or self.committed_rules(queue)

    def committed_rules(self, queue: str) -> QueueRules:
        """The rules of a queue, as of the last commit. Callable from any thread."""
        rules = self._set_rules.get(queue) or self._default_rules.get(queue)
        if rules is None:
            rules = rules_of(queue, None, self.defaults)
            if len(self._default_rules) >= limits.RULES_CACHED_MAX:
                self._default_rules.clear()
            self._default_rules[queue] = rules
        return rules

    def rules_with(self, queue: str, settings: QueueSettings) -> QueueRules:
        """The rules that a queue would have with these settings."""
        return rules_of(queue, settings, self.defaults)

    def set(self, queue: str, settings: QueueSettings) -> None:
        """Change the settings of a queue."""
        self._changed[queue] = None if settings == QueueSettings() else settings
        self._changed_rules[queue] = self.rules_with(queue, settings)

    @property
    def changed(self) -> bool:
        """Whether the batch set any."""
        return bool(self._changed)

    def load(self, query: Query, path: str) -> None:
        self._changed = {
            queue: whole(f"the settings of queue {queue}", read_settings, text, path)
            for queue, text in query("load_settings")
        }
        self.adopt()

    def copy(self) -> Any:
        return self._changed.copy(), self._changed_rules.copy()

    def restore(self, copied: Any) -> None:
        self._changed, self._changed_rules = copied

    def adopt(self) -> None:
        if not self._changed:
            return
        self.committed = self.all()
        for queue, settings in self._changed.items():
            if settings is None:
                self._set_rules.pop(queue, None)
            else:
                self._set_rules[queue] = self.rules_with(queue, settings)
        self.discard()

    def discard(self) -> None:
        if self._changed:
            self._changed, self._changed_rules = {}, {}

    def ship(self) -> Shipped | None:
        return self._changed or None

    def take_over(self, shipped: Shipped) -> None:
        self._changed = shipped
