"""Commands of consumers: claims, and settlements of what was claimed."""

from enum import Enum, IntEnum

from msgspec import Struct

from forq_trio.model.command import Command, CommandOrder, Effect, Noted, Traits
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.model.messages.where import Where


def _receipts(command: "Ack | DiscardMessages | Nack | Extend | Release") -> int:
    return len(command.receipts)


def _claimed(command: "Claim") -> int:
    return command.max_messages


class RedrivePolicy(Struct, frozen=True, gc=False):
    """The redrive policy of one claim: a bound on deliveries and a dead-letter queue (Sasquatch, Dead Letter Queue).

    A message that was delivered `max_attempts` times (None: its own `default_max_receives`) is not delivered again but
    moved to `dead_letter_queue`. If that is "", or already has `messages_max` messages (None: no bound), the message
    goes to the dead-letter queue that its sender or its queue names, or is deleted.
    """

    max_attempts: int | None = None
    dead_letter_queue: str = ""
    messages_max: int | None = None


class Claim(Command[tuple[Delivery, ...]], frozen=True, gc=False):
    """Lease up to `max_messages` ready messages in claim order: priority (higher first), then position."""

    traits = Traits(CommandOrder.CLAIM, Effect.REPEATS, weighs=_claimed)

    queue: str
    max_messages: int
    lease_ms: int | None  # None means the queue's
    # how long the writer parks the claim if no message is ready; 0: answer at once with (), except that a claim
    # whose batch was full waits up to DEFERRED_CLAIM_SECONDS
    wait_ms: int = 0
    shuffle: bool = False  # random ready messages instead
    # None: only the bounds of the message and its queue hold
    redrive_policy: RedrivePolicy | None = None
    where: Where = ()  # only messages for which these conditions hold, () for any; not together with shuffle


class Claims(Enum):
    """Whose receipts settle a message."""

    CURRENT = "those of the latest claim, until the message is claimed again, settled or moved"
    LEASED = "those of the latest claim, while its lease lasts"
    ANY = "those of any claim, in the named queue; to extend a lease, only while that of the latest one lasts"


class Ack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts. Outcome per receipt: False if it is not the current one."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str | None  # None takes receipts of any queue
    receipts: tuple[Receipt, ...]
    message_id: str | None = None  # when given, there is one receipt and it must also belong to this message
    claims: Claims = Claims.CURRENT


class AckById(Command[bool], frozen=True, gc=False):
    """Remove a processing message by id alone, without fencing: for clients without receipts (F4).

    token: the token of the current claim, which fences it like `Ack`; for receipts of Forq itself, which do not contain
    the sequence number.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=1)

    queue: str
    message_id: str
    token: int | None = None


class Nacked(IntEnum):
    """What a nack did. The first two equal False and True, the outcomes of other settlements."""

    REFUSED = 0  # the receipt is not the current one
    RETURNED = 1  # the message is delivered again
    FAILED = 2  # that was its last attempt


class Nack(Command[tuple[Nacked, ...]], frozen=True, gc=False):
    """Return messages after a failed attempt: they are ready again after a delay, or fail at the last attempt."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts, noted=Noted.NACKS)

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int | None = None  # None means the back-off by attempt (1, 5, 15, 30, 60 s)
    reason: str | None = None  # stored as the last error, None for none
    message_id: str | None = None
    final: bool = False  # they fail now, however many attempts are left
    max_attempts: int | None = None  # their own bound from now on; None: it stays


class NackById(Command[bool], frozen=True, gc=False):
    """Nack a processing message by id, with the back-off by attempt. token: as for `AckById`."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=1, noted=Noted.NACKS)

    queue: str
    message_id: str
    token: int | None = None


class DiscardMessages(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts because their consumer gives up on them.

    reason: given by the consumer, stored as the last error in the history. Outcome per receipt: False if it is not the
    current one.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str
    receipts: tuple[Receipt, ...]
    reason: str


class Extend(Command[tuple[int | None, ...]], frozen=True, gc=False):
    """Let the leases end `lease_ms` from now (0: at once, the attempt counted).

    queue: None takes receipts of any queue. Outcome per receipt: the new end of the lease. None if the receipt is not
    current, if the message waits for its next attempt or has failed, or if the lease has ended and as many other
    messages are in process as the limits permit.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str | None
    receipts: tuple[Receipt, ...]
    lease_ms: int
    claims: Claims = Claims.CURRENT


class Release(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Undo claims: the messages are ready again at their old positions (or after delay_ms), the attempt uncounted."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int = 0
