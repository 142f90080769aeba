"""The sequence numbers: of messages, and of the revisions of keys."""

from typing import Any

from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query


class SequenceNumbers(Part):
    """The last sequence number that was given out."""

    shipped = int

    def __init__(self) -> None:
        self.before = 0  # the last one before this batch
        self.last = 0  # the last one by now
        self.revised = False  # some went to revisions instead of messages, so no counts are saved with them

    def next_revision(self) -> int:
        """A new revision of a key."""
        self.revised = True
        self.last += 1
        return self.last

    def load(self, query: Query, path: str) -> None:
        ((last,),) = query("last_sequence")
        self.take_over(last)
        self.adopt()

    def copy(self) -> Any:
        return self.last, self.revised

    def restore(self, copied: Any) -> None:
        self.last, self.revised = copied

    def adopt(self) -> None:
        self.before = self.last
        self.revised = False

    def discard(self) -> None:
        self.last = self.before
        self.revised = False

    def ship(self) -> int:
        return self.last

    def take_over(self, shipped: int) -> None:
        self.last = shipped
