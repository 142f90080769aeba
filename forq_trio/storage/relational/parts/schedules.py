"""Schedules: how many there are, when the next run is due, and the results of the runs of this batch.

There may be many schedules, so they themselves stay in their table.
"""

from typing import Any

from forq_trio.model.schedules.types import SavedRun, ScheduleTotals
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query

Shipped = tuple[ScheduleTotals, str]
"""`totals`, and `last_maker`."""


class ScheduleTable(Part):
    """What a batch knows about the schedules without a query."""

    shipped = Shipped

    def __init__(self) -> None:
        self.committed = ScheduleTotals()
        self.totals = (
            ScheduleTotals()
        )  # how many there are, and when the next run is due, as of the last command
        self.changed = False  # the time of the next run may have changed
        self._committed_maker = ""
        self.last_maker = ""  # the maker whose turn was last, "" for the secret
        self.runs: list[SavedRun] = []  # the results of the runs of this batch

    @property
    def due_at(self) -> int | None:
        """When the next run is due."""
        return self.totals.due_at

    def load(self, query: Query, path: str) -> None:
        made = {made_by: count for made_by, count in query("load_schedules")}
        count = sum(made.values())
        made.pop(None, None)
        found = query("next_schedule")
        self.totals = ScheduleTotals(count, made, found[0][0] if found else None)
        self.adopt()

    def copy(self) -> Any:
        return self.totals, self.changed, self.last_maker, self.runs.copy()

    def restore(self, copied: Any) -> None:
        self.totals, self.changed, self.last_maker, self.runs = copied

    def adopt(self) -> None:
        self.committed, self._committed_maker = self.totals, self.last_maker
        self.discard()

    def discard(self) -> None:
        self.totals, self.last_maker = self.committed, self._committed_maker
        self.changed = False
        if self.runs:
            self.runs = []

    def ship(self) -> Shipped | None:
        if self.totals is self.committed and self.last_maker == self._committed_maker:
            return None
        return self.totals, self.last_maker

    def take_over(self, shipped: Shipped) -> None:
        self.totals, self.last_maker = shipped
