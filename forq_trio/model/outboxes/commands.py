"""Commands that store the messages of outboxes."""

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.outboxes.types import OutboxPosition, RelayedMessage


def _weight(command: "RelayMessages") -> int:
    return limits.LONE_SEND_WEIGHT * len(command.messages)


def _relayed_bytes(command: "RelayMessages") -> int:
    return sum([bytes_of(each.message.content, each.message.attributes) for each in command.messages])


def _relay_work(command: "RelayMessages") -> Work:
    """A page of many or large messages lets other calls pass; the few that an application sends do not wait."""
    many = len(command.messages) > limits.RELAY_SHORT_MESSAGES_MAX
    return Work.LONG if many or command.content_bytes() > limits.RELAY_SHORT_BYTES_MAX else Work.SHORT


def _ids(command: "TakeSetAside") -> int:
    return len(command.ids)


class RelayMessages(Command[OutboxPosition], frozen=True, gc=False):
    """Store the next messages of an outbox and its new position, in one transaction: each is stored exactly once.

    Does so only if the stored position is `after`; an unknown outbox has the position 0. Messages are stored in their
    order up to the first that is refused. Without messages it only reads the position. key: the owner of a new outbox,
    towards whose share it counts. Fails with TooManyOutboxes, and with Forbidden for the outbox of another key.
    Outcome: the position that is stored afterwards.
    """

    traits = Traits(CommandOrder.RELAY, Effect.GROWS, weighs=_weight, stores=_relayed_bytes, work=_relay_work)

    outbox: str
    after: int
    messages: tuple[RelayedMessage, ...]
    key: Key = SECRET


class TakeSetAside(Command[tuple[int, ...]], frozen=True, gc=False):
    """Remove messages of forq.send that were set aside. again: send them once more, after all others.

    Takes only the first ones by id that have OUTBOX_PAGE_BYTES_MAX together, but at least one. Outcome: their ids, in
    ascending order.
    """

    traits = Traits(CommandOrder.RELAY, Effect.LASTS, weighs=_ids)

    ids: tuple[int, ...]
    again: bool
