"""Tasks over all dead letters that match a filter, as they are stored."""

from enum import Enum

from msgspec import Struct

from forq_trio.model.searches import MessageFilter


class RedriveAction(Enum):
    """What a task does with the messages that match: move them back, or remove them for good."""

    REDRIVE = "redrive"
    DELETE = "delete"


class RedriveState(Enum):
    """RUNNING and PAUSED go on, a FAILED one may; DONE and CANCELLED are for good."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


ENDED = frozenset({RedriveState.DONE, RedriveState.CANCELLED, RedriveState.FAILED})
"""The states in which a task does nothing by itself any more, and may be forgotten."""


class RedriveTask(Struct, frozen=True, kw_only=True, gc=False):
    """A task over all that match, and how far it has come.

    wanted: the filter, without the bound of its start. target: None moves each message to where it came from.
    started_by: the name of the access token, None for the holder of the server's secret or of the `Broker`.
    before_sequence: its cursor: what is at or above this sequence is done; None before the first page.
    searched: how many messages were looked at, of `total` in the queue at the start. matched: how many of them match
    and can be moved (or deleted); skipped: how many match and cannot, because they are processing or have no queue to
    go to. moved: how many were moved or deleted; fewer than matched at the end if others were faster with some.
    A dry run moves none. started_at, paused_at, finished_at: epoch ms. error: why it failed.
    """

    id: str
    queue: str
    action: RedriveAction = RedriveAction.REDRIVE
    wanted: MessageFilter
    target: str | None
    rate_per_second: int | None
    dry_run: bool
    started_by: str | None = None
    started_at: int
    total: int
    state: RedriveState = RedriveState.RUNNING
    before_sequence: int | None = None
    searched: int = 0
    matched: int = 0
    skipped: int = 0
    moved: int = 0
    paused_at: int | None = None
    finished_at: int | None = None
    error: str | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class RedriveStep(Struct, frozen=True, gc=False):
    """How far a task is once the messages of a command are moved; stored in the same transaction.

    task_id: the task; one that is not stored is ignored. The others: the new values of the task's members. To its
    `moved` the engine adds how many messages the command changed.
    """

    task_id: str
    before_sequence: int
    searched: int
    matched: int
    skipped: int
