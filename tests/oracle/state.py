"""The state of the reference engine: immutable rows in plain dicts, and queries over them.

Every query reads all rows, on purpose: there is no index that could be wrong.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import takewhile
from math import ceil
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken
from forq_trio.model.commands import AckWithResult
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.dead_letters.searches import PREVIEW_ELLIPSIS, MessageRow
from forq_trio.model.keys.types import KeyInfo, Mode, Offering, OnceMore
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.logs.history import FinishedMessage, HistoryCounts, Outcome
from forq_trio.model.logs.types import Log, LogName
from forq_trio.model.messages.types import STATUS_NAMES, Failure, MessageInfo, QueueCounts, Status
from forq_trio.model.publishing.types import PublishedVersion, Staging
from forq_trio.model.queues.settings import QueueRules, QueueSettings, rules_of
from forq_trio.model.schedules.types import SavedRun, ScheduleTotals
from forq_trio.model.values import SeenT, seen
from forq_trio.model.workers.withdrawn import Withdrawals
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.message_batches import State as MemberState
from forq_trio.storage.message_batches import StoredMessageBatch
from forq_trio.storage.rules import NO_GROUP, message_bytes
from forq_trio.storage.schedules import StoredSchedule
from oracle.leases import StoredConsumer
from oracle.stages import StoredStage, staging_of


class Bucket(NamedTuple):
    """A bucket. rate: the count and period with which it fills. full_at: when it is full again (epoch ms)."""

    rate: tuple[int, int]
    full_at: Fraction


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """An offer that waits behind the message in process."""

    offering: Offering
    due: int
    revision: int
    offers: int
    first_offer_at: int
    offered_at: int
    max_wait_until: int | None

    @property
    def bytes(self) -> int:
        return message_bytes(self.offering.content, self.offering.attributes)

    def told(self) -> OnceMore:
        offering = self.offering
        return OnceMore(
            content=offering.content,
            attributes=offering.attributes or {},
            process_after=self.due,
            revision=self.revision,
            offers=self.offers,
            offered_at=self.offered_at,
        )


class Keyed(msgspec.Struct, frozen=True, gc=False):
    """The key of a message. pending: no other message may have it; False for a dead letter.

    due: the due time that was offered, even if a nack has changed it since.
    """

    key: str
    kind: str
    due: int
    revision: int
    mode: Mode
    offers: int
    first_offer_at: int
    last_offer_at: int
    max_wait_until: int | None = None
    waiting: Waiting | None = None
    pending: bool = True

    def told(self) -> KeyInfo:
        return seen(KeyInfo, self)


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored message. token: of the current receipt, None if no receipt is current.

    group: NO_GROUP for a message without a group that is served like one. ttl_ms: its own, None for the queue's.
    """

    seq: int
    id: str
    queue: str
    content: str
    status: Status
    priority: int
    position: int
    received_at: int
    process_after: int
    updated_at: int
    expires_after: int
    attempts: int = 0
    max_attempts: int | None = None
    ttl_ms: int | None = None
    attributes: dict[str, str] | None = None
    group: str | None = None
    dead_letter_queue: str | None = None
    default_max_receives: int | None = None
    first_received_at: int | None = None
    processing_started_at: int | None = None
    lease_until: int | None = None
    token: int | None = None
    failure_reason: str | None = None
    source_queue: str | None = None
    source_attempts: int | None = None
    dead_lettered_at: int | None = None
    last_error: str | None = None
    failures: tuple[Failure, ...] = ()
    key: Keyed | None = None

    @property
    def due_at(self) -> int | None:
        """When the message is due (epoch ms); None (never) for a failed one.

        A delayed message may expire before its delay ends: a back-off does not prolong its life.
        """
        match self.status:
            case Status.READY | Status.HELD:
                return self.expires_after
            case Status.PROCESSING:
                return self.lease_until
            case Status.DELAYED:
                return min(self.process_after, self.expires_after)
            case Status.FAILED:
                return None

    @property
    def bytes(self) -> int:
        """The bytes that the queue counts, including those of an offer that waits behind the message."""
        return self.own_bytes + (0 if self.waiting is None else self.waiting.bytes)

    @property
    def own_bytes(self) -> int:
        return message_bytes(self.content, self.attributes)

    @property
    def waiting(self) -> Waiting | None:
        return None if self.key is None else self.key.waiting

    @property
    def pending_key(self) -> tuple[str, str] | None:
        """Kind and key, while no other message may have them; else None."""
        return None if self.key is None or not self.key.pending else (self.key.kind, self.key.key)

    @property
    def shown_group(self) -> str | None:
        """The group as its sender gave it."""
        return None if self.group == NO_GROUP else self.group

    def listed(self, text: str | None) -> MessageRow:
        """The message as lists show it. text: the text that was searched for in the content, None for none."""
        return MessageRow.of(self.info(), _preview_of(self.content, text))

    def info(self) -> MessageInfo:
        keyed = None if self.key is None else self.key.told()
        return self.seen_as(MessageInfo, status=STATUS_NAMES[self.status], keyed=keyed)

    def seen_as(self, kind: type[SeenT], /, **others: Any) -> SeenT:
        """The message as callers see it. others: members of `kind` that a row does not have, or has in another form."""
        named = {"sequence": self.seq, "attributes": self.attributes or {}, "group": self.shown_group}
        if "bytes" in kind.__struct_fields__:
            named["bytes"] = self.own_bytes
        return seen(kind, self, **named, **others)


def _preview_of(content: str, text: str | None) -> str:
    match_at = content.find(text) if text else 0
    if match_at < limits.PREVIEW_MATCH_LATE:
        return content[: limits.PREVIEW_LENGTH_MAX]
    start = match_at - limits.PREVIEW_LEAD
    return PREVIEW_ELLIPSIS + content[start : start + limits.PREVIEW_LENGTH_MAX - 1]


class FirstSend(NamedTuple):
    """The message of a deduplication id, until the window ends at `expires_at` (epoch ms)."""

    id: str
    seq: int
    expires_at: int


class StoredEvent(NamedTuple):
    """A lifecycle event. total: the bytes of all earlier events, since the first."""

    event: MessageEvent
    total: int


@dataclass
class FinishedLog:
    """Finished messages, by id."""

    messages: dict[int, FinishedMessage] = field(default_factory=dict)
    gone: int = 0  # the last id that retention removed
    last: int = 0  # the highest that was given

    def copy(self) -> Self:
        return type(self)(self.messages.copy(), self.gone, self.last)

    @property
    def results(self) -> int:
        """How many messages there are for their results alone, while the history is off."""
        others = [each.history_id for each in self.messages.values() if each.kept_until is None]
        return self.last - max([self.gone, *others])

    @property
    def takes_result(self) -> bool:
        """Whether a further result has a place while the history is off; the oldest may be removed for it."""
        if self.results < limits.RESULTS_STORED_MAX or not self.messages:
            return True
        return next(iter(self.messages.values())).kept_until is not None

    @property
    def results_beyond(self) -> list[FinishedMessage]:
        """Those of the oldest messages that are too many results, while the history is off."""
        if self.results <= limits.RESULTS_STORED_MAX:
            return []
        last = self.last - limits.RESULTS_STORED_MAX
        return list(
            takewhile(
                lambda each: each.history_id <= last and each.kept_until is not None, self.messages.values()
            )
        )

    def add(
        self, row: Row, outcome: Outcome, reason: str | None, now_ms: int, given: AckWithResult | None = None
    ) -> None:
        """Add a message that is removed for good. given: the ack that has a result, if it had one."""
        self.last += 1
        finished = row.seen_as(
            FinishedMessage,
            history_id=self.last,
            outcome=outcome,
            reason=reason,
            finished_at=now_ms,
            key=None if row.key is None else row.key.key,
            kind=None if row.key is None else row.key.kind,
            result=None if given is None else given.result,
            kept_until=None if given is None else now_ms + given.keep_ms,
        )
        if given is not None:
            finished = replace(finished, bytes=finished.bytes + len(given.result.encode()))
        self.messages[self.last] = finished


@dataclass
class State:
    """Everything that is stored, and the notes for the next batch."""

    defaults: EngineSettings = field(default_factory=EngineSettings)
    rows: dict[int, Row] = field(default_factory=dict)  # by sequence
    last_seq: int = 0
    first_sends: dict[tuple[str, str], FirstSend] = field(default_factory=dict)
    history: FinishedLog = field(default_factory=FinishedLog)
    events: list[StoredEvent] = field(default_factory=list)  # those that were not removed yet
    events_end: int = 0  # the bytes of all events that there ever were

    queues: set[str] = field(default_factory=set)  # every queue ever used, even if it is empty by now
    makers: dict[str, str] = field(default_factory=dict)  # the names of the tokens that made queues
    settings: dict[str, QueueSettings] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    sessions: dict[str, UiSession] = field(default_factory=dict)
    redrives: dict[str, RedriveTask] = field(default_factory=dict)

    # By number; stages_begun is the last one. last_entry: the last entry number that a stage got.
    stages: dict[int, StoredStage] = field(default_factory=dict)
    stages_begun: int = 0
    last_entry: int = 0
    apps: dict[int, PublishedVersion] = field(default_factory=dict)  # by number, the latest last

    schedules: dict[str, StoredSchedule] = field(default_factory=dict)  # by name
    schedule_runs: dict[str, tuple[SavedRun, ...]] = field(default_factory=dict)  # by name, the latest last
    withdrawn: Withdrawals = field(default_factory=Withdrawals)
    outboxes: dict[str, tuple[int, str]] = field(default_factory=dict)  # position, and the key that made it

    message_batches: dict[str, StoredMessageBatch] = field(default_factory=dict)  # by id
    batch_members: dict[int, tuple[int, MemberState]] = field(default_factory=dict)
    """The number of the batch, and the state, by the sequence of a message."""

    consumers: dict[str, StoredConsumer] = field(default_factory=dict)
    forgotten_generation: int = 0  # the highest generation of forgotten consumers
    # Their highest numbers (leased, acknowledged) by key, the latest last; then the highest number that was dropped.
    forgotten_numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    forgotten_number: int = 0

    grouped: set[str] = field(default_factory=set)  # queues to which messages with a group were sent
    rounds: dict[tuple[str, int], int] = field(
        default_factory=dict
    )  # the highest position claimed, by priority
    # Queues and their groups whose held messages may become ready in the next batch.
    freed: set[tuple[str, str]] = field(default_factory=set)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)

    wakes: dict[tuple[str, str], int] = field(default_factory=dict)
    wake: set[str] = field(default_factory=set)  # queues that count as woken in the next batch

    def copy(self) -> Self:
        """A copy of the state. Containers are copied; their items are immutable."""
        members = {each.name: getattr(self, each.name) for each in fields(self)}
        copies = {name: member.copy() for name, member in members.items() if hasattr(member, "copy")}
        return type(self)(**{**members, **copies})

    @property
    def event_log(self) -> Log:
        if not self.events:
            return Log(self.defaults.events)
        first, last = self.events[0], self.events[-1]
        return Log(self.defaults.events, first.event.id, last.event.id, first.total, self.events_end)

    @property
    def history_log(self) -> Log:
        size = sum(message.bytes for message in self.history.messages.values())
        return Log(self.defaults.history, self.history.gone + 1, self.history.last, 0, size)

    def rules(self, queue: str) -> QueueRules:
        return rules_of(queue, self.settings.get(queue), self.defaults)

    def of_queue(self, queue: str, *statuses: Status) -> list[Row]:
        """The messages of a queue, by sequence number. statuses: only these; all if none is given."""
        wanted = statuses or tuple(Status)
        rows = [row for row in self.rows.values() if row.queue == queue and row.status in wanted]
        return sorted(rows, key=lambda row: row.seq)

    def of_key(self, queue: str, kind: str, key: str) -> Row | None:
        """The pending message of a key."""
        found = [row for row in self.of_queue(queue) if row.pending_key == (kind, key)]
        assert len(found) < 2, (queue, kind, key)
        return found[0] if found else None

    def in_claim_order(self, queue: str, status: Status) -> list[Row]:
        return sorted(self.of_queue(queue, status), key=lambda row: (-row.priority, row.position, row.seq))

    def claimable(self, queue: str) -> list[Row]:
        """The ready messages in claim order."""
        return self.in_claim_order(queue, Status.READY)

    def in_process(self, queue: str, group: str) -> int:
        """How many messages of a group are processing."""
        return sum(row.group == group for row in self.of_queue(queue, Status.PROCESSING))

    def counts(self, queue: str) -> QueueCounts:
        rows = self.of_queue(queue)
        by_status = Counter(row.status for row in rows)
        return QueueCounts(
            ready=by_status[Status.READY],
            processing=by_status[Status.PROCESSING],
            failed=by_status[Status.FAILED],
            delayed=by_status[Status.DELAYED],
            held=by_status[Status.HELD],
            bytes=sum(row.bytes for row in rows),
        )


def schedule_totals(schedules: Collection[StoredSchedule]) -> ScheduleTotals:
    return ScheduleTotals(
        len(schedules),
        Counter(each.made_by for each in schedules if each.made_by is not None),
        min((each.due_at for each in schedules if each.due_at is not None), default=None),
    )


class Committed:
    """The `Snapshot` of a committed state, which no longer changes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.settings = state.settings
        self.tokens = state.tokens
        self.sessions = state.sessions
        self.redrives = state.redrives
        self.withdrawn = state.withdrawn
        self.consumers = {key: each.told() for key, each in state.consumers.items()}
        self.logs: dict[LogName, Log] = {"events": state.event_log, "history": state.history_log}

    def history_of(self, queue: str | None) -> HistoryCounts:
        kept = [
            message.bytes
            for message in self._state.history.messages.values()
            if queue in (None, message.queue)
        ]
        return HistoryCounts(len(kept), sum(kept))

    @property
    def counts(self) -> dict[str, QueueCounts]:
        return {queue: self._state.counts(queue) for queue in self._state.queues}

    @property
    def queues_made(self) -> Counter[str]:
        return Counter(self._state.makers.values())

    @property
    def queue_names(self) -> list[str]:
        return sorted(self._state.queues)

    @property
    def leased_bytes(self) -> int:
        return sum([each.leased_bytes for each in self.consumers.values()])

    @property
    def staging(self) -> Staging:
        state = self._state
        return staging_of(state.stages, state.last_entry, state.apps.values())

    @property
    def schedules(self) -> ScheduleTotals:
        return schedule_totals(self._state.schedules.values())

    def rate_full_at(self, queue: str) -> int:
        rate, bucket = self._state.rules(queue).queue_rate, self._state.buckets.get((queue, ""))
        if rate is None or bucket is None or bucket.rate != (rate.count, rate.period_ms):
            return 0
        return ceil(bucket.full_at)

    def rules(self, queue: str) -> QueueRules:
        return self._state.rules(queue)
