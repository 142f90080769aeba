"""The interface of all storage engines: plain synchronous functions that wait for nothing but I/O.

The rules of every engine; the conformance suite checks them on each:

1. `execute_batch` runs all commands of a batch inside ONE transaction that it opens and leaves open; `commit` makes
   it durable. No command of a batch may be answered before its commit returned.
2. A command that fails alone (its outcome is an exception) leaves the others untouched.
3. If `execute_batch` or `commit` raises StorageUnavailable (StorageFull: the disk is full) the transaction is rolled
   back, nothing of it is or will be on disk, and the engine is as before the batch. If `commit` raises anything else,
   what is on disk is unknown and the engine must not be used again, except after OutcomeLost.
4. The only time is the batch's `now_ms`. First the engine settles due messages (delayed ones become ready, leases end,
   messages expire; at most DUE_BATCH_MAX), then it runs the commands, then the claims: parked receivers before the
   batch's own claims, each in order. Rule 9 says more. A damaged message that cannot be settled when it is due, or in a
   sweep or purge, or that cannot be handed out, is set aside for SET_ASIDE_RETRY_MS and reported in
   `BatchResult.set_aside`; the others are settled and handed out all the same.
5. Every change to a claimed message is fenced by its receipt. The current receipt is the one of the latest claim; it
   stays current after its lease ended until the message is claimed again, settled or moved.
6. The claim order within a queue is priority (higher first), then `position`, then `seq`. The position of a message is
   its sequence number, in a LIFO queue the negative of it, in a queue by due time when it was due; for a message with a
   group see `rules.group_position`. Once a message with a group was sent to a FIFO queue the queue is grouped, and
   sends without one are served as the group NO_GROUP; the last ready message of each priority joins it at that moment,
   unless it has a group (it was moved here).
7. A paused queue delivers nothing, not even to parked receivers; the batch that resumes it serves them. A claim, and a
   lease of a consumer, gets no more messages than `in_flight_max` of the queue leaves beside those processing; the rest
   stays ready. The queue counts as woken once one of them is no longer processing, and when the bound was changed. A
   lease that ended is not extended while as many are processing as may be.
8. A claim that meets a message whose group is at the group limit sets it to HELD and goes on. One that meets a message
   that was delivered too often (`rules.exhausted`) moves or deletes it, and goes on.
   Held messages become ready in one step, after the commands and before the claims. A group is freed when one of its
   messages is no longer processing, or no longer ready without having been claimed (it expired, was moved or removed).
   Then as many of its held messages become ready, in claim order, as the limit allows beside those processing. At most
   DUE_BATCH_MAX groups are looked at in a batch, those first that earlier ones left, then the others by name; a group
   of which not all could become ready is left. When the limit was changed or removed, all messages that are held by
   then become ready, by sequence, queues by name; those that claims set to held again meanwhile stay held.
9. The order within a batch: due messages; a step of rule 13; runs of schedules that are due; messages that applications
   sent in transactions of their own (PostgreSQL only); the commands, kind by kind, as `commands.COMMANDS` has them:
   settings, sends, offers, settlements, moves and removals, new due times and removals by key, sweeps, tokens and
   sessions, tasks over dead letters, stages and publications, schedules, the history, pipeline consumers, lifecycle
   events, maintenance; failed messages (rule 17); held messages (rule 8); claims, by name of the queue, in queues with
   claims in this batch or in which a message became ready.
10. The claims of a batch may leave work for the next one, for which `next_due_ms` asks at once. In it these queues
   count as woken: one whose claims ended early by rule 12 and that has ready messages left, one that a claim moved
   messages to, and one that has ready messages left after all RECEIVERS_OFFERED_MAX receivers of the batch were served.
   A group of which a claim moved or removed a ready message counts as freed.
11. Every change of a message's state is one of `transitions.TRANSITIONS`, and is noted in one function of the engine.
12. Every step of a batch has an allowance of messages and bytes (allowance.py), and stops once it is used up: due
   messages, evictions, failed messages, held messages that become ready, messages that claims hand out, those that they
   hold, move or delete, those that the settling and moving commands of one kind name, those that leases of consumers
   get, and those that they settle; and stages that publications name. What is left is done in the next batch: a command
   that did not run has the outcome DEFERRED, as has a claim or a lease that got nothing although messages are ready.
   A settlement by receipts stops at any of them, as do offers that replace contents; `Deferred.done` then has the
   outcomes of those before.
   The queues with claims begin, in name order, with the first one that the batch before came to with an allowance used
   up. No batch makes more than COMMIT_CHANGES_MAX changes.
13. Publish only numbers the stages; later batches move messages. Each batch works on the stages with the lowest
   numbers, as far as `PublishStep` goes: the messages of a published stage enter its queue like sends, in the order
   of pages and lines, and its bounds are not checked; the pages of one that ended are removed, after all published
   ones. `next_due_ms` asks for the next batch at once.
14. While the history is on, the commit that removes a message for good adds it to the history. So every message that
   was ever stored is in a queue or in the history, exactly once, until the history is trimmed or purged. Ids in the
   history grow by one in the order in which messages ended.
15. There are at most QUEUES_MAX queues, and as many with settings. A send, a redrive or a setting that would make one
   more, also by the dead-letter queue that it names, is refused; that queue exists once the message is stored. What
   cannot be refused goes to the dead-letter queue of its queue instead: a message whose own one was deleted, or that is
   published, or for which a receiver names one. Only default dead-letter queues are never refused. Of queues that
   NameQueues makes, and of those that published messages name, an access token makes at most QUEUES_A_TOKEN_MAX.
   A dead-letter queue that no token named counts for the token of its queue, also past that share, until forgotten.
16. Lifecycle events are stored in the batch of their change, with the next ids; those of a message are in order.
17. A message that fails is moved to its dead-letter queue, or deleted where it has none, in the batch in which it
   fails: after the commands, in the order in which they failed, as far as the allowance goes (rule 12). Those that are
   left are FAILED until a sweep takes them, for which `failed_queued` asks.
18. A delivery takes a token from the bucket of its queue's `rate`, or from that of its group. A bucket begins with all
   `count` tokens, and gets one after every period_ms / count until it has them all; nothing is rounded. Tokens that
   were taken are stored in the batch of the delivery. A bucket that was filled by another rate counts as full. A claim,
   and a lease of a consumer, gets no more messages than the bucket of the queue has tokens. Where it has none, and
   somebody got nothing, the queue counts as woken once there is one. A claim sets a message whose group has no token to
   HELD, as by rule 8; the group is freed once it has one, or in the next batch if it has tokens and is below its limit
   then. Before a claim hands out a message of a group with a rate, or of one that rule 8 left to the next batch, those
   of the group become ready that are held, come before it, and may be handed out now, too. When the rate was changed,
   the queue counts as woken and held messages become ready, as by rule 8.
19. A schedule has at most one run for each nominal time: the run, its message and the next nominal time are one commit,
   and the next one lies behind the last one whatever the clock says. A run is due at its nominal time and its jitter;
   those that are due are carried out in the order of `due_at`, then of names, in each batch that may store something,
   before its commands; as far as the allowance goes, to which each counts with the content of its message. Every second
   one is that of the next maker in turn, the tokens by name and then the secret, where one of its schedules is due. A
   run that is RUN_GRACE_MS late was missed. `missed` says which of these are sent: none; the last one, if no later run
   is due; or each, of more than RUNS_CAUGHT_UP_MAX the last. The others are noted as one run, with their number; where
   times are computed one by one, RUNS_COUNTED_MAX are counted, and the reason says if that is not all. The note of
   those before RUNS_CAUGHT_UP_MAX stays behind all that is noted until these are sent. After a run that is refused the
   next one comes at its time. A paused schedule has no runs, and when it is resumed none from before.
   The latest RUNS_KEPT_MAX runs of a schedule are kept. A schedule that cannot be read is tried again after
   SET_ASIDE_RETRY_MS.
20. A key is unique in its queue and kind while its message is pending: stored, and not a dead letter. An offer whose
   content, options and due time are those of the pending message changes nothing, nor does it end a lease; the due time
   is the one that was offered, whatever nacks made of it, and one without a time is due like one that is due already.
   Any other change makes the message one that was just sent, with its id, sequence and, in the same group and priority,
   its position: attempts begin anew, and the receipt of one in process is no longer current. Each change has a
   revision, a sequence number of its own; that of a new message is its sequence. A dead letter has no key. Moved to a
   queue, it has it again if the key is free there; else the message has no key.
21. Behind a message in process an offer may wait (debounce, once more); another one takes its place. Its bytes count
   with those of the message. It becomes a message of the same key, with its revision, in the batch in which the one in
   process goes for good or becomes a dead letter: before the next command that names a key, at the latest before held
   messages; where a claim moved or removed that one, after the claims, and the next batch counts the queue as woken. A
   purge, a drop, an eviction without dead letters, and an update that is not to wait, remove it. The bounds of the
   queue are not checked then. An offer that adds bytes to a message is refused where the queue has no space for them.
22. The messages of an outbox and its position are one commit. A relay that goes on from another position than the
   stored one stores nothing. Messages are stored like sends, in their order, up to the first that is refused; the
   position is the id of the last one that was stored. An outbox belongs to the key that relayed it first: another one
   is refused with Forbidden, but not the server's secret.
23. A message that its consumer discards goes for good, with the consumer's reason as its last error; it is no dead
   letter, and what waits behind its key goes on, as after an ack. It is no end-to-end or handling duration.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct

from forq_trio.model.access import AccessToken
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Claim, Command
from forq_trio.model.consumers import Consumer
from forq_trio.model.engine_facts import EngineFacts as EngineFacts
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log, LogName
from forq_trio.model.messages import Delivery, QueueCounts
from forq_trio.model.processes import HeardProcess, ProcessReport
from forq_trio.model.publishing import Staging
from forq_trio.model.queue_settings import Defaults, QueueRules, QueueSettings
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.schedules import SavedRun, ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.storage.reader import Reader
from forq_trio.storage.write_ahead_log import WriteAheadLog


class EngineSettings(Defaults, frozen=True, gc=False):
    """The server-wide defaults of rules. history: keep finished messages; events: lifecycle events."""

    history: bool = False
    events: bool = False


class Receiver(NamedTuple):
    """A parked receiver: its claim, and the id by which `BatchResult.served` names it."""

    id: int
    claim: Claim


class Batch(Struct, frozen=True, gc=False):
    """The commands of one transaction, and the receivers that it may serve.

    receivers: the parked receivers by queue, first come first, at most RECEIVERS_OFFERED_MAX of each; the engine serves
    only those of queues in which a message became ready. moves_staged: it also stores what no command sends
    (stages, runs, what applications sent); not while sends are refused or calls go first. shared: long steps are cut.
    put_back_refused: the disk is full; a command that needs a message put back from its page fails with StorageFull.
    """

    commands: Sequence[Command[Any]]
    now_ms: int
    receivers: Mapping[str, Sequence[Receiver]] = {}
    moves_staged: bool = True
    shared: bool = False
    put_back_refused: bool = False


class Event(Struct, frozen=True, gc=False):
    """`count` messages of `queue` changed. kind: one of EVENT_KINDS; reason: "" for none."""

    kind: str
    queue: str
    count: int
    reason: str = ""


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


class SetAside(NamedTuple):
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
    """What batches of other processes did. woken, logged: as of BatchResult; tokens: they changed access tokens."""

    woken: Set[str]
    logged: Set[str]
    tokens: bool


class OutcomeLost(Exception):
    """Whether a batch was committed cannot be told. The engine goes on: its next batch reads what is there"""


class BatchResult(Struct, gc=False):
    """The result of a batch.

    outcomes: one per command, in order; an exception is the outcome of a command that failed alone, DEFERRED that of
    one that is to run again in the next batch.
    served: the deliveries of parked receivers, as (id of the receiver, deliveries), in no particular order.
    next_due_ms: the next due time, or an earlier one: then the next batch finds nothing due and corrects it. None when
    no message will ever be due.
    failed_queued: there are new failed messages that this batch left for a sweep.
    woken: the queues in which a message became ready (or that were resumed), also if it was claimed at once.
    durations: milliseconds by kind of DURATION_KINDS and queue, one for each message that was claimed or acked.
    set_aside: damaged messages that could not be settled, or not be handed out.
    logged: the queues with new lifecycle events.
    runs: what became of runs of schedules that were due.
    elsewhere: what other processes did since the last batch.
    commit_seconds: how long the commit waited for the disk; None where there was nothing to commit. Set by `Store`.
    gate_seconds: how long the batch waited until no other process ran one; None where it did not have to ask.
    sent_set_aside: messages that applications sent in transactions of their own, and that were refused for good.
    lag_seconds: how old the oldest batch of another process was that was taken over; None where there was none.
    """

    outcomes: list[Any]
    served: list[tuple[int, tuple[Delivery, ...]]]
    next_due_ms: int | None
    events: list[Event]
    failed_queued: bool = False
    woken: Set[str] = frozenset()
    durations: Mapping[tuple[str, str], Sequence[int]] = {}
    set_aside: Sequence[SetAside] = ()
    logged: Set[str] = frozenset()
    runs: Sequence[SavedRun] = ()
    elsewhere: Sequence[Elsewhere] = ()
    commit_seconds: float | None = None
    sent_set_aside: int = 0
    gate_seconds: float | None = None
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
    def consumers(self) -> Mapping[str, Consumer]:
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
    def look_seconds(self) -> float:
        """How often to look for what was not heard."""
        ...

    def on_notice(self, call: Callable[[], None]) -> None:
        """Have `call` called when there is something to `tell`, from any thread."""
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

    def execute_batch(self, batch: Batch) -> BatchResult: ...

    def commit(self) -> bool:
        """Make the batch durable. False if there was nothing to commit."""
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
