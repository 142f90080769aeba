"""Commands that send messages."""

from itertools import chain

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced

_CHARACTER_BYTES_MAX = 4


def bytes_of(content: str, attributes: dict[str, str] | None) -> int:
    """How many bytes a message has at most."""
    size = _bytes_of_text(content)
    return size if not attributes else size + sum(map(_bytes_of_text, chain(*attributes.items())))


def _bytes_of_text(text: str) -> int:
    return len(text) if text.isascii() else len(text) * _CHARACTER_BYTES_MAX


def _bytes_max(message: NewMessage) -> int:
    return bytes_of(message.content, message.attributes)


def _bytes_of_one(command: "Produce") -> int:
    return _bytes_max(command.message)


def _bytes_of_all(command: "ProduceMany") -> int:
    return sum(map(_bytes_max, command.messages))


def _bytes_of_each(command: "ProduceEach") -> int:
    return sum([_bytes_max(message) for _, message in command.messages])


def _count(command: "ProduceMany | ProduceEach") -> int:
    return len(command.messages)


class Produce(Command[Produced], frozen=True, gc=False):
    """Store one message, or fail with QueueFull.

    known_only: fail with QueueNotFound instead of making the queue.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=1, stores=_bytes_of_one)

    queue: str
    message: NewMessage
    known_only: bool = False


class ProduceMany(Command[tuple[Produced | ForqError, ...]], frozen=True, gc=False):
    """Store several messages of one queue, all or none (QueueFull); outcomes in the order of the messages.

    An engine never refuses only some of them; the table of an application may, and stores the others. known_only: see
    `Produce`.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=_count, stores=_bytes_of_all)

    queue: str
    messages: tuple[NewMessage, ...]
    known_only: bool = False


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

    The copy keeps priority, group, TTL, max_attempts and dead-letter queue, and the types of attributes that other
    values still fit. Outcome: None if the message is not in `queue`, has no queue to go to, or (with remove) is
    processing.
    """

    traits = Traits(CommandOrder.SEND, Effect.GROWS, weighs=1, stores=limits.STORED_BYTES_MAX)

    queue: str
    message_id: str
    content: str | None = None  # this and the next: None keeps the original's
    attributes: dict[str, str] | None = None
    target: str | None = None
    remove: bool = False
