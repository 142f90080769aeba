"""Outboxes: tables in applications' own databases, whose messages a relay moves into queues, each exactly once.

The server stores how far each outbox was relayed (its position) in the transaction that stores the messages. A relay
names the position from which it continues; of two relays that continue from the same one, the second stores nothing.
"""

from msgspec import Struct

from forq_trio.model.errors import ForqError
from forq_trio.model.messages.new_message import NewMessage


class RelayedMessage(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A message of an outbox."""

    id: int  # its number there, from 1; ids grow in the order of commit, and may have gaps
    queue: str  # to which it goes
    message: NewMessage  # as a send has it


class OutboxRefusal(Struct, frozen=True, gc=False):
    """Why a message of an outbox was not stored."""

    id: int  # of the message
    code: str  # of the error that a send gets
    message: str  # its sentence

    @classmethod
    def of(cls, id: int, error: ForqError) -> "OutboxRefusal":
        return cls(id, error.code, error.message)


class OutboxPosition(Struct, frozen=True, gc=False, omit_defaults=True):
    """How far an outbox was relayed."""

    position: int  # the id of its last message that is stored, 0 for none
    # the refusal of the next message, absent if none was refused; later messages were not read
    refused: OutboxRefusal | None = None

    def then(self, last: int, refused: OutboxRefusal | None) -> "OutboxPosition":
        """This position, with the refusal of the message after `last` if all messages up to `last` are stored."""
        return OutboxPosition(last, refused) if refused and self == OutboxPosition(last) else self
