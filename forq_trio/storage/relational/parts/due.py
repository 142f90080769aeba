"""When the next thing is due: a delay or lease ends, a message expires, a token comes, or a part has something due."""

from collections.abc import Sequence
from math import inf
from typing import Any

from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query

FROM_START, NEVER = -(2**63), 2**63 - 1

Shipped = tuple[int | None, int, bool]
"""`next_ms`, `from_ms`, and `settled`."""


class Due(Part):
    """The next due time, and the time before which no message is due.

    If the database keeps removed entries in its index for a while, reads of due messages begin at `from_ms`.
    """

    shipped = Shipped

    def __init__(self, others: Sequence[Part]) -> None:
        """others: parts with due times of their own, which are loaded before this one."""
        self._others = others
        self.committed_next_ms: int | None = None  # epoch ms; None for never
        self.next_ms: int | None = None  # the same, once the batch has run
        self.first_ms: int | None = None  # the earliest due time of the messages that the batch changed
        self.settled = False  # due messages were settled, so the next time has to be read from the index
        self._committed_from_ms = FROM_START
        self._from_ms = FROM_START

    def note(self, due_ms: int) -> None:
        """Note that something is due at this time (epoch ms)."""
        # Compared even the first time: in a damaged row it may be text, which has to fail here, where it is isolated.
        if due_ms < (inf if self.first_ms is None else self.first_ms):
            self.first_ms = due_ms

    def from_ms(self) -> int:
        """The time before which no message is due, except those that are set aside."""
        return self._from_ms if self.first_ms is None else min(self._from_ms, self.first_ms)

    def found(self, first_ms: int | None) -> None:
        """Set the first due time of all messages at the end of the batch; None: no message is ever due."""
        self._from_ms = NEVER if first_ms is None else first_ms
        self.first_ms = None

    def load(self, query: Query, path: str) -> None:
        times = [at for (at,) in query("next_due", FROM_START, 1)]
        self.found(times[0] if times else None)
        times += [at for (at,) in query("next_wake")]
        times += [at for at in [each.due_at for each in self._others] if at is not None]
        self.next_ms = min(times, default=None)
        self.adopt()

    def copy(self) -> Any:
        return self.first_ms, self.settled, self._from_ms

    def restore(self, copied: Any) -> None:
        self.first_ms, self.settled, self._from_ms = copied

    def adopt(self) -> None:
        self.committed_next_ms, self._committed_from_ms = self.next_ms, self.from_ms()
        self.discard()

    def discard(self) -> None:
        self.next_ms, self._from_ms = self.committed_next_ms, self._committed_from_ms
        self.first_ms, self.settled = None, False

    def ship(self) -> Shipped:
        return self.next_ms, self.from_ms(), self.settled

    def take_over(self, shipped: Shipped) -> None:
        self.next_ms, self._from_ms, self.settled = shipped
        self.first_ms = None
