"""Redrive tasks, which move or delete all dead letters that match a filter."""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model.dead_letters.searches import AppliedFilter
from forq_trio.model.values import Count, EpochMs

RedriveAction = Literal["redrive", "delete"]
"""What a task does with the messages that match: move them back, or remove them for good."""
RedriveState = Literal["running", "paused", "done", "cancelled", "failed"]
"""The state of a task. A running or paused task goes on, and a failed one may be resumed; the others are final."""
ENDED: Collection[RedriveState] = ("done", "cancelled", "failed")
"""The states in which a task no longer does anything by itself, and may be forgotten."""


class ChangedRedrive(Struct, frozen=True, rename="camel"):
    """A redrive as the caller who starts or changes it sees it: without filter and counts.

    Those need `browse`: a filter may quote contents, and the number of matches tells whether a text occurs in one.
    """

    id: str  # names the task
    queue: str  # whose dead letters it takes
    action: RedriveAction  # what it does with matching messages
    state: RedriveState  # `done`, `cancelled` and `failed` are ends; a failed task may be resumed
    dry_run: bool  # it only counts
    target: str | None  # where they go; null: where each came from
    rate_per_second: int | None  # how many it moves a second at most; null: no limit
    total: Count  # how many messages the queue had at its start
    started_at: EpochMs  # when it was started
    started_by: str | None  # the name of the access token, null for the server's secret
    paused_at: EpochMs | None  # since when it is paused; null while it is not
    finished_at: EpochMs | None  # when it ended; null before


def done_to(task: ChangedRedrive) -> str:
    """What a task has done to a message, in a word."""
    return "deleted" if task.action == "delete" else "moved"


class RedriveInfo(ChangedRedrive, frozen=True, rename="camel"):
    """A redrive with its progress."""

    filter: AppliedFilter  # which messages it takes
    searched: Count  # how many of the `total` messages were read
    matched: Count  # how many of these match and can be moved or deleted
    skipped: Count  # how many match but cannot (processing, or without a queue to go to)
    moved: Count  # how many were moved or deleted
    error: str | None  # why it failed


class RedriveTask(RedriveInfo, frozen=True, kw_only=True, gc=False):
    """A task as it is stored.

    started_by: None also for calls of a program that embeds the broker. matched, moved: `moved` is the smaller one if
    others moved some first; in a dry run it is 0.
    """

    # its cursor: messages at or above this sequence number are done; None before the first page
    before_sequence: int | None = None
    walker: str = ""  # the id of the walk that takes its steps, made anew for each; "" while there is none
    # when that walk last reported that it is alive (epoch ms); after REDRIVE_SILENT_MS another may take the task over
    walked_at: int = 0

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class RedriveStep(Struct, frozen=True, gc=False):
    """The progress of a task after a command has moved messages; stored in the same transaction.

    It has the new values of the task's members, except `moved`, to which the engine adds how many messages the command
    changed. If the task is not running, or another walk has taken it over, the command fails with RedriveStateConflict
    and moves nothing.
    """

    task_id: str  # the task
    before_sequence: int | None
    searched: int
    matched: int
    skipped: int
    walker: str = ""  # the walk that takes the step


def after_step(task: RedriveTask, step: RedriveStep, moved: int, now_ms: int) -> RedriveTask:
    """The task after a step that moved or deleted `moved` messages."""
    return replace(
        task,
        before_sequence=step.before_sequence,
        searched=step.searched,
        matched=step.matched,
        skipped=step.skipped,
        moved=task.moved + moved,
        walked_at=now_ms,
    )
