"""Keyed messages: offers under a key, their results, and keys as callers see them.

A key is unique per queue and kind while its message is pending: ready, delayed, held, in process, or failed and not
yet moved.
"""

from typing import Annotated, Any, Literal, Self, TypedDict

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.messages.new_message import (
    OPTIONS,
    Attributes,
    Content,
    DeadLetterQueue,
    DelayMs,
    Group,
    MaxAttempts,
    NewMessage,
    Priority,
    ProcessAfter,
    TtlMs,
)
from forq_trio.model.values import LEFT_OUT, Count, EpochMs, Uuid, bounded, text_up_to

Mode = Literal["create", "createOrUpdate", "createIfAbsent", "debounce", "onceMore"]
"""What an offer does if its key is pending.

create: it is refused with KeyExists. createOrUpdate: it changes the message; a message in process becomes claimable
again, and its receipt ends. createIfAbsent: it does nothing. debounce: it changes the message and moves its due time.
onceMore: it changes the message; while that is in process, the offer waits and is delivered after it.
"""

Outcome = Literal["created", "updated", "ignored"]
"""The result of an offer. ignored: the message did not change."""

MessageKey = Annotated[
    str,
    text_up_to(
        limits.KEY_LENGTH_MAX, "Any characters but NUL. Unique per queue and kind while it is pending."
    ),
]
KeyKind = Annotated[
    str,
    Meta(
        description="Separates keys of one queue. Any characters but NUL.",
        extra_json_schema={"maxLength": limits.KIND_LENGTH_MAX},
    ),
]
MaxWaitMs = Annotated[
    int,
    bounded(
        1, limits.MAX_WAIT_MS_MAX, "With debounce: how long after the first offer it is due at the latest."
    ),
]
Revision = Annotated[int, Meta(description="Grows with each update.", extra_json_schema={"minimum": 1})]


class OfferOptions(TypedDict, total=False):
    """The options of an offered message, as keywords of `offer`."""

    process_after: int | None
    delay_ms: int | None
    priority: int
    ttl_ms: int | None
    attributes: dict[str, str] | None
    group: str | None
    max_attempts: int | None
    dead_letter_queue: str | None


class Offer(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A message to offer under a key, and what to do if the key is pending."""

    content: Content
    # if the key is pending: `create` is refused with 409 `conflict.key_exists`. `createIfAbsent` leaves the
    # message as it is. `createOrUpdate` changes it, unless content, due time and options are the same; one in
    # process is claimable again, and its receipt is void. `debounce` replaces content and options, and it is
    # due `delayMs` from now, but one that is due stays due; while it is in process the offer waits behind it.
    # `onceMore` is like `createOrUpdate`, but while it is in process the offer waits behind it
    mode: Mode = "createOrUpdate"
    max_wait_ms: MaxWaitMs | None = None  # only with `debounce`; null: no bound
    process_after: ProcessAfter | None = None  # null: at once, or after the queue's delay
    delay_ms: DelayMs | None = None  # null: the queue's; `debounce` needs it
    priority: Priority = limits.PRIORITY_DEFAULT
    ttl_ms: TtlMs | None = None
    attributes: Attributes | None = None
    group: Group | None = None
    max_attempts: MaxAttempts | None = None
    dead_letter_queue: DeadLetterQueue | None = None

    @property
    def message(self) -> NewMessage:
        """The message without the members of an offer."""
        return NewMessage(self.content, **{name: getattr(self, name) for name in _OPTION_NAMES})


_OPTION_NAMES = tuple(name for name in OPTIONS if name in Offer.__struct_fields__)


class Offering(
    Offer, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """An offer, with its key."""

    key: MessageKey
    kind: KeyKind = ""

    @classmethod
    def of(cls, key: str, kind: str, offer: Offer) -> Self:
        """An offer for this key."""
        members: dict[str, Any] = {name: getattr(offer, name) for name in Offer.__struct_fields__}
        return cls(key=key, kind=kind, **members)


class Offered(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of an offer."""

    outcome: Outcome  # `ignored`: the message did not change
    id: Uuid  # of the message that the key has now
    sequence: int  # of the same message
    process_after: EpochMs  # when it is due
    revision: Revision
    # the offer waits behind the message in process: id and sequence are those of that message, processAfter
    # and revision those of the offer
    once_more: Annotated[bool, LEFT_OUT] = False


class KeyInfo(Struct, frozen=True, gc=False, rename="camel"):
    """The key of a message."""

    key: str  # unique per queue and kind while its message is pending
    kind: str  # empty for no kind
    revision: Revision
    mode: Mode  # of its latest offer
    offers: Count  # how many there were since the message was created
    first_offer_at: EpochMs  # when it was created
    last_offer_at: EpochMs  # when it was last offered
    # the latest time at which a debounced message is due; null for no bound
    max_wait_until: EpochMs | None = None


class OnceMore(Struct, frozen=True, gc=False, rename="camel"):
    """An offer that waits behind the message in process, and is delivered after it under the same key."""

    content: str  # as it was offered
    attributes: dict[str, str]  # as they were offered
    process_after: EpochMs  # when it is due
    revision: Revision
    offers: Count  # how many there were since the first that waits
    offered_at: EpochMs  # when the latest was made
