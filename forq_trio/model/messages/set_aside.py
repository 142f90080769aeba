"""Messages that were handed over in a database, by a relay or by forq.send, and refused for good."""

from msgspec import Struct

from forq_trio.model.messages.new_message import NewMessage


class SetAside(Struct, frozen=True, gc=False):
    """A message that a program handed over in a database, and that was refused for good."""

    id: int  # names the message to send again or delete; ids grow
    queue: str  # to which it was sent
    message: NewMessage  # as it was sent
    code: str  # of the error that sending it would raise
    reason: str  # the sentence of that error
