"""The interface of all storage engines: plain synchronous functions that wait for nothing but I/O.

Each rule stands where it is kept, and holds for every engine; the conformance suite checks them on each. Below
storage/, and there mostly in relational/operations/:

    one transaction for a batch, what a failure leaves     `Engine.execute_batch` and `Engine.commit`, below
    the order within a batch                               relational/run_batch.py
    how much a batch does, and what the next one goes on with   allowance.py
    changes of a message, each noted once                  transitions.py
    lifecycle events                                       relational/parts/events.py
    time: due messages, failed ones, damaged ones          operations/due.py
    sends, the bounds of a queue                           operations/send.py, operations/eviction.py
    the order in which messages are claimed                operations/claim.py
    receipts, acks, nacks, discards                        operations/settle.py
    limits of a group, held messages                       operations/group_limit.py
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

from forq_trio.model.access import AccessToken
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Claim, Command
from forq_trio.model.consumers import PipelineConsumer
from forq_trio.model.engine_facts import EngineFacts as EngineFacts
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log, LogName
from forq_trio.model.messages import Delivery, QueueCounts
from forq_trio.model.processes import HeardProcess, ProcessReport
from forq_trio.model.publishing import Staging
from forq_trio.model.queue_settings import Defaults, QueueRules, QueueSettings
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.schedules import ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.storage.reader import Reader
from forq_trio.storage.write_ahead_log import WriteAheadLog


class EngineSettings(Defaults, frozen=True, gc=False):
    """The server-wide defaults of rules."""

    history: bool = False  # keep finished messages
    events: bool = False  # lifecycle events


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
    # it also stores what no command sends (stages, runs, what applications sent); not while sends are refused
    # or calls go first
    moves_staged: bool = True
    shared: bool = False  # long steps are cut
    # kinds of commands for which the disk is too full; one that has to do the same first fails with
    # StorageFull
    refused: Set[type[Command[Any]]] = frozenset()
    # the queues with parked receivers of which another process told that it woke them
    told: Set[str] = frozenset()


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
    """The outcome of a command that is to run again in the next batch, because an allowance of this one was used up.

    It did not run, or it is a claim that got nothing. done: the outcomes of its first parts (`Traits.parts`), where it
    has some; it is to run again with the others.
    """

    done: tuple[Any, ...] = ()


DEFERRED: Final = Deferred()


class DamagedMessage(NamedTuple):
    """A damaged message that could not be settled or handed out: it stays as it is until it is tried again."""

    queue: str
    sequence: int
    error: str


WAIT = "wait"
END_TO_END = "end_to_end"
HANDLING = "handling"
DURATION_KINDS = (WAIT, END_TO_END, HANDLING)
"""The durations of messages: from when one could be claimed until it was; from its send until its ack; from its claim
until its ack, where the ack came within the lease."""


class Elsewhere(Struct, gc=False):
    """What batches of other processes did."""

    woken: Set[str]  # this and the next: as of BatchResult
    logged: Set[str]
    tokens: bool  # they changed access tokens


class OutcomeLost(Exception):
    """Whether a batch was committed cannot be told. The engine goes on: its next batch reads what is there"""


class BatchResult(Struct, gc=False):
    """The result of a batch."""

    # one per command, in order; an exception is the outcome of a command that failed alone, DEFERRED that of
    # one that is to run again in the next batch
    outcomes: list[Any]
    # the deliveries of parked receivers, as (id of the receiver, deliveries), in no particular order
    served: list[tuple[int, tuple[Delivery, ...]]]
    # the next due time, or an earlier one: then the next batch finds nothing due and corrects it. None when
    # no message will ever be due.
    next_due_ms: int | None
    events: list[Event]
    failed_queued: bool = False  # there are new failed messages that this batch left for a sweep
    # the queues in which a message became ready (or that were resumed), also if it was claimed at once
    woken: Set[str] = frozenset()
    # milliseconds by kind of DURATION_KINDS and queue, one for each message that was claimed or acked
    durations: Mapping[tuple[str, str], Sequence[int]] = {}
    # damaged messages that could not be settled, or not be handed out
    set_aside: Sequence[DamagedMessage] = ()
    logged: Set[str] = frozenset()  # the queues with new lifecycle events
    own_work: Sequence[Struct] = ()  # what it did without a command that is counted: runs that were due
    elsewhere: Sequence[Elsewhere] = ()  # what other processes did since the last batch
    # how long the commit waited for the disk; None where there was nothing to commit. Set by `Store`.
    commit_seconds: float | None = None
    # messages that applications sent in transactions of their own, and that were refused for good
    sent_set_aside: int = 0
    # how long the batch waited until no other process ran one; None where it did not have to ask
    gate_seconds: float | None = None
    # how old the oldest batch of another process was that was taken over; None where there was none
    lag_seconds: float | None = None


class Snapshot(Protocol):
    """What the engine knows without a query, as of the last commit.

    It is not a copy: the next commit, which may run in a thread, changes it. `queue_names`, `settings`, `tokens`,
    `sessions`, `redrives` and `consumers` are replaced then and can be walked through; of `counts` look one up, or copy
    it whole with `dict`.
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
        """When the bucket of the queue's own rate has all its tokens again (epoch ms); 0 if it has none, or all."""
        ...

    @property
    def staging(self) -> Staging:
        """What is staged in all."""
        ...

    @property
    def schedules(self) -> ScheduleTotals:
        """How many schedules there are, and when the next run is due."""
        ...

    @property
    def logs(self) -> Mapping[LogName, Log]:
        """What is kept of the two logs."""
        ...

    def history_of(self, queue: str | None) -> HistoryCounts:
        """How much is kept of the history of a queue; None: of all."""
        ...

    @property
    def consumers(self) -> Mapping[str, PipelineConsumer]:
        """All consumers of pipelines by `consumer_key`."""
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
        """Becomes readable when there is something to hear."""
        ...

    @property
    def catch_up_seconds(self) -> float:
        """How often to look for what was not heard."""
        ...

    def on_notice(self, call: Callable[[], None]) -> None:
        """Have `call` called, from any thread, when there is something to `tell` that its batch could not."""
        ...

    def tell(self, *, awaited: bool) -> None:
        """Tell what there is, without waiting; the rest when `socket` is readable. Raises StorageUnavailable.

        awaited: somebody waits for messages, so applications are to tell of those that they send.
        """
        ...

    @property
    def rest_seconds(self) -> float:
        """Seconds until a look is needed, because a notice may not be sent; inf: no look beside the usual ones."""
        ...

    def looked(self) -> None:
        """This process looks for messages now."""
        ...

    def heard(self) -> Set[str] | None:
        """The queues that others woke since the last call; None where it may be any. Raises StorageUnavailable."""
        ...

    def meet(self, report: ProcessReport) -> Sequence[HeardProcess]:
        """Say that this process is there; returns all that are or were lately, this one among them.

        Blocks. Raises StorageUnavailable.
        """
        ...

    def close(self) -> None:
        """Hear no more, and be forgotten by the others. Blocks."""
        ...


NO_DURABILITY = "none"
"""The durability of a temporary database."""


class Engine(Protocol):
    """A storage engine; used from one thread at a time, except its log, its facts and its copies."""

    @property
    def listen(self) -> Callable[[], Listener] | None:
        """Opens a Listener, in any thread; raises StorageUnavailable. None where no other process uses the database.

        Where there is one, the database is behind a network: a whole batch runs in a thread.
        """
        ...

    @property
    def tables_urls(self) -> tuple[str, str] | None:
        """The URL of the database where applications have tables to which queues may be bound, and the one at which to
        listen; None without any."""
        ...

    @property
    def check_texts(self) -> Callable[[Struct], None] | None:
        """Raises the CallerError of a message or offer with text that the database cannot store. None: it stores any.

        Who has many to send asks for each: the engine refuses a command with such a text whole.
        """
        ...

    def clock(self) -> Clock:
        """The clock by which messages are due: that of the database, where it has one."""
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

        A command that fails alone (its outcome is an exception) leaves the others untouched. The only time is the
        batch's. Raises StorageUnavailable (StorageFull: the disk is full): the transaction is rolled back, nothing of
        it is or will be on disk, and the engine is as before the batch.
        """
        ...

    def commit(self) -> bool:
        """Make the batch durable: before that, no command of it may be answered. False: there was nothing to commit.

        Raises StorageUnavailable as `execute_batch` does. After any other error what is on disk is unknown, and the
        engine must not be used again, except after OutcomeLost.
        """
        ...

    def snapshot(self) -> Snapshot: ...

    def facts(self) -> EngineFacts:
        """A few system calls and no query: safe in any thread, and quick enough for the event loop."""
        ...

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        """Write a backup to a new file, beside the writer, in any thread; returns its size in bytes.

        It holds what was committed when it began, is checked and on disk before it gets its name, and is one file.
        on_step: called every now and then with (pages done, pages in all); what it raises comes out, and no file is
        left. Until all pages are done the log cannot be emptied. Raises StorageOpenError, StorageUnavailable.
        """
        ...

    def open_reader(self) -> Reader:
        """Raises StorageUnavailable or StorageOpenError."""
        ...

    def close(self) -> None:
        """Move the log into the database, where there is one, and close. Nothing may be called afterwards."""
        ...
