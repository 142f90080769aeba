"""The counts and durations of a batch, for metrics."""

from typing import Any

from forq_trio.storage.engine import Event
from forq_trio.storage.relational.parts.part import Part


class Figures(Part):
    """Changes of messages by kind, and how long messages waited and were handled."""

    def __init__(self) -> None:
        self.changes = 0  # how many changes of messages the batch made
        self.durations: dict[tuple[str, str], list[int]] = {}  # by kind and queue; see BatchResult
        self.moved_in: dict[str, int] = {}  # by queue; see BatchResult
        self._counted: dict[tuple[str, str, str], int] = {}  # by kind, queue and reason

    def count(self, kind: str, queue: str, reason: str, number: int) -> None:
        key = (kind, queue, reason)
        self._counted[key] = self._counted.get(key, 0) + number

    def measured(self, kind: str, queue: str) -> list[int]:
        """The list of durations (ms) of a kind and queue, to append to."""
        key = (kind, queue)
        durations = self.durations.get(key)
        if durations is None:
            durations = self.durations[key] = []
        return durations

    def events(self) -> list[Event]:
        """The counted events, by kind, queue and reason."""
        return [Event(kind, queue, n, reason) for (kind, queue, reason), n in sorted(self._counted.items())]

    def copy(self) -> Any:
        durations = {key: each.copy() for key, each in self.durations.items()}
        return self.changes, durations, self._counted.copy(), self.moved_in.copy()

    def restore(self, copied: Any) -> None:
        self.changes, self.durations, self._counted, self.moved_in = copied

    def adopt(self) -> None:
        self.discard()

    def discard(self) -> None:
        self.changes = 0
        if self.durations:
            self.durations = {}
        if self._counted:
            self._counted = {}
        if self.moved_in:
            self.moved_in = {}
