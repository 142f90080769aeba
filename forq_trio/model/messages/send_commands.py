"""Commands that send messages."""

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.outboxes.types import OutboxPosition, RelayedMessage

_CHARACTER_BYTES_MAX = 4


def bytes_of(content: str, attributes: dict[str, str] | None) -> int:
    """How many bytes a message has at most."""
    size = len(content) if content.isascii() else len(content) * _CHARACTER_BYTES_MAX
    return size if attributes is None else size + limits.ATTRIBUTES_BYTES_MAX


def _bytes_max(message: NewMessage) -> int:
    return bytes_of(message.content, message.attributes)


def _bytes_of_one(command: "Produce") -> int:
    return _bytes_max(command.message)


def _bytes_of_all(command: "ProduceMany") -> int:
    return sum(map(_bytes_max, command.messages))


def _bytes_of_each(command: "ProduceEach") -> int:
    return sum([_bytes_max(message) for _, message in command.messages])


def _relayed_bytes(command: "RelayMessages") -> int:
    return sum([_bytes_max(each.message) for each in command.messages])


def _relay_work(command: "RelayMessages") -> Work:
    """A page of many or large messages lets other calls pass; the few that an application sends do not wait."""
    many = len(command.messages) > limits.RELAY_SHORT_MESSAGES_MAX
    return Work.LONG if many or command.content_bytes() > limits.RELAY_SHORT_BYTES_MAX else Work.SHORT


def _copied_bytes(command: "Resubmit") -> int:
    return (
        limits.CONTENT_BYTES_MAX if command.content is None else len(command.content) * _CHARACTER_BYTES_MAX
    )


def _count(command: "ProduceMany | ProduceEach") -> int:
    return len(command.messages)


def _weight(command: "RelayMessages") -> int:
    return limits.LONE_SEND_WEIGHT * len(command.messages)


def _ids(command: "TakeSetAside") -> int:
    return len(command.ids)


class Produce(Command[Produced], frozen=True, gc=False):
    """Store one message, or fail with QueueFull."""

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=1, stores=_bytes_of_one)

    queue: str
    message: NewMessage


class ProduceMany(Command[tuple[Produced | ForqError, ...]], frozen=True, gc=False):
    """Store several messages of one queue, all or none (QueueFull); outcomes in the order of the messages.

    An engine never refuses only some of them; the table of an application may, and stores the others.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=_count, stores=_bytes_of_all)

    queue: str
    messages: tuple[NewMessage, ...]


class ProduceEach(Command[tuple[Produced | ForqError, ...]], frozen=True, gc=False):
    """Store messages of several queues, each on its own: the outcome of a refused one is its error.

    messages_max: a bound on the messages of queues that have none of their own, beyond which a send is refused with
    QueueFull; None for none.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=_count, stores=_bytes_of_each)

    messages: tuple[tuple[str, NewMessage], ...]
    messages_max: int | None = None


class Resubmit(Command[Produced | None], frozen=True, gc=False):
    """Send an edited copy of a message to `target` (None: where it came from), and remove the original if asked.

    The copy keeps priority, group, TTL, max_attempts and dead-letter queue. Outcome: None if the message is not in
    `queue`, has no queue to go to, or (with remove) is processing.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=1, stores=_copied_bytes)

    queue: str
    message_id: str
    content: str | None = None  # this and the next: None keeps the original's
    attributes: dict[str, str] | None = None
    target: str | None = None
    remove: bool = False


class RelayMessages(Command[OutboxPosition], frozen=True, gc=False):
    """Store the next messages of an outbox and its new position, in one transaction: each is stored exactly once.

    Does so only if the stored position is `after`; an unknown outbox has the position 0. Messages are stored in their
    order up to the first that is refused. Without messages it only reads the position. key: the owner of a new outbox,
    towards whose share it counts. Fails with TooManyOutboxes, and with Forbidden for the outbox of another key.
    Outcome: the position that is stored afterwards.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=_weight, stores=_relayed_bytes, work=_relay_work)

    outbox: str
    after: int
    messages: tuple[RelayedMessage, ...]
    key: Key = SECRET


class TakeSetAside(Command[tuple[int, ...]], frozen=True, gc=False):
    """Remove messages of forq.send that were set aside. again: send them once more, after all others.

    Takes only the first ones by id that have OUTBOX_PAGE_BYTES_MAX together, but at least one. Outcome: their ids, in
    ascending order.
    """

    traits = Traits(CommandOrder.SEND, Effect.LASTS, weighs=_ids)

    ids: tuple[int, ...]
    again: bool
