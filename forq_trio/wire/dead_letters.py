"""Dead letters: searches, redrives, resubmits and deletions; and tasks that redrive or delete all that match."""

from typing import Annotated

from msgspec import Meta, Struct, field

from forq_trio.model import limits
from forq_trio.model.new_message import Attributes, Content
from forq_trio.model.redrives import RedriveAction, RedriveInfo
from forq_trio.model.values import LEFT_OUT, bounded, up_to
from forq_trio.wire.errors import Explanation

MessageIds = Annotated[list[str], up_to(limits.MOVE_BATCH_MAX, "Ids of messages of this queue.")]
Target = Annotated[str, Meta(description="The queue to go to; without it, the one each message came from.")]
AgeMs = Annotated[
    int, bounded(0, limits.SEARCH_AGE_MS_MAX, "Milliseconds since the message became a dead letter.")
]
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
    action: RedriveAction = "redrive"


class RedriveList(Struct, frozen=True, rename="camel"):
    """The tasks that run or are paused, and the latest that ended; the latest first."""

    redrives: list[RedriveInfo]
