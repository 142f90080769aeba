"""Keyed messages: offers in batches and their results, and the other requests; the rest are the model's types."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.error_answers import Explanation, Field
from forq_trio.model.keys.types import Offering, Outcome, Revision
from forq_trio.model.messages.new_message import DelayMs, ProcessAfter
from forq_trio.model.queries import Query
from forq_trio.model.values import LEFT_OUT, Count, EpochMs, Uuid, bounded, up_to

_A_KIND = Meta(extra_json_schema={"maxLength": limits.KIND_LENGTH_MAX})
_Kind = Annotated[
    str, _A_KIND, Meta(description="The kind of the key; keys of different kinds are different keys.")
]


class KindQuery(Query, frozen=True, kw_only=True):
    """The key of which kind is meant."""

    kind: _Kind = ""


class DropKeyQuery(KindQuery, frozen=True, kw_only=True):
    """What of a key is removed. With a revision nothing waits behind the message, so the two exclude each other."""

    revision: (
        Annotated[int, bounded(1, limits.SEQUENCE_MAX, "Only if the message still has this revision.")] | None
    ) = None
    once_more: Annotated[
        bool, Meta(description="Only the offer that waits behind the message in process.")
    ] = False


class DropKeysQuery(KindQuery, frozen=True, kw_only=True):
    """The keys of which kind are removed."""

    confirm: Annotated[str, Meta(description="The name of the queue; without it nothing is removed.")] = ""


class KeysQuery(Query, frozen=True, kw_only=True):
    """Which keys are wanted, and how many."""

    prefix: Annotated[
        str,
        Meta(
            description="Only keys that begin with this.",
            extra_json_schema={"maxLength": limits.KEY_LENGTH_MAX},
        ),
    ] = ""
    kind: (
        Annotated[str, _A_KIND, Meta(description="Only keys of this kind; without it, of all kinds.")] | None
    ) = None
    after: (
        Annotated[str, Meta(description="Only what comes after this: `next` of the page before.")] | None
    ) = None
    limit: Annotated[int, bounded(1, limits.BROWSE_PAGE_MAX, "How many messages at most.")] = (
        limits.BROWSE_PAGE_MAX
    )


class Offerings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Offers in one commit; at most 4 MiB of content in all. A key may occur more than once."""

    messages: Annotated[list[Offering], up_to(limits.PRODUCE_BATCH_MAX, "Offered in this order.")]


class OfferResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of an offer of a batch: the members of `Offered`, or why it was refused."""

    outcome: Annotated[Outcome | None, LEFT_OUT] = None  # `ignored`: the message did not change
    id: Annotated[Uuid | None, LEFT_OUT] = None  # of the message that the key has now
    sequence: Annotated[int | None, LEFT_OUT] = None  # of the same message
    process_after: Annotated[EpochMs | None, LEFT_OUT] = None  # when it is due
    revision: Annotated[Revision | None, LEFT_OUT] = None
    once_more: Annotated[bool, LEFT_OUT] = False  # the offer waits behind the message in process
    code: Annotated[str | None, LEFT_OUT] = None  # why it was refused
    field: Field = None  # a path into the offer
    message: Explanation = None


class OfferResults(Struct, frozen=True, rename="camel"):
    """One result per offer, in their order."""

    results: list[OfferResult]  # of the offers, in their order


class RescheduleRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """When a keyed message is due from now on: one of the two times."""

    process_after: ProcessAfter | None = None  # null: `delayMs` is given
    delay_ms: DelayMs | None = None  # null: `processAfter` is given
    once_more: bool = False  # of the offer that waits behind the message in process


class Dropped(Struct, frozen=True, gc=False, rename="camel"):
    """How many messages were removed."""

    dropped: Count  # how many there were
