"""Relays of outboxes, and messages that were set aside."""

from typing import Annotated

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.outboxes.types import RelayedMessage
from forq_trio.model.queries import Query
from forq_trio.model.values import bounded, up_to


class RelayRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The next messages of an outbox, by growing ids, and the position before them."""

    after: Annotated[
        int, bounded(0, limits.SEQUENCE_MAX, "The stored position; if another is stored, nothing is done.")
    ]
    messages: Annotated[list[RelayedMessage], up_to(limits.OUTBOX_PAGE_MAX, "By growing ids.")]


class SetAsideQuery(Query, frozen=True, kw_only=True):
    """A page of messages that were set aside."""

    after: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only messages with ids above this.")] = 0
    limit: Annotated[int, bounded(1, limits.SET_ASIDE_PAGE_MAX, "How many messages at most.")] = (
        limits.SET_ASIDE_PAGE_DEFAULT
    )


class SetAsidePage(Struct, frozen=True):
    """Messages that were set aside; empty at the end."""

    messages: list[SetAside]  # by id, at most 4 MiB of them


class SetAsideIds(Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the messages that were set aside."""

    ids: Annotated[list[int], up_to(limits.SET_ASIDE_PAGE_MAX, "Ids of messages that were set aside.")]


class SetAsideCount(Struct, frozen=True):
    """How many of these ids were found."""

    count: int  # of the ids that were given
