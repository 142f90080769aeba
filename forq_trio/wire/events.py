"""Lifecycle events: what happened to messages, in the order of commits. In lists each is a line of NDJSON."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from forq_trio.model.events import EventKind
from forq_trio.model.values import Count, EpochMs


class MessageEvent(Struct, frozen=True, gc=False, rename="camel"):
    """What happened to one message.

    id: events have the ids 1, 2, 3 …, in the order of commits. at: when. queue: where the message was. attempt: the
    delivery that it is about, 0 before the first. reason: of a nack what the consumer said; of dead_lettered failed,
    expired or overflow; of deleted deleted_by_user, failed, overflow or dlq_full; ended_by_consumer where the consumer
    ended its own lease. target: the queue that it went to (dead_lettered, requeued). durationMs: of delivered, for how
    long it could have been claimed; of acked, nacked, released and lease_expired, for how long it was claimed; below 0
    where the server's clock was set back meanwhile. bytes: of content and attributes.
    """

    id: int
    at: EpochMs
    kind: EventKind
    queue: str
    message_id: str
    sequence: int
    attempt: Count
    reason: str | None
    target: str | None
    received_at: EpochMs
    duration_ms: int | None
    bytes: Count


class EventPage(Struct, frozen=True, gc=False):
    """Events, oldest first. next: pass it as `after` to go on. first, last: the ids of the events that are kept."""

    events: list[MessageEvent]
    next: int
    first: int
    last: int


class EventRange(Struct, frozen=True, gc=False):
    """Whether new events are kept, and the ids of the oldest and the newest one; first is last + 1 where none is."""

    enabled: bool
    first: int
    last: int


_decoder = msgspec.json.Decoder(MessageEvent)


def read_lines(lines: bytes) -> list[MessageEvent]:
    """The events of NDJSON. Raises MsgspecError."""
    return _decoder.decode_lines(lines)


def json_list(lines: Iterable[bytes]) -> bytes:
    """Lines of NDJSON as one list."""
    return b"[" + b",".join(lines) + b"]"
