"""Consumers of pipelines, and the leases that they read in."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.access.types import UNKNOWN
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.queries import Query
from forq_trio.model.values import Count, EpochMs, bounded

Generation = Annotated[int, bounded(1, limits.SEQUENCE_MAX, "The generation that the open returned.")]
Number = Annotated[
    int,
    bounded(
        1, limits.SEQUENCE_MAX, "The number of the lease; that of a new one is the newest number plus 1."
    ),
]
IdleSeconds = Annotated[
    int,
    bounded(
        limits.CONSUMER_IDLE_SECONDS_MIN,
        limits.CONSUMER_IDLE_SECONDS_MAX,
        "The open lease is given back after this many seconds without use; null: as set before, or else a day.",
    ),
]
MadeAt = Annotated[
    int, bounded(0, limits.SEQUENCE_MAX, "When that lease was made; null: any lease of that number.")
]
MaxMessages = Annotated[
    int, bounded(1, limits.CONSUMER_LEASE_MESSAGES_MAX, "The lease gets at most this many messages.")
]
MaxBytes = Annotated[
    int,
    bounded(
        1,
        limits.CONSUMER_LEASE_BYTES_MAX,
        "The lease is complete once its lines have this many bytes; null: 1 GiB.",
    ),
]

WaitMs = Annotated[
    int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for the first message, where none is ready.")
]


class LeaseTime(Struct, frozen=True, gc=False, rename="camel"):
    """When a lease was made, which tells it from others of its number."""

    number: int  # of the lease
    made_at: EpochMs  # 0: an earlier version made it without a time


class ConsumerInfo(Struct, frozen=True, gc=False, rename="camel"):
    """A consumer of a queue."""

    queue: str  # which it reads
    name: str  # unique in the queue
    generation: int  # grows when it is opened; only the latest may lease and acknowledge
    leased: Count  # the number of the newest lease, 0 for none
    acknowledged: Count  # all leases up to this number are settled
    complete: bool  # the newest lease gets no more messages
    open_messages: Count  # of the leases that are not settled
    open_bytes: Count  # of the leases that are not settled
    oldest_readable: Count  # the number of the oldest lease that can be read, 0 for none
    ready: Count  # messages of the queue that could be leased now
    opened_at: EpochMs  # when it was last opened
    used_at: EpochMs  # when it was last used
    # when the open lease is given back if the consumer is not used until then; null without one
    expires_at: EpochMs | None
    # the leases below this number that were not acknowledged were given back, 0 for none
    released_before: Count
    settling: bool  # the open lease is being acknowledged or given back; the same call goes on with that
    # the name of the access token that made it, empty for the server's secret, `?` where that was not stored
    made_by: str = UNKNOWN
    created_at: EpochMs | None = None  # when it was made; null where that was not stored
    # when the latest leases were made, by their numbers: those that are not settled or can be read, the one
    # before each of them, and the newest; those of which that is not known are left out
    leases: list[LeaseTime] = []


class ConsumerList(Struct, frozen=True, rename="camel"):
    """A page of consumers by queue and name."""

    consumers: list[ConsumerInfo]  # at most `limit`
    next: str | None = None  # the `after` of the next page; null at the end


class ConsumersQuery(Query, frozen=True, kw_only=True):
    """A page of the consumers of all queues."""

    after: Annotated[str, Meta(description="Only those after this one: `next` of the page before.")] = ""
    limit: Annotated[int, bounded(1, limits.QUEUES_PAGE_MAX, "How many consumers at most.")] = (
        limits.QUEUES_PAGE_MAX
    )


class LeasePageQuery(Query, frozen=True, kw_only=True):
    """Which pages of a lease are read."""

    page: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "The first page wanted.")] = 0
    pages: Annotated[
        int,
        bounded(
            1, limits.CONSUMER_READ_PAGES_MAX, "How many pages; fewer come if they have more than 4 MiB."
        ),
    ] = 1
    made_at: (
        Annotated[
            int,
            bounded(0, limits.SEQUENCE_MAX, "When the lease was made; without it any lease of this number."),
        ]
        | None
    ) = None


class OpenConsumerRequest(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """How to open a consumer."""

    idle_seconds: IdleSeconds | None = None  # null: its previous value, or a day


class LeaseRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which lease to make, or go on with."""

    generation: Generation
    number: Number
    # the leases up to this one are acknowledged first
    acknowledge: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Below `number`; null: none.")] | None = None
    acknowledge_made_at: MadeAt | None = None  # the `madeAt` of that lease
    max_messages: MaxMessages = limits.CONSUMER_LEASE_MESSAGES_DEFAULT
    max_bytes: MaxBytes | None = None  # null: 1 GiB
    wait_ms: WaitMs = 0
    # it may follow a complete lease that is not settled, one at most; and it is not complete for want of
    # messages, so that a later request adds those that are ready then
    ahead: bool = False


class AcknowledgeLease(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The lease to acknowledge, whose messages are removed."""

    generation: Generation
    number: Number
    made_at: MadeAt | None = None  # tells it from other leases of its number


class ConsumerLease(Struct, frozen=True, gc=False, rename="camel"):
    """How far a lease is."""

    number: int  # of the lease
    messages: Count  # which it has so far
    bytes: Count  # of their lines
    pages: Count  # in which they can be read
    complete: bool  # it gets no more; without messages there were none, and the lease is not made
    acknowledged: Count  # all leases up to this number are settled
    # when the last of its pages was made; null where it is not made. A server that was restored from a backup
    # gives out numbers again, at another time
    made_at: EpochMs | None = None
    waiting: bool = False  # it was made ahead, and little more is ready


class LeasePage(Struct, frozen=True):
    """Messages of a lease, in claim order. next: the page to go on with, None at the end."""

    messages: list[ExportedMessage]
    next: int | None = None
