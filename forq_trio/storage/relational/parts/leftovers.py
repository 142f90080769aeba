"""What the commands of a batch leave to its last steps: messages that failed, and offers that waited."""

from typing import Any

from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.waiting_offers import Waiting


class Leftovers(Part):
    """Work that commands note and that is done after them (`due.settle_failed`, `waiting.store_waiting`)."""

    def __init__(self) -> None:
        self.failed: list[int] = []  # messages that failed, by sequence
        self.failed_left = False  # some of them are left for a sweep
        self.offers: list[tuple[str, tuple[str, str], Waiting]] = []
        """The offers that waited behind messages that are gone, as (queue, (kind, key), offer)."""

    def copy(self) -> Any:
        return self.failed.copy(), self.failed_left, self.offers.copy()

    def restore(self, copied: Any) -> None:
        self.failed, self.failed_left, self.offers = copied

    def adopt(self) -> None:
        self.discard()

    def discard(self) -> None:
        self.failed_left = False
        if self.failed or self.offers:
            self.failed, self.offers = [], []
