"""How much is staged, and which part of it is being published."""

from typing import Any

from msgspec.structs import replace

from forq_trio.model.publishing.types import Staging
from forq_trio.storage.apps import shares_of_all
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query


class StagingTotals(Part):
    """The totals of all stages and apps."""

    shipped = Staging

    def __init__(self) -> None:
        self.committed = Staging()
        self.totals = Staging()  # as of the last command

    def load(self, query: Query, path: str) -> None:
        stages, size, in_progress, first_entry, last_entry, apps = query("load_staging")[0]
        shares = shares_of_all(query("load_stages"), query("count_apps"))
        self.totals = Staging(stages, size, in_progress, first_entry, last_entry, apps, shares)
        self.adopt()

    def raise_last_entry(self, entry: int) -> None:
        """Raise the last entry number, which is in no table once its stage is published."""
        self.totals = replace(self.totals, last_entry=max(self.totals.last_entry, entry))

    def copy(self) -> Any:
        return self.totals

    def restore(self, copied: Any) -> None:
        self.totals = copied

    def adopt(self) -> None:
        self.committed = self.totals

    def discard(self) -> None:
        self.totals = self.committed

    def ship(self) -> Staging | None:
        return None if self.totals is self.committed else self.totals

    def take_over(self, shipped: Staging) -> None:
        self.totals = shipped
