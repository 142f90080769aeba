"""The history of finished messages: how each ended, what is stored of it, and how many there are."""

from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from forq_trio.model.messages.types import Failure
from forq_trio.model.values import Count

Outcome = Literal["acked", "discarded", "expired", "deleted", "cancelled"]
"""How a message ended: its consumer acknowledged it; it failed or was evicted, and was not moved to another queue, or
its consumer discarded it; its time to live ended; somebody deleted it, or purged its queue; somebody cancelled it while
it waited."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class FinishedMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message that is no longer in a queue, as it was at its end."""

    history_id: int  # its place in the history; grows in the order in which messages ended
    id: str
    queue: str
    sequence: int
    outcome: Outcome
    reason: str | None  # why it was discarded (failed, overflow, dlq_full, consumer); null for others
    finished_at: int  # when it ended
    content: str
    attempts: int
    priority: int
    received_at: int
    first_received_at: int | None = None
    last_error: str | None = None
    attributes: dict[str, str] = {}
    group: str | None = None
    failure_reason: str | None = None  # these 4: of a dead letter
    source_queue: str | None = None
    source_attempts: int | None = None
    dead_lettered_at: int | None = None
    failures: tuple[Failure, ...] = ()
    bytes: int = 0  # of content and attributes
    key: str | None = None  # this and the next: as the message had them
    kind: str | None = None


class HistoryCounts(NamedTuple):
    """How many finished messages of a queue are stored, and their bytes."""

    messages: int = 0
    bytes: int = 0


class FinishedPage(Struct, frozen=True, rename="camel"):
    """The messages of a page that match, newest first, after reading `searched` of the queue's `total` ones.

    nextBefore: the `before` of the next page; null when all were searched.
    """

    messages: list[FinishedMessage]
    searched: Count
    total: Count
    next_before: int | None
