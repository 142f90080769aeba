"""What can be asked of the writer actor. Every command names its outcome: `Command[Outcome]`.

Commands are plain values that have already been validated (`broker.py` does it); the storage engine executes them.
All commands of one batch were asked for before any of them was answered, so the engine may execute them in any
order; it does: sends, then settlements, then sweeps, then claims.
"""

from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct

from forq_trio.model import Delivery, NewMessage, Produced, Receipt

OutcomeT = TypeVar("OutcomeT")


class Command(Struct, Generic[OutcomeT], frozen=True, gc=False):
    """Base of all commands; OutcomeT is what its caller gets back."""


class Produce(Command[Produced], frozen=True, gc=False):
    """Store one message."""

    queue: str
    message: NewMessage


class ProduceMany(Command[tuple[Produced, ...]], frozen=True, gc=False):
    """Store several messages of one queue, all or none; outcomes in the order of the messages."""

    queue: str
    messages: tuple[NewMessage, ...]


class Claim(Command[tuple[Delivery, ...]], frozen=True, gc=False):
    """Lease up to `max_messages` ready messages in claim order: priority (higher first), then position.

    wait_ms: how long the writer parks the claim when there is nothing; 0 answers at once with ().
    """

    queue: str
    max_messages: int
    lease_ms: int
    wait_ms: int = 0


class Ack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts. False for a receipt that is not (or no longer) the current one.

    message_id: when given, there is one receipt and it must also belong to this message.
    """

    queue: str
    receipts: tuple[Receipt, ...]
    message_id: str | None = None


class Nack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Give the messages back after a failed attempt; they return after a delay, or fail at the last attempt.

    delay_ms: None means the back-off by attempt (1, 5, 15, 30, 60 s). reason: kept as the last error, None keeps none.
    """

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int | None = None
    reason: str | None = None
    message_id: str | None = None


class AckById(Command[bool], frozen=True, gc=False):
    """Remove a message in process by id alone, unfenced: the guide's behaviour for clients without receipts."""

    queue: str
    message_id: str


class NackById(Command[bool], frozen=True, gc=False):
    """Give back a message in process by id alone, unfenced, with the back-off by attempt."""

    queue: str
    message_id: str


class Extend(Command[tuple[int | None, ...]], frozen=True, gc=False):
    """Let the leases end `lease_ms` from now (0: at once, the attempt counted).

    Outcome per receipt: the new end of the lease, None for a receipt that is not current.
    """

    queue: str
    receipts: tuple[Receipt, ...]
    lease_ms: int


class Release(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Undo the claims: the messages are ready again at their old place (or after delay_ms), the attempt uncounted."""

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int = 0


class SweepKind(Enum):
    """The periodic clean-ups of contract F13. Each is a safety net for what the due timer does on time."""

    EXPIRED = "expired"
    EXPIRED_DLQ = "expired_dlq"
    FAILED = "failed"
    FAILED_DLQ = "failed_dlq"
    STALE = "stale"


class Swept(Struct, frozen=True, gc=False):
    """How many messages a sweep dealt with, and whether its bound may have left more."""

    count: int
    more: bool


class Sweep(Command[Swept], frozen=True, gc=False):
    """Run one clean-up, at most SWEEP_BATCH_MAX messages of it."""

    kind: SweepKind


class Optimize(Command[None], frozen=True, gc=False):
    """Let the database refresh its statistics (SQLite: PRAGMA optimize)."""


class Ping(Command[None], frozen=True, gc=False):
    """A real operation on the write connection that changes nothing: the health check."""
