"""The connection, as the protocol that serves it sees it."""

from typing import Protocol


class Owner(Protocol):
    """deadline: when to call the protocol's `expire`, by trio's clock."""

    deadline: float

    def cut(self) -> None:
        """End at once: cancel the task in which the protocol runs."""
        ...
