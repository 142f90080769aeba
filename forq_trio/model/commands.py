"""What can be asked of the writer actor. Every command names its outcome: `Command[Outcome]`.

Commands are plain values that have already been validated (`broker.py` does it); the storage engine executes them.
All commands of one batch were asked for before any of them was answered, so the engine may execute them in any
order; it does: settings, then sends, then settlements, then moves and removals, then sweeps, then claims.
"""

from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.access import AccessToken
from forq_trio.model.errors import ServiceError
from forq_trio.model.messages import Delivery, NewMessage, Produced, Receipt
from forq_trio.model.queue_settings import QueueSettings, SettingsChange

OutcomeT = TypeVar("OutcomeT")


class Command(Struct, Generic[OutcomeT], frozen=True, gc=False):
    """Base of all commands; OutcomeT is what its caller gets back."""


class Produce(Command[Produced], frozen=True, gc=False):
    """Store one message, or fail with QueueFull."""

    queue: str
    message: NewMessage


class ProduceEach(Command[tuple[Produced | ServiceError, ...]], frozen=True, gc=False):
    """Store messages of several queues, each alone: one that is refused is answered with its error, the others stay.

    messages_max: also refuse, with QueueFull, what is sent to a queue that holds so many; None leaves it to the rules.
    """

    messages: tuple[tuple[str, NewMessage], ...]
    messages_max: int | None = None


class ProduceMany(Command[tuple[Produced, ...]], frozen=True, gc=False):
    """Store several messages of one queue, all or none (QueueFull); outcomes in the order of the messages."""

    queue: str
    messages: tuple[NewMessage, ...]


class RedrivePolicy(Struct, frozen=True, gc=False):
    """A consumer's own bound on deliveries, and where messages go beyond it (Sasquatch, Dead Letter Queue).

    A message already delivered `max_attempts` times is not handed out but moved to `dead_letter_queue`, or deleted
    where that is "", or holds `messages_max` messages already (None: no bound).
    """

    max_attempts: int
    dead_letter_queue: str = ""
    messages_max: int | None = None


class Claim(Command[tuple[Delivery, ...]], frozen=True, gc=False):
    """Lease up to `max_messages` ready messages in claim order: priority (higher first), then position.

    lease_ms: None means the queue's. wait_ms: how long the writer parks the claim when there is nothing; 0 answers at
    once with (). shuffle: random ready messages instead. redrive_policy: None means that only the message's and the
    queue's own bounds hold.
    """

    queue: str
    max_messages: int
    lease_ms: int | None
    wait_ms: int = 0
    shuffle: bool = False
    redrive_policy: RedrivePolicy | None = None


class Ack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts. False for a receipt that is not (or no longer) the current one.

    queue: None takes receipts of any queue. message_id: when given, there is one receipt and it must also belong to
    this message.
    """

    queue: str | None
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
    """Remove a message in process by id alone, unfenced: for clients without receipts (F4)."""

    queue: str
    message_id: str


class NackById(Command[bool], frozen=True, gc=False):
    """Give back a message in process by id alone, unfenced, with the back-off by attempt."""

    queue: str
    message_id: str


class Extend(Command[tuple[int | None, ...]], frozen=True, gc=False):
    """Let the leases end `lease_ms` from now (0: at once, the attempt counted).

    queue: None takes receipts of any queue. Outcome per receipt: the new end of the lease, None for a receipt that is
    not current.
    """

    queue: str | None
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


class Configure(Command[QueueSettings], frozen=True, gc=False):
    """Change the settings of a queue; outcome: what is set now. change: None forgets them all, but for the pause.

    Fails with InvalidSetting where dead letters would go round in a circle.
    """

    queue: str
    change: SettingsChange | None


class Pause(Command[None], frozen=True, gc=False):
    """Stop handing out messages of a queue, or (paused False) go on and serve who waits. Sends go on all the while."""

    queue: str
    paused: bool


class Purged(Struct, frozen=True, gc=False):
    """One part of a purge: how many messages were removed, and what the next part is to be asked with.

    up_to: for `Purge.up_to`; None when nothing is left.
    """

    count: int
    up_to: int | None


class Purge(Command[Purged], frozen=True, gc=False):
    """Remove up to PURGE_BATCH_MAX messages of a queue, in whatever status.

    up_to: None begins a purge of all that are in the queue before this batch; the outcome says how to go on, so that
    what is sent meanwhile stays.
    """

    queue: str
    up_to: int | None = None


class ForgetQueue(Command[bool], frozen=True, gc=False):
    """Forget an empty queue and its settings. False if it holds messages: nothing is changed then."""

    queue: str


class Redrive(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Move messages to `target`, or (None) each to the queue it came from: attempts, due time, TTL and reason reset.

    They keep their id, sequence, place and failures. Outcome per id: False for one that is not in `queue`, is in
    process, or has no queue to go to. Bounds on the target's length do not hold for it: an administrator asks.
    """

    queue: str
    message_ids: tuple[str, ...]
    target: str | None = None


class Delete(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove messages for good. Outcome per id: False for one that is not in `queue`, or is in process."""

    queue: str
    message_ids: tuple[str, ...]


class Resubmit(Command[Produced | None], frozen=True, gc=False):
    """Send a copy of a message to `target` (None: where it came from), edited, and remove the original if asked.

    content, attributes: None keeps the original's. The copy keeps priority, group, TTL and bounds. Outcome: None if
    the message is not in `queue`, has no queue to go to, or (with remove) is in process.
    """

    queue: str
    message_id: str
    content: str | None = None
    attributes: dict[str, str] | None = None
    target: str | None = None
    remove: bool = False


class SaveToken(Command[None], frozen=True, gc=False):
    """Store an access token. Fails with TokenExists when one of its name is stored that was not revoked."""

    token: AccessToken


class RevokeToken(Command[bool], frozen=True, gc=False):
    """Remove the token of this name; False if there is none."""

    name: str


class NoteTokenUse(Command[None], frozen=True, gc=False):
    """Keep when tokens were last used: epoch ms by name; names that are gone are ignored."""

    used: dict[str, int]


class Optimize(Command[None], frozen=True, gc=False):
    """Let the database refresh its statistics (SQLite: PRAGMA optimize)."""


class Ping(Command[None], frozen=True, gc=False):
    """A real operation on the write connection that changes nothing: the health check."""


def message_count(command: Command[Any]) -> int:
    """How many messages a command can touch: what bounds the length of a commit."""
    match command:
        case ProduceMany() | ProduceEach():
            return len(command.messages)
        case Claim():
            return command.max_messages
        case Redrive() | Delete():
            return len(command.message_ids)
        case Purge():
            return limits.PURGE_BATCH_MAX
        case Ack() | Nack() | Extend() | Release():
            return len(command.receipts)
        case _:
            return 1
