"""Lifecycle events: what happened to messages, in the order of commits. In lists each is a line of NDJSON."""

from typing import Literal, get_args

import msgspec
from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

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
"""What is stored of a kind is its place here, so the order never changes; new ones come at the end."""


class MessageEvent(Struct, frozen=True, gc=False, rename="camel"):
    """What happened to one message."""

    id: int  # events have the ids 1, 2, 3 …, in the order of commits
    at: EpochMs  # when
    kind: EventKind
    queue: str  # where the message was
    message_id: str
    sequence: int
    attempt: Count  # the delivery that it is about, 0 before the first
    # of a nack what the consumer said; of dead_lettered failed, expired or overflow; of deleted
    # deleted_by_user, failed, overflow, dlq_full or consumer; ended_by_consumer where the consumer ended its
    # own lease
    reason: str | None
    target: str | None  # the queue that it went to (dead_lettered, requeued)
    received_at: EpochMs
    # of delivered, for how long it could have been claimed; of acked, nacked, released and lease_expired, for
    # how long it was claimed; below 0 where the server's clock was set back meanwhile
    duration_ms: int | None
    bytes: Count  # of content and attributes, with a key also those of the offer that waits behind it


read_events = msgspec.json.Decoder(MessageEvent).decode_lines
"""The events of lines. Raises MsgspecError."""
