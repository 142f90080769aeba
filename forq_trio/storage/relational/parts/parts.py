"""All parts of an engine's memory, in the order in which they are loaded and adopted."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.parts.counts import Counts
from forq_trio.storage.relational.parts.due import Due
from forq_trio.storage.relational.parts.endings import Endings
from forq_trio.storage.relational.parts.events import EventLog
from forq_trio.storage.relational.parts.figures import Figures
from forq_trio.storage.relational.parts.groups import FreedGroups, Grouped, Rounds
from forq_trio.storage.relational.parts.heads import Heads
from forq_trio.storage.relational.parts.history import HistoryLog
from forq_trio.storage.relational.parts.inserts import Inserts
from forq_trio.storage.relational.parts.leased_pages import LeasedPages
from forq_trio.storage.relational.parts.leftovers import Leftovers
from forq_trio.storage.relational.parts.lookups import Lookups
from forq_trio.storage.relational.parts.message_batches import MessageBatchTable
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.parts.queue_settings import Settings
from forq_trio.storage.relational.parts.rates import RateBuckets
from forq_trio.storage.relational.parts.scans import Scans
from forq_trio.storage.relational.parts.schedules import ScheduleTable
from forq_trio.storage.relational.parts.sequence import SequenceNumbers
from forq_trio.storage.relational.parts.set_aside import SetAsideMessages
from forq_trio.storage.relational.parts.small_tables import (
    ConsumerTable,
    RedriveTable,
    SessionTable,
    TokenTable,
)
from forq_trio.storage.relational.parts.staging import StagingTotals
from forq_trio.storage.relational.parts.wakes import QueueWakes
from forq_trio.storage.relational.parts.withdrawn import WithdrawalLog
from forq_trio.storage.relational.statements import Query


@dataclass(eq=False)
class Parts:
    """A record of all parts, each described in its own file. A new part is a new file and a line here."""

    sequence: SequenceNumbers
    grouped: Grouped  # these three before `counts`: they adopt what a forgotten queue had
    freed: FreedGroups
    rounds: Rounds
    counts: Counts
    settings: Settings
    rates: RateBuckets
    schedules: ScheduleTable
    message_batches: MessageBatchTable
    set_aside: SetAsideMessages  # before `due`: its batch tried what was due, if due messages were settled
    due: Due
    wakes: QueueWakes
    scans: Scans
    heads: Heads | None  # None if the database removes entries from its indexes at once
    tokens: TokenTable
    sessions: SessionTable
    redrives: RedriveTable
    consumers: ConsumerTable
    leased_pages: LeasedPages
    staging: StagingTotals
    history: HistoryLog
    events: EventLog
    withdrawn: WithdrawalLog
    inserts: Inserts
    leftovers: Leftovers
    lookups: Lookups
    figures: Figures
    endings: Endings

    @classmethod
    def new(cls, defaults: EngineSettings, *, heads: bool) -> Self:
        """Make empty parts. heads: whether the database keeps removed entries in its indexes for a while."""
        counts, settings, schedules = Counts(), Settings(defaults), ScheduleTable()
        message_batches = MessageBatchTable()
        due = Due([schedules, message_batches])
        grouped = Grouped(counts)
        return cls(
            sequence=SequenceNumbers(),
            grouped=grouped,
            freed=FreedGroups(counts, grouped),
            rounds=Rounds(counts),
            counts=counts,
            settings=settings,
            rates=RateBuckets(settings),
            schedules=schedules,
            message_batches=message_batches,
            set_aside=SetAsideMessages(due),
            due=due,
            wakes=QueueWakes(),
            scans=Scans(),
            heads=Heads() if heads else None,
            tokens=TokenTable(),
            sessions=SessionTable(),
            redrives=RedriveTable(),
            consumers=ConsumerTable(),
            leased_pages=LeasedPages(),
            staging=StagingTotals(),
            history=HistoryLog(enabled=defaults.history),
            events=EventLog(enabled=defaults.events),
            withdrawn=WithdrawalLog(),
            inserts=Inserts(),
            leftovers=Leftovers(),
            lookups=Lookups(),
            figures=Figures(),
            endings=Endings(),
        )

    def __post_init__(self) -> None:
        found = {field.name: getattr(self, field.name) for field in fields(Parts)}
        self._by_name: dict[str, Part] = {name: part for name, part in found.items() if part is not None}
        self._all = tuple(self._by_name.values())

    def by_name(self) -> Mapping[str, Part]:
        """Each part with its name, in their order."""
        return self._by_name

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """The type of what each part ships, by its name; None for one that ships nothing."""
        parts = Parts.new(EngineSettings(), heads=True)
        return {name: part.shipped for name, part in parts.by_name().items()}

    def load(self, query: Query, path: str) -> None:
        """Read all parts from the tables. Costs a row per queue, not per message, and a few steps per group.

        Raises StorageOpenError, which names the database by `path`, for a row that cannot be read.
        """
        self.counts.load(query, path)  # first, because other parts need it
        for part in self._all:
            if part is not self.counts:
                part.load(query, path)

    @property
    def has_more(self) -> bool:
        """True if the next batch has work even without commands, as of the last commit."""
        return bool(
            self.wakes.committed_next
            or self.freed
            or self.grouped.queues_unholding()
            or self.staging.committed.in_progress
        )
