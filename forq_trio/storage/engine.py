"""The interface of all storage engines: plain synchronous functions that wait for nothing but I/O.

Each rule is written down beside the code that follows it. It holds for every engine, and the conformance suite checks
it on each. Paths are below storage/, those of operations/ below storage/relational/:

    one transaction for a batch, what a failure leaves     `Engine.execute_batch` and `Engine.commit`, below
    the order within a batch                               relational/run_batch.py
    how much a batch does before the next one continues    allowance.py
    changes of a message, each noted once                  transitions.py
    lifecycle events                                       relational/parts/events.py
    time: due messages, failed ones, damaged ones          operations/due.py
    sends, the bounds of a queue                           operations/send.py, operations/eviction.py
    the order in which messages are claimed                operations/claim.py
    receipts, acks, nacks, discards                        operations/settle.py
    results, and who waits for the end of a message        operations/results.py, relational/parts/endings.py
    limits of a group, held messages                       operations/group_limit.py, operations/unhold.py
    pause, limits in process, rates                        operations/rate_limit.py
    how many queues there may be                           relational/parts/counts.py
    keys: offers, and what waits behind one in process     operations/offers.py, operations/waiting.py
    runs of schedules                                      operations/schedules.py
    stages and publications                                operations/publishing.py
    consumers of pipelines                                 consumers.py
    outboxes                                               operations/outboxes.py
    the history                                            relational/parts/history.py
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Claim, Command
from forq_trio.model.consumers.types import PipelineConsumer
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.engine_facts import EngineFacts as EngineFacts
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.logs.types import Log, LogName
from forq_trio.model.messages.types import Delivery, QueueCounts
from forq_trio.model.publishing.types import Staging
from forq_trio.model.queues.setting_values import Defaults
from forq_trio.model.queues.settings import QueueRules, QueueSettings
from forq_trio.model.results.types import Ending
from forq_trio.model.schedules.types import ScheduleTotals
from forq_trio.model.server.processes import HeardProcess, ProcessReport
from forq_trio.model.workers.withdrawn import Withdrawals
from forq_trio.storage.reader import Reader
from forq_trio.storage.write_ahead_log import WriteAheadLog


class EngineSettings(Defaults, frozen=True, gc=False):
    """The server-wide defaults of rules."""

    history: bool = False  # store finished messages
    events: bool = False  # lifecycle events
    in_process: bool = False  # its consumers are inside of this process, so their leases end with it


class Receiver(NamedTuple):
    """A parked receiver: its claim, and the id by which `BatchResult.served` names it."""

    id: int
    claim: Claim


class Batch(Struct, frozen=True, gc=False):
    """The commands of one transaction, and the receivers that it may serve."""

    commands: Sequence[Command[Any]]
    now_ms: int
    # the parked receivers by queue, first come first, at most RECEIVERS_OFFERED_MAX of each; the engine
    # serves only those of queues in which a message became ready
    receivers: Mapping[str, Sequence[Receiver]] = {}
    # whether the batch also stores messages that no command sends (of stages, of schedules, of applications);
    # False while sends are refused or callers go first
    moves_staged: bool = True
    shared: bool = False  # other calls are waiting, so long steps are shortened
    # the kinds of commands that the disk is too full for; a command that would first have to run one of them fails
    # with StorageFull
    refused: Set[type[Command[Any]]] = frozenset()
    # the queues with parked receivers in which another process made messages ready
    notified: Set[str] = frozenset()
    # the ids of messages for whose end somebody waits here: of these, acks without a result are told, too
    awaited_ends: Set[str] = frozenset()


class Event(Struct, frozen=True, gc=False):
    """`count` messages of `queue` changed."""

    kind: str  # one of EVENT_KINDS
    queue: str
    count: int
    reason: str = ""  # "" for none


PRODUCED = "produced"
OFFERED = "offered"  # reason: created | updated | ignored
CONSUMED = "consumed"
ACKED = "acked"
NACKED = "nacked"
RELEASED = "released"
STALE_RECOVERED = "stale_recovered"
REQUEUED = "requeued"  # queue: the one it goes to
MOVED_TO_DLQ = "moved_to_dlq"  # reason: failed | expired | overflow
CLEANED_UP = (
    "cleaned_up"  # reason: failed | expired | overflow | dlq_full | deleted_by_user | cancelled | consumer
)
EVENT_KINDS = (
    PRODUCED,
    OFFERED,
    CONSUMED,
    ACKED,
    NACKED,
    RELEASED,
    STALE_RECOVERED,
    REQUEUED,
    MOVED_TO_DLQ,
    CLEANED_UP,
)


class Deferred(Struct, frozen=True, gc=False):
    """The outcome of a command that has to run again in the next batch, because an allowance of this one was used up.

    Either it did not run, or it is a claim that got nothing, or a ForgetQueue that goes on. done: the outcomes of its
    first parts, for a command that has parts (`Traits.parts`); only the remaining ones run again.
    """

    done: tuple[Any, ...] = ()


DEFERRED: Final = Deferred()


class DamagedMessage(NamedTuple):
    """A damaged message that could not be settled or delivered: it stays unchanged until it is tried again."""

    queue: str
    sequence: int
    error: str


WAIT = "wait"
END_TO_END = "end_to_end"
HANDLING = "handling"
DURATION_KINDS = (WAIT, END_TO_END, HANDLING)
"""The durations of messages: from when one could be claimed until it was; from its send until its ack; from its claim
until its ack, where the ack came within the lease."""


ENDED: Final = "*"
"""Stands among the queues of which a process tells others that they woke: messages have ended."""


class Elsewhere(Struct, gc=False):
    """What batches of other processes did."""

    woken: Set[str]  # this and the next: as in BatchResult
    logged: Set[str]
    tokens: bool  # they changed access tokens
    ended: dict[str, Ending] = {}  # as in BatchResult
    reread: bool = (
        False  # this process has missed some, and read all tables again: anything may have happened
    )


class OutcomeLost(Exception):
    """Whether a batch was committed cannot be told. The engine goes on: its next batch reads what is there"""


class BatchResult(Struct, gc=False):
    """The result of a batch."""

    # one per command, in order; an exception is the outcome of a command that failed alone, DEFERRED that of
    # one that is to run again in the next batch
    outcomes: list[Any]
    # the deliveries of parked receivers, as (id of the receiver, deliveries), in no particular order
    served: list[tuple[int, tuple[Delivery, ...]]]
    # the next due time, or an earlier one: then the next batch finds nothing due and corrects it. None if no
    # message has a due time.
    next_due_ms: int | None
    events: list[Event]
    failed_queued: bool = False  # this batch left new failed messages to a sweep
    # the queues in which a message became ready, even if it was claimed at once, and those that were resumed
    woken: Set[str] = frozenset()
    # milliseconds, by (kind of DURATION_KINDS, queue), one for each message that was claimed or acked
    durations: Mapping[tuple[str, str], Sequence[int]] = {}
    moved_in: Mapping[str, int] = {}  # how many messages came into each queue from another one
    # damaged messages that could not be settled or delivered
    set_aside: Sequence[DamagedMessage] = ()
    logged: Set[str] = frozenset()  # the queues with new lifecycle events
    own_work: Sequence[Struct] = ()  # what it did without a command, for metrics: runs that were due
    elsewhere: Sequence[Elsewhere] = ()  # what other processes did since the last batch
    # how long the commit waited for the disk; None where there was nothing to commit. Set by `Store`.
    commit_seconds: float | None = None
    # how many messages that applications sent in their own transactions were refused for good
    sent_set_aside: int = 0
    # how long the batch waited for the batches of other processes to end; None where no others can run
    gate_seconds: float | None = None
    # the age of the oldest batch of another process that this one took over; None if there was none
    lag_seconds: float | None = None
    # how messages ended, by their ids; acks without a result only where that is awaited
    ended: Mapping[str, Ending] = {}


class Snapshot(Protocol):
    """What the engine knows without a query, as of the last commit.

    It is not a copy: the next commit, which may run in a thread, changes it. That commit replaces `queue_names`,
    `settings`, `tokens`, `sessions`, `redrives` and `consumers`, so they are safe to iterate over. It changes `counts`
    in place: look up one queue, or copy it whole with `dict`.
    """

    @property
    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue."""
        ...

    @property
    def queue_names(self) -> Sequence[str]:
        """All known queues by name."""
        ...

    @property
    def queues_made(self) -> Mapping[str, int]:
        """How many queues each access token has made, by its name."""
        ...

    @property
    def settings(self) -> Mapping[str, QueueSettings]:
        """The settings of the queues that have any."""
        ...

    @property
    def tokens(self) -> Mapping[str, AccessToken]:
        """All access tokens by name."""
        ...

    @property
    def sessions(self) -> Mapping[str, UiSession]:
        """All sessions of the admin UI by digest, also those that have expired."""
        ...

    @property
    def redrives(self) -> Mapping[str, RedriveTask]:
        """All tasks over dead letters by id, in the order in which they were first stored."""
        ...

    def rate_full_at(self, queue: str) -> int:
        """When the bucket of the queue's own rate is full again (epoch ms); 0 if it is full now, or there is none."""
        ...

    @property
    def staging(self) -> Staging:
        """How much is staged, in all and by key."""
        ...

    @property
    def schedules(self) -> ScheduleTotals:
        """How many schedules there are, and when the next run is due."""
        ...

    @property
    def logs(self) -> Mapping[LogName, Log]:
        """The extent of each of the two logs: lifecycle events, and the history."""
        ...

    def history_of(self, queue: str | None) -> HistoryCounts:
        """How much history a queue has; None: all queues together."""
        ...

    @property
    def consumers(self) -> Mapping[str, PipelineConsumer]:
        """All consumers of pipelines by `consumer_key`."""
        ...

    @property
    def withdrawn(self) -> Withdrawals:
        """The latest messages that were removed while a consumer had them, and not by that consumer."""
        ...

    @property
    def leased_bytes(self) -> int:
        """The bytes of the pages of their unsettled leases."""
        ...

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue."""
        ...


class Listener(Protocol):
    """Hears what other processes commit, and tells them what this one has committed."""

    @property
    def socket(self) -> int:
        """The descriptor of a socket that becomes readable when there is something to hear."""
        ...

    @property
    def catch_up_seconds(self) -> float:
        """How often to look for changes of which no notice arrived, in seconds."""
        ...

    def on_notice(self, call: Callable[[], None]) -> None:
        """Register `call`, which is called from any thread when a batch left something for `tell`."""
        ...

    def tell(self, *, awaited: bool) -> None:
        """Send the notices that wait, without blocking; the rest when `socket` is readable. Raises StorageUnavailable.

        awaited: a receiver waits for messages, so applications are asked to notify of those that they send.
        """
        ...

    @property
    def rest_seconds(self) -> float:
        """Seconds until the database must be looked at because a notice may have been left out; inf: no extra look."""
        ...

    def note_look(self) -> None:
        """Record that this process looks for messages now."""
        ...

    def heard(self) -> Set[str] | None:
        """The queues that others woke since the last call; None: it may be any queue. Raises StorageUnavailable."""
        ...

    def meet(self, report: ProcessReport) -> Sequence[HeardProcess]:
        """Report that this process runs; returns all processes that run or ran lately, this one included.

        Blocks. Raises StorageUnavailable.
        """
        ...

    def close(self) -> None:
        """Stop listening, and have the other processes forget this one. Blocks."""
        ...


NO_DURABILITY = "none"
"""The durability of a temporary database."""


class Engine(Protocol):
    """A storage engine; used from one thread at a time, except its log, its facts and its copies."""

    @property
    def listen(self) -> Callable[[], Listener] | None:
        """A function that opens a Listener, in any thread; it raises StorageUnavailable. None: no other process can use
        the database.

        An engine with a Listener has its database behind a network, so its batches run in a thread.
        """
        ...

    @property
    def tables_urls(self) -> tuple[str, str] | None:
        """The URL of the database with the tables that queues may be bound to, and the URL to listen at; None if there
        is no such database."""
        ...

    @property
    def check_texts(self) -> Callable[[Struct], None] | None:
        """A check that raises a CallerError for a message or offer with text that the database cannot store. None: it
        stores any text.

        The engine refuses a whole command for one such text, so callers with many messages check each first.
        """
        ...

    def clock(self) -> Clock:
        """The clock that decides when messages are due: that of the database server, if there is one."""
        ...

    @property
    def durability(self) -> str:
        """A value of FORQ_DURABILITY, or NO_DURABILITY."""
        ...

    @property
    def log(self) -> WriteAheadLog | None:
        """None for an engine without a write-ahead log of its own."""
        ...

    def execute_batch(self, batch: Batch) -> BatchResult:
        """Run all commands of a batch inside one transaction, which is opened and left open.

        A command may fail alone: its outcome is then an exception, and the others are not affected. All commands have
        the time of the batch. Raises StorageUnavailable (StorageFull: the disk is full): then the transaction is rolled
        back, nothing of it is or will be on disk, and the engine is as it was before the batch.
        """
        ...

    def commit(self) -> bool:
        """Make the batch durable; none of its commands may be answered before. False: there was nothing to commit.

        Raises StorageUnavailable as `execute_batch` does. Any other error means that nobody knows what is on disk. The
        engine must not be used again then, except after OutcomeLost.
        """
        ...

    def snapshot(self) -> Snapshot: ...

    def facts(self) -> EngineFacts:
        """The size of the database and its disk. Needs a few system calls and no query: safe in any thread, and quick
        enough for the event loop."""
        ...

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        """Write a backup to a new file, beside the writer, in any thread; returns its size in bytes.

        The backup is one file with everything that was committed when it began. It gets its name only once it is
        checked and on disk. on_step: called now and then with (pages done, pages in all); an exception that it raises
        is passed on, and no file is left. The log cannot be emptied until all pages are done. Raises StorageOpenError,
        StorageUnavailable.
        """
        ...

    def open_reader(self) -> Reader:
        """Open a read-only connection. Raises StorageUnavailable or StorageOpenError."""
        ...

    def close(self) -> None:
        """Move the log, if there is one, into the database, and close. Nothing may be called afterwards."""
        ...
