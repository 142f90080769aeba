"""The engine's memory as callers see it: as of the last commit."""

from collections.abc import Mapping, Sequence

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken
from forq_trio.model.consumers.types import PipelineConsumer
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.logs.types import Log, LogName
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.publishing.types import Staging
from forq_trio.model.queues.settings import QueueRules, QueueSettings
from forq_trio.model.schedules.types import ScheduleTotals
from forq_trio.model.workers.withdrawn import Withdrawals
from forq_trio.storage.relational.parts.parts import Parts


class Cache:
    """The engine's `Snapshot`: reads the committed state of each part, which a running batch does not change."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts  # replaced when all tables are read again

    @property
    def counts(self) -> Mapping[str, QueueCounts]:
        return self.parts.counts.committed

    @property
    def queue_names(self) -> Sequence[str]:
        return self.parts.counts.queue_names

    @property
    def queues_made(self) -> Mapping[str, int]:
        return self.parts.counts.queues_made

    @property
    def settings(self) -> Mapping[str, QueueSettings]:
        return self.parts.settings.committed

    @property
    def tokens(self) -> Mapping[str, AccessToken]:
        return self.parts.tokens.committed

    @property
    def sessions(self) -> Mapping[str, UiSession]:
        return self.parts.sessions.committed

    @property
    def redrives(self) -> Mapping[str, RedriveTask]:
        return self.parts.redrives.committed

    @property
    def staging(self) -> Staging:
        return self.parts.staging.committed

    @property
    def schedules(self) -> ScheduleTotals:
        return self.parts.schedules.committed

    @property
    def logs(self) -> Mapping[LogName, Log]:
        return {"events": self.parts.events.committed, "history": self.parts.history.committed_log}

    @property
    def consumers(self) -> Mapping[str, PipelineConsumer]:
        return self.parts.consumers.committed

    @property
    def withdrawn(self) -> Withdrawals:
        return self.parts.withdrawn.committed

    @property
    def leased_bytes(self) -> int:
        return self.parts.consumers.committed_totals.leased_bytes

    def rate_full_at(self, queue: str) -> int:
        return self.parts.rates.committed_full_at(queue)

    def history_of(self, queue: str | None) -> HistoryCounts:
        return self.parts.history.committed_of(queue)

    def rules(self, queue: str) -> QueueRules:
        return self.parts.settings.committed_rules(queue)
