"""Message batches: the queries and bodies that have no type of the model."""

from typing import Annotated

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.message_batches.types import AddressedMessage
from forq_trio.model.queries import Query
from forq_trio.model.values import bounded, up_to


class AddMembers(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to store as members of a batch."""

    messages: Annotated[
        list[AddressedMessage],
        up_to(limits.PRODUCE_BATCH_MAX, "Each with its queue; at most 4 MiB together."),
    ]


class MessageBatchesQuery(Query, frozen=True, kw_only=True):
    """A page of batches."""

    before: (
        Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only older batches: `next` of the page before.")]
        | None
    ) = None
    limit: Annotated[int, bounded(1, limits.MESSAGE_BATCHES_PAGE_MAX, "How many batches at most.")] = (
        limits.MESSAGE_BATCHES_PAGE_DEFAULT
    )
