"""Commands on pipeline consumers and their numbered leases."""

from forq_trio.model import limits
from forq_trio.model.access import SECRET, Key
from forq_trio.model.commands.base import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.consumers import PipelineConsumer, Settling


class OpenConsumer(Command[PipelineConsumer], frozen=True, gc=False):
    """Open a consumer, which is made if there is none: its generation grows, and older ones are fenced.

    Fails with TooManyConsumers.
    """

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
    idle_ms: int | None = None  # None for what it had, or the default
    key: Key = SECRET  # whose share a new one counts to


class SettleLease(Command[PipelineConsumer], frozen=True, gc=False):
    """Settle the next pages of the open lease, and drop some pages that can no longer be read.

    An acknowledgement names lease `number`, or the one behind it, which another command goes on with then; it may be
    repeated. EXPIRE: only if the consumer is idle. Fails with ConsumerNotFound, ConsumerFenced, OtherLease,
    LeaseOutOfOrder, LeaseGone.
    """

    traits = Traits(
        CommandOrder.CONSUMERS, Effect.LASTS, weighs=limits.CONSUMER_STEP_MESSAGES_MAX, work=Work.LONG
    )

    queue: str
    name: str
    # None for any; a release without one raises the generation, which fences the client that has the consumer
    # open
    generation: int | None
    number: int
    how: Settling
    # when lease `number` was made; None for whenever. Giving back a lease that is not open does nothing; one
    # that was made ahead of it is given back with it. A settlement keeps the mode it started with.
    made_at: int | None = None


class LeaseMessages(Command[PipelineConsumer], frozen=True, gc=False):
    """Make the next pages of lease `number`, of up to CONSUMER_STEP_MESSAGES_MAX messages in claim order.

    A page has up to CONSUMER_PAGE_MESSAGES_MAX of them. The lease is complete once it has `max_messages` messages,
    `max_bytes` bytes of lines, or all that were ready; a complete one is left as it is. A lease without messages is not
    made. ahead: it may follow a complete lease that is not settled, and what is ready does not complete it. Fails with
    ConsumerNotFound, ConsumerFenced, LeaseOutOfOrder, LeaseGone, LeasesFull.
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
    """Have the leased messages of a queue where readers find them: those between two sequences, both excluded.

    Fails with StorageFull while the disk has no space for that.
    """

    traits = Traits(
        CommandOrder.CONSUMERS, Effect.LASTS, weighs=limits.CONSUMER_STEP_MESSAGES_MAX, work=Work.LONG
    )

    queue: str
    above: int
    before: int


class DropPages(Command[PipelineConsumer | None], frozen=True, gc=False):
    """Delete some pages that can no longer be read, of an idle consumer all. Outcome: the consumer, or None."""

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.LONG)

    queue: str
    name: str


class ForgetConsumer(Command[PipelineConsumer | None], frozen=True, gc=False):
    """Delete some pages of a consumer, and with the last of them the consumer, unless it has an open lease.

    generation: the first command has None, which raises it, so that clients have to open the consumer again; those that
    follow have the raised one, and fail with ConsumerFenced if it was opened again. Outcome: the consumer while it is
    there, None when it is gone.
    """

    traits = Traits(CommandOrder.CONSUMERS, Effect.LASTS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
    generation: int | None = None


class NoteConsumerUse(Command[None], frozen=True, gc=False):
    """Store that a consumer is used now; one that is not known is ignored."""

    traits = Traits(CommandOrder.CONSUMERS, Effect.REPEATS, weighs=1, work=Work.PIPELINE)

    queue: str
    name: str
