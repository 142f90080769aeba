"""A message as a line of NDJSON: of the export of a queue, of its history, and of a page that a consumer leased."""

import msgspec
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.values import Count, EpochMs


class ExportedMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One message, with its content. Members that are absent have their default."""

    id: str
    queue: str
    sequence: int
    content: str
    received_at: EpochMs
    attempts: Count = 0  # deliveries so far; in a leased page this one is counted
    priority: int = limits.PRIORITY_DEFAULT
    group: str | None = None
    attributes: dict[str, str] | None = None
    state: str | None = None  # in the export of a queue, where the message is in its life
    # these 4: in a history, its place there, how the message ended (acked, discarded, expired, deleted), why,
    # and when
    history_id: int | None = None
    outcome: str | None = None
    reason: str | None = None
    finished_at: EpochMs | None = None
    key: str | None = None  # this and the next: in a history, those that it had
    kind: str | None = None
    source_queue: str | None = None  # these 4: of a dead letter, as in MessageInfo
    source_attempts: Count | None = None
    failure_reason: str | None = None
    dead_lettered_at: EpochMs | None = None


read_exported = msgspec.json.Decoder(ExportedMessage).decode_lines
"""The messages of lines. Raises MsgspecError."""
