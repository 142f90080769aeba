"""What a piece of the engine's memory is: a part.

A part lives as long as its engine. It has a value as of the last commit, which readers in other threads see, and
beside it what the running batch changed. Operations ask and change it by its own methods; nobody else writes it.

    load      at the start: read it from the tables
    copy      before a savepoint, and `restore` where that is rolled back
    adopt     the batch was committed: its changes are part of the value
    discard   the batch was rolled back: forget its changes
    ship      what another process has to know of them, and `take_over` there, as if a batch of its own had made them

A part has those of these methods that it needs. What no table has begins anew at a start.
"""

from typing import Any

from forq_trio.storage.relational.statements import Query


class Part:
    """A part without a value in the tables, that no other process has to know."""

    shipped: Any = None
    """The type of what `ship` returns; None for a part that is not shipped."""

    @property
    def due_at(self) -> int | None:
        """When the part has something due; None for never."""
        return None

    def load(self, query: Query, path: str) -> None:
        """Read the value from the tables, inside a transaction; without changes of a batch.

        Raises StorageOpenError, which names the database by `path`, for a row that cannot be read.
        """

    def copy(self) -> Any:
        """What the batch has changed so far, for `restore`."""

    def restore(self, copied: Any) -> None:
        """Take back what was changed after this copy was made."""

    def adopt(self) -> None:
        """The changes of the batch were committed."""

    def discard(self) -> None:
        """The changes of the batch were rolled back."""

    def ship(self) -> Any:
        """What the batch changed, for other processes. None for nothing."""

    def take_over(self, shipped: Any) -> None:
        """Make the changes that a batch of another process made. `adopt` follows."""
