"""Outboxes: tables of applications' own databases, whose messages a relay moves into queues, each exactly once.

The server stores how far each outbox was relayed, its position, in the transaction that stores the messages. A relay
says from which position it goes on; of two that go on from the same one, the second stores nothing.
"""

from msgspec import Struct

from forq_trio.model.errors import ForqError
from forq_trio.model.new_message import NewMessage


class RelayedMessage(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A message of an outbox. id: its number there, from 1; ids grow in the order of commit, and may have gaps."""

    id: int
    queue: str
    message: NewMessage


class OutboxRefusal(Struct, frozen=True, gc=False):
    """Why a message of an outbox was not stored: its id, and code and sentence of the error that a send would raise."""

    id: int
    code: str
    message: str

    @classmethod
    def of(cls, id: int, error: ForqError) -> "OutboxRefusal":
        return cls(id, error.code, error.message)


class OutboxPosition(Struct, frozen=True, gc=False, omit_defaults=True):
    """How far an outbox was relayed."""

    position: int  # the id of its last message that is stored, 0 for none
    # the message behind it that was not stored, None if none was refused. Those behind it were not looked at.
    refused: OutboxRefusal | None = None

    def then(self, last: int, refused: OutboxRefusal | None) -> "OutboxPosition":
        """With the refusal of the message behind `last`, where all up to that one are stored."""
        return OutboxPosition(last, refused) if refused and self == OutboxPosition(last) else self
