"""A message as a line of NDJSON: of the export of a queue, of its history, and of a page that a consumer leased."""

import msgspec
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.values import Count, EpochMs, Uuid


class ExportedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One message, with its content. Members that are absent have their default."""

    id: Uuid  # names the message
    queue: str  # where it is or was
    sequence: int  # grows in the order of arrival
    content: str  # as it was sent
    received_at: EpochMs  # when it was sent
    attempts: Count = 0  # deliveries so far; in a leased page this one is counted
    priority: int = limits.PRIORITY_DEFAULT  # as it was sent
    group: str | None = None  # as it was sent
    attributes: dict[str, str] | None = None  # as they were sent
    state: str | None = None  # in the export of a queue: ready, delayed, processing, held or failed
    history_id: int | None = None  # in a history, its place there
    outcome: str | None = None  # how it ended (acked, discarded, expired, deleted, cancelled)
    reason: str | None = None  # of one that was discarded: failed, overflow, dlq_full or consumer
    finished_at: EpochMs | None = None  # when it ended
    key: str | None = None  # in a history, the one that it had
    kind: str | None = None  # in a history, that of its key
    source_queue: str | None = None  # of a dead letter: where it came from
    source_attempts: Count | None = None  # of a dead letter: how many attempts it had there
    failure_reason: str | None = None  # of a dead letter: why it became one
    dead_lettered_at: EpochMs | None = None  # of a dead letter: when it became one


read_exported = msgspec.json.Decoder(ExportedMessage).decode_lines
"""The messages of lines. Raises MsgspecError."""
