"""The interface of a connection to the protocol that serves it."""

from typing import Protocol

from forq_trio.model.holders import Holder


class Owner(Protocol):
    """The connection. deadline: when to call the protocol's `expire`, by trio's clock."""

    deadline: float

    def show(self, holder: Holder) -> bool:
        """A request of this holder has come; False when the holder has too many connections."""
        ...

    def cut(self) -> None:
        """End at once: cancel the task in which the protocol runs."""
        ...
