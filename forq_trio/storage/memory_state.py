"""What the reference engine stores: immutable rows in plain dicts, and the few ways to look at them.

Every look goes through all rows. That is the point: there is no index here that could be wrong.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import msgspec

from forq_trio.model import MessageInfo, QueueCounts, QueueInfo, Status, is_dead_letter_queue


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored message. token: that of the current receipt, None when no receipt is current."""

    seq: int
    id: str
    queue: str
    content: str
    status: Status
    priority: int
    position: int
    received_at: int
    process_after: int
    updated_at: int
    expires_after: int
    attempts: int = 0
    max_attempts: int | None = None
    processing_started_at: int | None = None
    lease_until: int | None = None
    token: int | None = None
    failure_reason: str | None = None
    source_queue: str | None = None
    last_error: str | None = None

    @property
    def due_at(self) -> int | None:
        """When the clock next concerns this message; never for a failed one.

        A delayed message may expire before it falls due: its delay after a nack does not prolong its life.
        """
        match self.status:
            case Status.READY:
                return self.expires_after
            case Status.PROCESSING:
                return self.lease_until
            case Status.DELAYED:
                return min(self.process_after, self.expires_after)
            case Status.FAILED:
                return None

    def info(self) -> MessageInfo:
        return MessageInfo(
            id=self.id,
            queue=self.queue,
            sequence=self.seq,
            status=self.status,
            content=self.content,
            attempts=self.attempts,
            priority=self.priority,
            received_at=self.received_at,
            process_after=self.process_after,
            updated_at=self.updated_at,
            expires_after=self.expires_after,
            processing_started_at=self.processing_started_at,
            lease_until=self.lease_until,
            failure_reason=self.failure_reason,
            source_queue=self.source_queue,
            last_error=self.last_error,
        )


class FirstSend(NamedTuple):
    """What a deduplication id stands for until `expires_at`."""

    id: str
    seq: int
    expires_at: int


@dataclass
class State:
    """Everything that is stored. queues: every queue ever used, also those that are empty by now."""

    rows: dict[int, Row] = field(default_factory=dict)
    first_sends: dict[tuple[str, str], FirstSend] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    last_seq: int = 0

    def copy(self) -> Self:
        return replace(
            self, rows=self.rows.copy(), first_sends=self.first_sends.copy(), queues=self.queues.copy()
        )

    def of_queue(self, queue: str) -> list[Row]:
        return [row for row in self.rows.values() if row.queue == queue]

    def claimable(self, queue: str) -> list[Row]:
        """The ready messages in claim order."""
        ready = [row for row in self.of_queue(queue) if row.status is Status.READY]
        return sorted(ready, key=lambda row: (-row.priority, row.position, row.seq))

    def counts(self, queue: str) -> QueueCounts:
        by_status = Counter(row.status for row in self.of_queue(queue))
        return QueueCounts(
            ready=by_status[Status.READY],
            processing=by_status[Status.PROCESSING],
            failed=by_status[Status.FAILED],
            delayed=by_status[Status.DELAYED],
        )

    def info(self, queue: str) -> QueueInfo:
        """The queue without oldest_ready_at."""
        counts = self.counts(queue)
        return QueueInfo(
            queue=queue,
            is_dlq=is_dead_letter_queue(queue),
            ready=counts.ready,
            delayed=counts.delayed,
            processing=counts.processing,
            failed=counts.failed,
        )
