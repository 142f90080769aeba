"""The messages that ended in the running batch, for those who wait for that (`watches.EndingWatches`).

An ack without a result is noted only if somebody in this process waits for this message. All other ends are noted
always, because tasks of other processes may wait for them.
"""

from collections.abc import Sequence, Set
from typing import Any

from forq_trio.model.results.types import Ending
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row


class Endings(Part):
    """How messages ended, by their ids. A dead letter counts as ended, though it is stored."""

    shipped = dict[str, Ending]

    def __init__(self) -> None:
        self.awaited: Set[str] = frozenset()  # ids of messages for whose end somebody in this process waits
        self.noted: dict[str, Ending] = {}  # in this batch

    def note(self, messages: Sequence[Row], ending: Ending) -> None:
        """Note that messages ended."""
        for message in messages:
            self.noted[message.id] = ending

    def note_acks(self, messages: Sequence[Row]) -> None:
        """Note that messages were acknowledged without a result, if somebody waits for them."""
        if self.awaited:
            self.note([message for message in messages if message.id in self.awaited], "acked")

    def copy(self) -> Any:
        return self.noted.copy()

    def restore(self, copied: Any) -> None:
        self.noted = copied

    def adopt(self) -> None:
        self.discard()

    def discard(self) -> None:
        if self.noted:
            self.noted = {}

    def ship(self) -> dict[str, Ending] | None:
        return self.noted or None

    def take_over(self, shipped: dict[str, Ending]) -> None:
        self.noted = shipped
