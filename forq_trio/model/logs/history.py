"""The history of finished messages: how each ended, what is stored of it, and how many there are."""

from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from forq_trio.model.messages.types import Failure
from forq_trio.model.values import Count, Uuid

Outcome = Literal["acked", "discarded", "expired", "deleted", "cancelled"]
"""How a message ended: its consumer acknowledged it; it failed or was evicted, and was not moved to another queue, or
its consumer discarded it; its time to live ended; somebody deleted it, or purged its queue; somebody cancelled it."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
DISCARD_REASONS = ("failed", "overflow", "dlq_full", "consumer")
"""Why a message was discarded: there are no other reasons."""


class FinishedMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message that is no longer in a queue, as it was at its end."""

    history_id: int  # its place in the history; grows in the order in which messages ended
    id: Uuid  # names the message
    queue: str  # where it was
    sequence: int  # grows in the order of arrival
    outcome: Outcome  # how it ended
    reason: str | None  # why it was discarded (failed, overflow, dlq_full, consumer); null for others
    finished_at: int  # when it ended (epoch ms)
    content: str  # as it was sent
    attempts: int  # how often it was delivered
    priority: int  # as it was sent
    received_at: int  # when it was sent (epoch ms)
    first_received_at: int | None = None  # when it was first delivered (epoch ms); null if it never was
    last_error: str | None = None  # the reason of its last nack, or for which it was discarded or cancelled
    attributes: dict[str, str] = {}  # as they were sent
    group: str | None = None  # as it was sent
    failure_reason: str | None = None  # of a dead letter: why it became one
    source_queue: str | None = None  # of a dead letter: where it came from
    source_attempts: int | None = None  # of a dead letter: how many attempts it had there
    dead_lettered_at: int | None = None  # of a dead letter: when it became one (epoch ms)
    failures: tuple[Failure, ...] = ()  # its latest 20 failed attempts
    bytes: int = 0  # of content, attributes and result
    key: str | None = None  # the one that it had; null for none
    kind: str | None = None  # that of its key; null without one
    result: str | None = None  # what its consumer gave with the ack
    kept_until: int | None = None  # until when retention by age leaves it because of its result (epoch ms)


class HistoryCounts(NamedTuple):
    """How many finished messages of a queue are stored, and their bytes."""

    messages: int = 0
    bytes: int = 0


class FinishedPage(Struct, frozen=True, rename="camel"):
    """A page of the finished messages that match, newest first."""

    messages: list[FinishedMessage]  # those that match
    searched: Count  # how many messages this page read
    total: Count  # how many the history has of the queue
    next_before: int | None  # the `before` of the next page; null when all were searched
