"""Commands on pipeline consumers and their numbered leases."""

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.consumers.types import PipelineConsumer, Settling


class OpenConsumer(Command[PipelineConsumer], frozen=True, gc=False):
    """Open a consumer, or create it if there is none. Its generation grows, and older generations are fenced.

    Fails with TooManyConsumers.
    """

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
    idle_ms: int | None = None  # None: unchanged, or the default for a new one
    key: Key = SECRET  # the key whose share a new consumer counts towards


class SettleLease(Command[PipelineConsumer], frozen=True, gc=False):
    """Settle the next pages of the open lease, and drop some pages that can no longer be read.

    An acknowledgement of the lease after the open one settles the open one first; another command then goes on. It may
    be repeated. EXPIRE: only if the consumer is idle. Fails with ConsumerNotFound, ConsumerFenced, OtherLease,
    LeaseOutOfOrder, LeaseGone.
    """

    traits = Traits(
        CommandOrder.CONSUMERS, Effect.LASTS, weighs=limits.CONSUMER_STEP_MESSAGES_MAX, work=Work.LONG
    )

    queue: str
    name: str
    # None for any; a release without one raises the generation, which fences the client that opened the consumer
    generation: int | None
    number: int
    how: Settling
    # when lease `number` was made; None: not checked. Releasing a lease that is not open does nothing; a lease that
    # was made ahead is released together with the open one. A settlement stays in the mode in which it started.
    made_at: int | None = None


class LeaseMessages(Command[PipelineConsumer], frozen=True, gc=False):
    """Make the next pages of lease `number`, of up to CONSUMER_STEP_MESSAGES_MAX messages in claim order.

    A page has up to CONSUMER_PAGE_MESSAGES_MAX of them. The lease is complete once it has `max_messages` messages,
    `max_bytes` bytes of lines, or everything that was ready; a complete lease does not change. A lease without messages
    is not made. ahead: the lease may follow a complete lease that is not settled, and is not complete just because
    nothing more is ready. Fails with ConsumerNotFound, ConsumerFenced, LeaseOutOfOrder, LeaseGone, LeasesFull.
    """

    traits = Traits(
        CommandOrder.CONSUMERS,
        Effect.USES_RESERVE,
        weighs=limits.CONSUMER_STEP_MESSAGES_MAX,
        stores=limits.CONSUMER_STEP_BYTES_MAX,
        work=Work.LONG,
    )

    queue: str
    name: str
    generation: int
    number: int
    max_messages: int
    max_bytes: int
    ahead: bool = False


class MoveBack(Command[None], frozen=True, gc=False):
    """Move leased messages of a queue back into the table, where readers find them.

    Only those between two sequence numbers, both excluded. Fails with StorageFull while the disk has no space for that.
    """

    traits = Traits(
        CommandOrder.CONSUMERS, Effect.LASTS, weighs=limits.CONSUMER_STEP_MESSAGES_MAX, work=Work.LONG
    )

    queue: str
    above: int
    before: int


class DropPages(Command[PipelineConsumer | None], frozen=True, gc=False):
    """Delete some pages that can no longer be read; of an idle consumer also those that can.

    Outcome: the consumer, or None if there is none.
    """

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.LONG)

    queue: str
    name: str


class ForgetConsumer(Command[PipelineConsumer | None], frozen=True, gc=False):
    """Delete some pages of a consumer, and with the last of them the consumer, unless it has an open lease.

    generation: None in the first command, which raises the generation, so that clients have to open the consumer again.
    The following commands have the raised one, and fail with ConsumerFenced if the consumer was opened in between.
    Outcome: the consumer, or None once it is gone.
    """

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
    generation: int | None = None


class NoteConsumerUse(Command[None], frozen=True, gc=False):
    """Store that a consumer is used now; an unknown consumer is ignored."""

    traits = Traits(CommandOrder.CONSUMERS, Effect.REPEATS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
