"""What a pipeline did, and how it tells how far it is."""

from typing import Protocol

from msgspec import Struct


class Show(Protocol):
    """Told how much is done, of how much (None: as before), and a few words about it."""

    def __call__(self, done: int, total: int | None = None, status: str = "") -> None: ...


def show_nothing(done: int, total: int | None = None, status: str = "") -> None:
    """For who does not want to know."""


class ReportResult(Struct, frozen=True, rename="camel"):
    """page, tables: where they are. events, queues, stuck: how many there were in the report."""

    page: str
    tables: str
    page_bytes: int
    events: int
    queues: int
    stuck: int
