"""What a socket needs of the protocol that its client speaks: HTTP/1.1 or HTTP/2, a state machine without I/O."""

from typing import Protocol


class ClientProtocol(Protocol):
    """A protocol on one connection. Its methods neither raise nor wait."""

    @property
    def wants_bytes(self) -> bool:
        """Whether it takes more bytes now. Else nothing is received, and the client has to wait."""
        ...

    @property
    def works(self) -> bool:
        """Whether a handler runs."""
        ...

    def feed(self, data: bytes) -> None:
        """Take the bytes that arrived next; b"" when the client has closed its side. Only while it wants bytes."""
        ...

    def sent(self, sent_bytes: int) -> None:
        """So many more bytes are sent of those that `ClientSocket.send` could not send at once."""
        ...

    def expire(self) -> None:
        """The deadline has passed."""
        ...

    def finish(self) -> None:
        """Close after the next answer, whether its request is running or still to come."""
        ...

    def finish_idle(self) -> None:
        """Close if no request is running, or if an incomplete one has received nothing more since the last call."""
        ...

    def end(self) -> None:
        """The connection has ended: undo answers that were not sent, and cancel the handlers that only wait."""
        ...

    def cancel(self) -> None:
        """The connection has ended: cancel all handlers."""
        ...
