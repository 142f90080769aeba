"""Commands on messages with a key."""

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.errors import ForqError
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.queues.commands import PurgeStep


def _bytes_of_all(command: "OfferMany") -> int:
    return sum([bytes_of(offering.content, offering.attributes) for offering in command.offerings])


def _weight(command: "OfferMany") -> int:
    return limits.LONE_SEND_WEIGHT * len(command.offerings)


class OfferMany(Command[tuple[Offered | ForqError, ...]], frozen=True, gc=False):
    """Offer messages by their keys, one by one in this order: a repeated key meets what the first offer left.

    The outcome of a refused offer is its error: KeyExists, QueueFull, Overloaded. If the offers replace many bytes, the
    first ones run in this batch, and the others in the next ones.
    """

    traits = Traits(CommandOrder.OFFER, Effect.GROWS, weighs=_weight, stores=_bytes_of_all, parts="offerings")

    queue: str
    offerings: tuple[Offering, ...]


class RescheduleKey(Command[Offered | None], frozen=True, gc=False):
    """Change only the due time of a key's message, or with once_more that of the offer that waits behind it.

    Outcome: None if there is none. Fails with MessageInFlight for a message that is in process, or that has failed and
    is about to be moved.
    """

    traits = Traits(CommandOrder.KEYS, Effect.LASTS, weighs=1)

    queue: str
    key: str
    kind: str
    process_after: int
    once_more: bool = False


class AckRevision(Command[bool], frozen=True, gc=False):
    """Remove the message of a key, whatever its status, if it has this revision; an offer behind it goes on."""

    traits = Traits(CommandOrder.KEYS, Effect.REPEATS, weighs=1)

    queue: str
    key: str
    kind: str
    revision: int


class DropKey(Command[bool], frozen=True, gc=False):
    """Remove the message of a key, whatever its status, and the offer behind it; with once_more only the offer."""

    traits = Traits(CommandOrder.KEYS, Effect.LASTS, weighs=1)

    queue: str
    key: str
    kind: str
    once_more: bool = False


class DropKeys(Command[PurgeStep], frozen=True, gc=False):
    """One step of removing all messages of a queue that have a key of this kind, and the offers that wait behind them.

    up_to: the last sequence number to remove; None for that of the last message that was sent before this batch.
    """

    traits = Traits(CommandOrder.KEYS, Effect.LASTS, weighs=limits.PURGE_BATCH_MAX, work=Work.LONG)

    queue: str
    kind: str
    up_to: int | None = None
