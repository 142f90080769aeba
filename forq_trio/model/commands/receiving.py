"""Commands of consumers: claims, and settlements of what was claimed."""

from msgspec import Struct

from forq_trio.model.commands.base import Command, CommandOrder, Effect, Noted, Traits
from forq_trio.model.messages import Delivery, Receipt
from forq_trio.model.where import Where


def _receipts(command: "Ack | DiscardMessages | Nack | Extend | Release") -> int:
    return len(command.receipts)


def _claimed(command: "Claim") -> int:
    return command.max_messages


class RedrivePolicy(Struct, frozen=True, gc=False):
    """The redrive policy of one claim: a bound on deliveries, and where messages go then (Sasquatch, Dead Letter
    Queue).

    A message that was delivered `max_attempts` times (None: its own `default_max_receives`) is not handed out but moved
    to `dead_letter_queue`. Where that is "", or has `messages_max` messages already (None: no bound), it goes where its
    sender and its queue say: to their dead-letter queue, or it is deleted.
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
    # how long the writer parks the claim when no message is ready; 0 answers at once with (), except that a
    # claim for which its batch was full waits up to DEFERRED_CLAIM_SECONDS
    wait_ms: int = 0
    shuffle: bool = False  # random ready messages instead
    # None means that only the message's and the queue's own bounds hold
    redrive_policy: RedrivePolicy | None = None
    where: Where = ()  # only messages for which these conditions hold, () for any; not together with shuffle


class Ack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts. False for a receipt that is not (or no longer) the current one."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str | None  # None takes receipts of any queue
    receipts: tuple[Receipt, ...]
    message_id: str | None = None  # when given, there is one receipt and it must also belong to this message


class AckById(Command[bool], frozen=True, gc=False):
    """Remove a processing message by id alone, without fencing: for clients without receipts (F4).

    token: with it, it is fenced like `Ack`, by the token of the current claim; for receipts of Forq itself, which do
    not say the sequence.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=1)

    queue: str
    message_id: str
    token: int | None = None


class Nack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Give the messages back after a failed attempt; they return after a delay, or fail at the last attempt."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts, noted=Noted.NACKS)

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int | None = None  # None means the back-off by attempt (1, 5, 15, 30, 60 s)
    reason: str | None = None  # stored as the last error, None for none
    message_id: str | None = None
    final: bool = False  # they fail now, however many attempts are left


class NackById(Command[bool], frozen=True, gc=False):
    """Give back a processing message by id, with the back-off by attempt. token: as for `AckById`."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=1, noted=Noted.NACKS)

    queue: str
    message_id: str
    token: int | None = None


class DiscardMessages(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts, which their consumer gives up. False for one that is not current.

    reason: the consumer's own, stored as the last error in the history.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str
    receipts: tuple[Receipt, ...]
    reason: str


class Extend(Command[tuple[int | None, ...]], frozen=True, gc=False):
    """Let the leases end `lease_ms` from now (0: at once, the attempt counted).

    queue: None takes receipts of any queue. Outcome per receipt: the new end of the lease, None for a receipt that is
    not current, or whose lease has ended while as many others of its group are in process as may be.
    """

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str | None
    receipts: tuple[Receipt, ...]
    lease_ms: int


class Release(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Undo the claims: the messages are ready again at their positions (or after delay_ms), the attempt uncounted."""

    traits = Traits(CommandOrder.SETTLE, Effect.REPEATS, weighs=_receipts)

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int = 0
