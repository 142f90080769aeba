"""Dead letters: searches, redrives, resubmits and deletions; and tasks that redrive or delete all that match."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from forq_trio.model import limits
from forq_trio.model.dead_letters.redrives import RedriveAction, RedriveInfo
from forq_trio.model.error_answers import Explanation
from forq_trio.model.messages.new_message import Attributes, Content
from forq_trio.model.queries import Query
from forq_trio.model.values import LEFT_OUT, bounded, up_to

MessageIds = Annotated[list[str], up_to(limits.MOVE_BATCH_MAX, "Ids of messages of this queue.")]
Target = Annotated[str, Meta(description="The queue to go to; without it, the one each message came from.")]
_LENGTH = {"maxLength": limits.SEARCH_TEXT_LENGTH_MAX}
Rate = Annotated[int, bounded(1, limits.REDRIVE_RATE_MAX, "How many to move a second; null: no limit.")]


class MoveResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of one message."""

    id: str  # as it was given
    ok: bool  # false: it is refused, and code and message say why
    code: Annotated[str | None, LEFT_OUT] = None  # of the error
    message: Explanation = None


class MoveResults(Struct, frozen=True, rename="camel"):
    """One result per id, in their order."""

    results: list[MoveResult]  # of the ids, in their order


class RedriveMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to move back."""

    message_ids: MessageIds = field(name="ids")
    target: Target | None = None  # null: the queues that they came from


class DeleteMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to remove for good."""

    message_ids: MessageIds = field(name="ids")


class Resubmission(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A copy to send; absent members stay as they are."""

    content: Content | None = None  # null: the same
    attributes: Attributes | None = None  # all attributes of the copy; null: the same
    target: Target | None = None  # null: the queue that the message came from
    remove: bool = False  # delete the original in the same transaction


class DeadLetterFilter(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which dead letters match; an empty filter matches all."""

    reason: (
        Annotated[str, Meta(description="Why they were dead-lettered, exactly.", extra_json_schema=_LENGTH)]
        | None
    ) = None
    min_age_ms: (
        Annotated[
            int,
            bounded(
                0,
                limits.SEARCH_AGE_MS_MAX,
                "Dead-lettered, or finished, at least this many milliseconds ago.",
            ),
        ]
        | None
    ) = None
    max_age_ms: (
        Annotated[
            int,
            bounded(
                0, limits.SEARCH_AGE_MS_MAX, "Dead-lettered, or finished, at most this many milliseconds ago."
            ),
        ]
        | None
    ) = None
    attributes: Annotated[
        dict[str, str],
        Meta(
            description="The attributes they have, with these values; perhaps others, too.",
            extra_json_schema={"maxProperties": limits.ATTRIBUTES_MAX},
        ),
    ] = {}
    text: (
        Annotated[
            str, Meta(description="A text that their content contains exactly.", extra_json_schema=_LENGTH)
        ]
        | None
    ) = None
    error: (
        Annotated[
            str,
            Meta(
                description="Their last error, exactly; empty for those without one.",
                extra_json_schema=_LENGTH,
            ),
        ]
        | None
    ) = None
    error_like: (
        Annotated[
            str,
            Meta(
                description="Their last error, apart from numbers, ids and addresses: `after 10 s` finds `after 9 s`.",
                extra_json_schema={**_LENGTH, "minLength": 1},
            ),
        ]
        | None
    ) = None


AttributePairs = Annotated[
    dict[str, str],
    up_to(
        limits.ATTRIBUTES_MAX,
        "An attribute that they have, as key:value, split at the first colon. May be repeated; they must have all.",
    ),
]
SearchLimit = Annotated[int, bounded(1, limits.SEARCH_PAGE_MAX, "How many messages at most.")]


class DeadLettersQuery(Query, DeadLetterFilter, frozen=True, kw_only=True):
    """A filter, and where the page begins."""

    attributes: AttributePairs = field(default_factory=dict, name="attribute")
    before: (
        Annotated[
            int,
            bounded(
                1,
                limits.SEQUENCE_MAX,
                "Only those with a sequence below this: nextBefore of the page before.",
            ),
        ]
        | None
    ) = None
    limit: SearchLimit = limits.SEARCH_PAGE_DEFAULT

    def arguments(self) -> dict[str, Any]:
        return {"wanted": self, "before_sequence": self.before, "limit": self.limit}


class StartRedrive(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which messages to move, to which queue and how fast."""

    filter: DeadLetterFilter  # `{}` is all
    target: Target | None = None  # null: the queues that they came from
    rate_per_second: Rate | None = None  # null: no limit
    dry_run: bool = False  # only count them
    # `redrive` moves them; `delete` removes them for good, and takes no target
    action: RedriveAction = "redrive"


class RedriveList(Struct, frozen=True, rename="camel"):
    """The tasks that run or are paused, and the latest that ended; the latest first."""

    redrives: list[RedriveInfo]  # those that run or are paused, and the latest that ended; the latest first
