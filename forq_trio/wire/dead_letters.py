"""Dead letters: found, moved back, edited, removed; and redrives of all that match."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.wire.messages import Attributes, Content, MessageView
from forq_trio.wire.values import LEFT_OUT, Count, EpochMs, bounded, up_to

MessageIds = Annotated[list[str], up_to(limits.MOVE_BATCH_MAX, "Ids of messages of this queue.")]
Target = Annotated[str, Meta(description="The queue to go to; without it, the one each message came from.")]
AgeMs = Annotated[
    int, bounded(0, limits.SEARCH_AGE_MS_MAX, "Milliseconds since the message became a dead letter.")
]
Rate = Annotated[
    int, bounded(1, limits.REDRIVE_RATE_MAX, "How many to move a second; null: as fast as it goes.")
]


class DeadLetters(Struct, frozen=True, rename="camel"):
    """Those of the page that match, newest first, after looking at `searched` of the queue's `total` messages.

    nextBefore: `before` of the next page; null when the queue was searched to its end.
    """

    messages: list[MessageView]
    searched: Count
    total: Count
    next_before: int | None


class MovedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What became of one message: ok, or not and the code why."""

    id: str
    ok: bool
    code: Annotated[str | None, LEFT_OUT] = None


class MovedMessages(Struct, frozen=True, rename="camel"):
    """One result per id, in their order."""

    results: list[MovedMessage]


class RedriveMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to move back."""

    ids: MessageIds
    target: Target | None = None


class DeleteMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to remove for good."""

    ids: MessageIds


class Resubmission(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A copy to send: what is left out stays as it is. remove: the original goes in the same transaction."""

    content: Content | None = None
    attributes: Attributes | None = None
    target: Target | None = None
    remove: bool = False


class Resubmitted(Struct, frozen=True, gc=False, rename="camel"):
    """The copy."""

    id: str
    sequence: int


class DeadLetterFilter(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """What a message must be like; an empty filter matches all.

    reason: why it was dead-lettered, exactly. attributes: all of them, with these values. text: part of the content.
    """

    reason: str | None = None
    min_age_ms: AgeMs | None = None
    max_age_ms: AgeMs | None = None
    attributes: Attributes = {}
    text: str | None = None


class StartRedrive(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which messages to move where and how fast. dryRun: only count them."""

    filter: DeadLetterFilter
    target: Target | None = None
    rate_per_second: Rate | None = None
    dry_run: bool = False


class AppliedFilter(Struct, frozen=True, rename="camel"):
    """The filter of a task, its ages as times."""

    reason: str | None
    since: EpochMs | None
    until: EpochMs | None
    attributes: dict[str, str]
    text: str | None


class RedriveView(Struct, frozen=True, rename="camel"):
    """A redrive task as it stands.

    searched: how many messages were looked at, of the `total` at its start. matched: how many of them match and can be
    moved; skipped: how many match and cannot (in process, or nowhere to go). moved: how many were.
    """

    id: str
    queue: str
    state: Literal["running", "done", "cancelled", "failed"]
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
    finished_at: EpochMs | None
    error: str | None


class RedriveList(Struct, frozen=True, rename="camel"):
    """The tasks that run, and the latest that ended; the latest first."""

    redrives: list[RedriveView]
