"""Lifecycle events: what happened to messages, in the order of commits. Lists have each event as a line of NDJSON."""

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from forq_trio.model.values import Count, EpochMs, Uuid

EventKind = Literal[
    "produced",
    "delivered",
    "acked",
    "nacked",
    "released",
    "extended",
    "lease_expired",
    "dead_lettered",
    "requeued",
    "expired",
    "deleted",
    "cancelled",
    "updated",
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""A kind is stored as its index in this list, so the order never changes, and new kinds come at the end."""


class MessageEvent(Struct, frozen=True, gc=False, rename="camel"):
    """What happened to one message."""

    id: int  # events have the ids 1, 2, 3 …, in the order of commits
    at: EpochMs  # when
    kind: EventKind  # what happened
    queue: str  # where the message was
    message_id: Uuid  # which one
    sequence: int  # of the message
    attempt: Count  # the delivery that it is about, 0 before the first
    # for a nack the reason that the consumer gave; for dead_lettered: failed, expired or overflow; for
    # deleted: deleted_by_user, failed, overflow, dlq_full or consumer; for lease_expired: ended_by_consumer
    # if the consumer ended its own lease
    reason: str | None
    target: str | None  # the queue that it went to (dead_lettered, requeued)
    received_at: EpochMs  # when the message was sent
    # for delivered, how long the message was ready; for acked, nacked, released and lease_expired, how long
    # it was claimed; below 0 if the server's clock was set back in between
    duration_ms: int | None
    bytes: Count  # of content and attributes, and of an offer that waits behind it


read_events = msgspec.json.Decoder(MessageEvent).decode_lines
"""Decodes the events in lines. Raises MsgspecError."""
