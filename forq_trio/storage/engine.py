"""The one seam between the actors and the databases: plain synchronous functions, no waiting for anything but I/O.

Rules every engine keeps; the conformance suite checks them on each:

1. `execute_batch` runs all commands of a batch inside ONE transaction that it opens and leaves open; `commit` makes
   it durable. Nothing a batch did may be answered before its commit returned.
2. A command that fails alone (its outcome is an exception) leaves the others untouched.
3. If `execute_batch` raises StorageUnavailable the transaction is rolled back and the engine is as before the batch.
   If `commit` raises, what is on disk is unknown and the engine must not be used again.
4. Time is only what the batch says: `now_ms`. First the engine settles what fell due by then (delayed messages become
   ready, leases end, messages expire; at most DUE_BATCH_MAX of them), then the commands, then the claims: parked
   receivers before the batch's own claims, each in order.
5. Every change to a claimed message is fenced by its receipt. The current receipt is the one of the latest claim; it
   stays current after its lease ended until the message is claimed again, settled or moved.
6. The claim order within a queue is priority (higher first), then `position`, then `seq`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from forq_trio import limits
from forq_trio.commands import Claim, Command
from forq_trio.model import Delivery, MessageInfo, QueueCounts, QueueInfo


class EngineSettings(Struct, frozen=True, gc=False):
    """What an engine needs to know about the queue's rules; all times in milliseconds."""

    queue_ttl_ms: int = limits.QUEUE_TTL_HOURS_DEFAULT * limits.HOUR_MS
    dlq_ttl_ms: int = limits.DLQ_TTL_HOURS_DEFAULT * limits.HOUR_MS
    attempts_max: int = limits.ATTEMPTS_MAX_DEFAULT
    backoff_ms: tuple[int, ...] = limits.BACKOFF_MS


class Batch(Struct, frozen=True, gc=False):
    """What the writer wants done in one transaction.

    parked: per queue the receivers that wait for a message, first come first; the engine looks only at queues that
    have ready messages after the commands ran and that this batch touched.
    """

    commands: Sequence[Command[Any]]
    now_ms: int
    parked: Mapping[str, Sequence[Claim]] = {}


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
MOVED_TO_DLQ = "moved_to_dlq"  # reason: failed | expired
CLEANED_UP = "cleaned_up"  # reason: failed | expired | deleted_by_user
EVENT_KINDS = (PRODUCED, CONSUMED, ACKED, NACKED, RELEASED, STALE_RECOVERED, MOVED_TO_DLQ, CLEANED_UP)


class BatchResult(Struct, gc=False):
    """What came of a batch.

    outcomes: one per command, in order; an exception is the outcome of a command that failed alone.
    served: deliveries for parked receivers, by queue, as (index into parked[queue], deliveries).
    next_due_ms: no later than the next moment something falls due (it may be earlier: then the next batch finds
    nothing and says better); None when nothing ever will.
    failed_queued: failed messages now wait to be moved or deleted: nudge the sweeps.
    """

    outcomes: list[Any]
    served: dict[str, list[tuple[int, tuple[Delivery, ...]]]]
    next_due_ms: int | None
    events: list[Event]
    failed_queued: bool = False


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

    def interrupt(self) -> None:
        """Make a read that runs in another thread fail with ReadDeadlineExceeded."""
        ...

    def close(self) -> None: ...


class Engine(Protocol):
    """A store of messages; used from one thread at a time, except `checkpoint`."""

    durability: str
    """What an answered command can rely on, in the words of FORQ_DURABILITY; "none" for memory."""

    def execute_batch(self, batch: Batch) -> BatchResult: ...

    def commit(self) -> bool:
        """Make the batch durable. False when the batch changed nothing and there was nothing to do."""
        ...

    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue, as of the last batch. Costs nothing: kept in memory."""
        ...

    def open_reader(self) -> Reader: ...

    def log_pages(self) -> int:
        """Pages in the write-ahead log after the last commit; 0 for an engine without one."""
        ...

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """Move the log into the database, on a connection of its own; callable from any thread.

        truncate: also empty the log, which needs that no batch runs meanwhile.
        """
        ...

    def close(self) -> None:
        """Checkpoint and close. Nothing may be called afterwards."""
        ...
