"""The base class of the parts: the pieces of the engine's memory.

A part lives as long as its engine. It has a value as of the last commit, which readers in other threads see, and
separately the changes of the running batch. Operations read and change it only by its own methods.

    load      at the start: read it from the tables
    copy      before a savepoint, and `restore` if that is rolled back
    adopt     the batch was committed: its changes become part of the value
    discard   the batch was rolled back: its changes are dropped
    ship      the changes for other processes, and `take_over` there, as if a batch of their own had made them

A part has only those methods that it needs. Values that are in no table start from nothing with each process.
"""

from typing import Any

from forq_trio.storage.relational.statements import Query


class Part:
    """A part that has no value in the tables, and that other processes need not know."""

    shipped: Any = None
    """The type of what `ship` returns; None for a part that is not shipped."""

    @property
    def due_at(self) -> int | None:
        """When the part has something due; None for never."""
        return None

    def load(self, query: Query, path: str) -> None:
        """Read the value from the tables, inside a transaction and before any batch has changed it.

        Raises StorageOpenError, which names the database by `path`, for a row that cannot be read.
        """

    def copy(self) -> Any:
        """A copy of the batch's changes so far, for `restore`."""

    def restore(self, copied: Any) -> None:
        """Undo what was changed since this copy was made."""

    def adopt(self) -> None:
        """Make the changes of the batch part of the value: they were committed."""

    def discard(self) -> None:
        """Drop the changes of the batch: they were rolled back."""

    def ship(self) -> Any:
        """The changes of the batch for other processes; None for nothing."""

    def take_over(self, shipped: Any) -> None:
        """Apply the changes that a batch of another process made; the caller then calls `adopt`."""
