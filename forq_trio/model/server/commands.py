"""Commands of the periodic jobs: sweeps, retention, maintenance of the database, the health check."""

from enum import Enum

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.queues.commands import PurgeStep


class SweepKind(Enum):
    """The periodic clean-ups of contract F13. Each is a safety net: the due timer does the same on time."""

    EXPIRED = "expired"
    EXPIRED_DLQ = "expired_dlq"
    FAILED = "failed"
    FAILED_DLQ = "failed_dlq"
    STALE = "stale"


class Removed(Struct, frozen=True, gc=False):
    """How many messages or events a step removed or moved, and whether its bound may have left more."""

    count: int
    more: bool


class Sweep(Command[Removed], frozen=True, gc=False):
    """Run one clean-up on at most SWEEP_BATCH_MAX messages."""

    traits = Traits(CommandOrder.SWEEP, Effect.REPEATS, weighs=limits.SWEEP_BATCH_MAX)

    kind: SweepKind


class PurgeHistory(Command[PurgeStep], frozen=True, gc=False):
    """Remove the oldest finished messages of a queue from the history, as many as one step takes.

    up_to: the last history id to remove; None begins a purge of all that ended before this command. The outcome has the
    `up_to` of the next step.
    """

    traits = Traits(CommandOrder.HISTORY, Effect.LASTS, weighs=limits.HISTORY_STEP_MESSAGES, work=Work.LONG)

    queue: str
    up_to: int | None = None


class TrimHistory(Command[Removed], frozen=True, gc=False):
    """Remove the oldest finished messages, as many as `retention_steps` take.

    That is, those that ended before `finished_before` (epoch ms), and those beyond `bytes_max` bytes of content and
    attributes in all.
    """

    traits = Traits(CommandOrder.HISTORY, Effect.REPEATS, weighs=limits.HISTORY_STEP_MESSAGES, work=Work.LONG)

    finished_before: int
    bytes_max: int


class TrimEvents(Command[Removed], frozen=True, gc=False):
    """Remove the oldest lifecycle events, `retention_steps` times EVENTS_TRIMMED_MAX, and never the newest one.

    That is, those that happened before `before_ms` (epoch ms), and those beyond `bytes_max` bytes. Only the beginning
    of the log is removed, up to the first event that has to stay.
    """

    traits = Traits(CommandOrder.EVENTS, Effect.REPEATS, weighs=1, work=Work.LONG)

    before_ms: int
    bytes_max: int


class Compacted(Struct, frozen=True, gc=False):
    """The result of a step of a compaction."""

    pages: int  # how many pages it gave back
    free_pages: int  # how many free pages the file still has


class Compact(Command[Compacted], frozen=True, gc=False):
    """Give up to `pages` free pages of the database back to the disk, as far as one step goes.

    Gives none back for an engine without pages, or for a file that cannot.
    """

    traits = Traits(CommandOrder.UPKEEP, Effect.REPEATS, weighs=1, work=Work.LONG)

    pages: int


class Optimize(Command[None], frozen=True, gc=False):
    """Let the database refresh its statistics (SQLite: PRAGMA optimize)."""

    traits = Traits(CommandOrder.UPKEEP, Effect.REPEATS, weighs=1)


class Ping(Command[None], frozen=True, gc=False):
    """The health check: a real operation on the write connection that changes nothing."""

    traits = Traits(CommandOrder.UPKEEP, Effect.LASTS, weighs=1)
