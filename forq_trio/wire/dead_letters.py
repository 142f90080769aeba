"""Dead letters: searches, redrives, resubmits and deletions; and tasks that redrive or delete all that match."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from forq_trio.model import limits
from forq_trio.model.messages import Attributes, Content
from forq_trio.model.values import LEFT_OUT, Count, EpochMs, bounded, up_to
from forq_trio.wire.errors import Explanation

MessageIds = Annotated[list[str], up_to(limits.MOVE_BATCH_MAX, "Ids of messages of this queue.")]
Target = Annotated[str, Meta(description="The queue to go to; without it, the one each message came from.")]
AgeMs = Annotated[
    int, bounded(0, limits.SEARCH_AGE_MS_MAX, "Milliseconds since the message became a dead letter.")
]
Action = Literal["redrive", "delete"]
Rate = Annotated[int, bounded(1, limits.REDRIVE_RATE_MAX, "How many to move a second; null: no limit.")]


class MoveResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of one message: ok, or not ok, with code and message why."""

    id: str
    ok: bool
    code: Annotated[str | None, LEFT_OUT] = None
    message: Explanation = None


class MoveResults(Struct, frozen=True, rename="camel"):
    """One result per id, in their order."""

    results: list[MoveResult]


class RedriveMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to move back."""

    message_ids: MessageIds = field(name="ids")
    target: Target | None = None


class DeleteMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to remove for good."""

    message_ids: MessageIds = field(name="ids")


class Resubmission(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A copy to send; absent members stay as they are. remove: delete the original in the same transaction."""

    content: Content | None = None
    attributes: Attributes | None = None
    target: Target | None = None
    remove: bool = False


class DeadLetterFilter(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which dead letters match; an empty filter matches all.

    reason: why it was dead-lettered, exactly. attributes: those it must have, with these values. text: part of the
    content, exactly. error: the last error, exactly; "" for those without one. errorLike: the last
    error, numbers, ids and addresses aside.
    """

    reason: str | None = None
    min_age_ms: AgeMs | None = None
    max_age_ms: AgeMs | None = None
    attributes: Attributes = {}
    text: str | None = None
    error: str | None = None
    error_like: str | None = None


class StartRedrive(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which messages to move, to which queue and how fast. dryRun: only count them.

    action: delete removes them for good instead; it takes no target.
    """

    filter: DeadLetterFilter
    target: Target | None = None
    rate_per_second: Rate | None = None
    dry_run: bool = False
    action: Action = "redrive"


class AppliedFilter(Struct, frozen=True, rename="camel"):
    """The filter of a task, with times instead of ages. aboveSequence: only messages with a greater sequence."""

    reason: str | None
    since: EpochMs | None
    until: EpochMs | None
    attributes: dict[str, str]
    text: str | None
    error: str | None
    above_sequence: int | None
    error_like: str | None = None


class RedriveInfo(Struct, frozen=True, rename="camel"):
    """A task over dead letters, with its progress.

    action: what it does with those that match. startedBy: the name of the access token, null for the server's secret.
    searched: how many messages were read, of the `total` at its start. matched: how many of them match and can be
    moved or deleted; skipped: how many match and cannot (processing, or without a queue to go to). moved: how many were
    moved or deleted. error: why it failed.
    """

    id: str
    queue: str
    action: Action
    state: Literal["running", "paused", "done", "cancelled", "failed"]
    dry_run: bool
    filter: AppliedFilter
    target: str | None
    rate_per_second: int | None
    searched: Count
    total: Count
    matched: Count
    skipped: Count
    moved: Count
    started_at: EpochMs
    started_by: str | None
    paused_at: EpochMs | None
    finished_at: EpochMs | None
    error: str | None


class RedriveList(Struct, frozen=True, rename="camel"):
    """The tasks that run or are paused, and the latest that ended; the latest first."""

    redrives: list[RedriveInfo]
