"""The one seam between the actors and the databases: plain synchronous functions, no waiting for anything but I/O.

Rules every engine keeps; the conformance suite checks them on each:

1. `execute_batch` runs all commands of a batch inside ONE transaction that it opens and leaves open; `commit` makes
   it durable. Nothing a batch did may be answered before its commit returned.
2. A command that fails alone (its outcome is an exception) leaves the others untouched.
3. If `execute_batch` or `commit` raises StorageUnavailable (StorageFull: for want of room) the transaction is rolled
   back, nothing of it is or will be on disk, and the engine is as before the batch. If `commit` raises anything else,
   what is on disk is unknown and the engine must not be used again.
4. Time is only what the batch says: `now_ms`. First the engine settles what fell due by then (delayed messages become
   ready, leases end, messages expire; at most DUE_BATCH_MAX of them), then the commands, then the claims: the
   receivers that wait before the batch's own claims, each in order. Rule 9 says more. A damaged
   message that cannot be settled when it falls due, or in a sweep or purge, or that cannot be handed out, is set aside
   for SET_ASIDE_RETRY_MS and told of in `BatchResult.set_aside`; the others are settled and handed out all the same.
5. Every change to a claimed message is fenced by its receipt. The current receipt is the one of the latest claim; it
   stays current after its lease ended until the message is claimed again, settled or moved.
6. The claim order within a queue is priority (higher first), then `position`, then `seq`. The position of a message is
   its sequence number, in a LIFO queue the negative of it; for a message with a group see `rules.group_position`. Once
   a message with a group was sent to a FIFO queue the queue is grouped, and sends without one take turns as the group
   NO_GROUP; the last ready message of each priority joins it at that moment, unless it has a group (it was moved here).
7. A paused queue hands out nothing, to waiting receivers neither; the batch that resumes it serves them.
8. Where a queue has a bound on messages of one group in process, what is above it is HELD: it is ready for nobody until
   one of its group is settled. A claim that meets such a message holds it and goes on; the claims of a queue end for
   this batch once SET_ASIDE_BATCH_MAX of its messages were held.
   Letting go is one step, after the commands and before the claims. For every group of a bounded queue of which a
   message stopped being in process, or ready without having been claimed (it expired, was moved or removed), as many
   held ones, in claim order, become ready as the bound allows beside those in process. Where the bound was changed
   or taken away, all that are held by then become ready, by sequence, at most DUE_BATCH_MAX in all a batch, queues by
   name; what a claim holds meanwhile is not let go a second time.
9. The order within a batch, kind by kind: what is due; Configure, Pause; Produce, ProduceMany, ProduceEach, Resubmit;
   Ack, AckById, Nack, NackById, Extend, Release; Redrive, Delete, Purge, ForgetQueue; Sweep, SaveToken, RevokeToken,
   NoteTokenUse, Optimize, Ping; letting go; claims, by name of the queue, in those that have claims in this batch or
   in which something became ready.
10. What the claims themselves leave to be done, the next batch does, and `next_due_ms` asks for it at once: a queue
   whose claims ended early by rule 8 and has ready messages left, and one that a consumer's redrive policy moved
   messages to, count as woken in it; a group of which a consumer's redrive policy took a ready message is let go in it.
   A queue that has ready messages left when all of RECEIVERS_OFFERED_MAX receivers that the batch offered were served
   counts as woken, too.
11. Every change of a message's state is one of `transitions.TRANSITIONS`, and is noted in one function of the engine.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.commands import Claim, Command
from forq_trio.model.messages import Delivery, Found, MessageFilter, MessageInfo, QueueCounts, QueueInfo
from forq_trio.model.queue_settings import QueueRules, QueueSettings


class EngineSettings(Struct, frozen=True, gc=False):
    """The defaults of every queue's rules; all times in milliseconds."""

    queue_ttl_ms: int = limits.QUEUE_TTL_HOURS_DEFAULT * limits.HOUR_MS
    dlq_ttl_ms: int = limits.DLQ_TTL_HOURS_DEFAULT * limits.HOUR_MS
    attempts_max: int = limits.ATTEMPTS_MAX_DEFAULT
    backoff_ms: tuple[int, ...] = limits.BACKOFF_MS


class Receiver(NamedTuple):
    """Somebody who waits for messages: what it claims, and the id by which `BatchResult.served` names it."""

    id: int
    claim: Claim


class Batch(Struct, frozen=True, gc=False):
    """What the writer wants done in one transaction.

    receivers: by queue those that wait for a message, first come first, at most RECEIVERS_OFFERED_MAX of each; the
    engine looks only at queues in which this batch made something ready.
    """

    commands: Sequence[Command[Any]]
    now_ms: int
    receivers: Mapping[str, Sequence[Receiver]] = {}


class Event(Struct, frozen=True, gc=False):
    """Something to count: `count` messages of `queue`. Kinds are the closed list below; reason is "" without one."""

    kind: str
    queue: str
    count: int
    reason: str = ""


PRODUCED = "produced"
CONSUMED = "consumed"
ACKED = "acked"
NACKED = "nacked"
RELEASED = "released"
STALE_RECOVERED = "stale_recovered"
REQUEUED = "requeued"  # queue: the one it goes to
MOVED_TO_DLQ = "moved_to_dlq"  # reason: failed | expired | overflow
CLEANED_UP = "cleaned_up"  # reason: failed | expired | overflow | dlq_full | deleted_by_user
EVENT_KINDS = (
    PRODUCED,
    CONSUMED,
    ACKED,
    NACKED,
    RELEASED,
    STALE_RECOVERED,
    REQUEUED,
    MOVED_TO_DLQ,
    CLEANED_UP,
)


class SetAside(NamedTuple):
    """A damaged message that could not be settled or handed out: it stays as it is until it is tried again."""

    queue: str
    sequence: int
    error: str


WAIT = "wait"
END_TO_END = "end_to_end"
DURATION_KINDS = (WAIT, END_TO_END)
"""What is measured of messages: from when one could be had until it was claimed; from its sending until its ack."""


class BatchResult(Struct, gc=False):
    """What came of a batch.

    outcomes: one per command, in order; an exception is the outcome of a command that failed alone.
    served: what waiting receivers get, as (id of the receiver, deliveries), in no particular order.
    next_due_ms: no later than the next moment something falls due (it may be earlier: then the next batch finds
    nothing and says better); None when nothing ever will.
    failed_queued: failed messages now wait to be moved or deleted: nudge the sweeps.
    woken: the queues in which a message became ready (or that were resumed), also if it was claimed at once.
    durations: milliseconds by kind of DURATION_KINDS and queue, one for each message that was claimed or acked.
    set_aside: damaged messages that could not be settled, or not be handed out.
    commit_seconds: how long the commit waited for the disk; None where there was nothing to commit. Set by `Store`.
    """

    outcomes: list[Any]
    served: list[tuple[int, tuple[Delivery, ...]]]
    next_due_ms: int | None
    events: list[Event]
    failed_queued: bool = False
    woken: Set[str] = frozenset()
    durations: Mapping[tuple[str, str], Sequence[int]] = {}
    set_aside: Sequence[SetAside] = ()
    commit_seconds: float | None = None


class Snapshot(Protocol):
    """What the engine knows without asking its store, as of the last commit. Looking costs nothing.

    It is not a copy: the next commit, which may run in a thread, changes it. `settings` and `tokens` are replaced then
    and can be walked through; of `counts` look one up, or copy it whole with `dict`.
    """

    @property
    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue."""
        ...

    @property
    def settings(self) -> Mapping[str, QueueSettings]:
        """The queues for which something is set."""
        ...

    @property
    def tokens(self) -> Mapping[str, AccessToken]:
        """All access tokens by name."""
        ...

    def rules(self, queue: str) -> QueueRules:
        """What holds for a queue, defaults filled in."""
        ...


class CheckpointResult(Struct, frozen=True, gc=False):
    """Pages in the write-ahead log, and how many of them are copied into the database."""

    log_pages: int
    moved_pages: int


class Reader(Protocol):
    """A read-only view, used by one thread at a time. Every method sees a consistent, committed state."""

    def queues(self) -> list[QueueInfo]:
        """All queues that are known, by name; without oldest_ready_at."""
        ...

    def queue(self, queue: str) -> QueueInfo:
        """One queue with oldest_ready_at; a queue nobody ever used has zeros."""
        ...

    def message(self, queue: str, message_id: str) -> MessageInfo | None: ...

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        """The next ready messages in claim order."""
        ...

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        """Newest first, those with a sequence below `before_sequence` (None: from the newest)."""
        ...

    def peek_shuffled(self, queue: str, limit: int) -> list[MessageInfo]:
        """Random ready messages, no one twice."""
        ...

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> Found:
        """Newest first, those that match below `before_sequence`, looking at no more than `scan_max` messages."""
        ...

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        """In which queue each of these messages is; those that are gone are left out."""
        ...

    def interrupt(self) -> None:
        """Make a read that runs in another thread fail with ReadDeadlineExceeded."""
        ...

    def close(self) -> None: ...


class WriteAheadLog(Protocol):
    """The log of an engine that has one: what is committed is moved from it into the database, beside the writer."""

    @property
    def reserve_path(self) -> str:
        """Where a file may lie that holds disk space ready for this store (jobs/disk_guard.py).

        What a killed process left there is removed when the store is opened: it may be what makes room for that.
        """
        ...

    def pages(self) -> int:
        """Pages in the log after the last commit."""
        ...

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """Move the log into the database, on a connection of its own; callable from any thread.

        truncate: also empty the log, which needs that no batch runs meanwhile. Raises StorageUnavailable.
        """
        ...


KEEP_NOTHING = "none"
"""The durability of a store that is thrown away with its process."""


class Engine(Protocol):
    """A store of messages; used from one thread at a time, except its log."""

    @property
    def durability(self) -> str:
        """What an answered command can rely on, in the words of FORQ_DURABILITY, or KEEP_NOTHING."""
        ...

    @property
    def log(self) -> WriteAheadLog | None:
        """None for an engine without a write-ahead log of its own."""
        ...

    def execute_batch(self, batch: Batch) -> BatchResult: ...

    def commit(self) -> bool:
        """Make the batch durable. False when the batch changed nothing and there was nothing to do."""
        ...

    def snapshot(self) -> Snapshot: ...

    def open_reader(self) -> Reader: ...

    def close(self) -> None:
        """Move the log into the database, where there is one, and close. Nothing may be called afterwards."""
        ...
