"""The results of pipelines, and how they show their progress."""

from typing import Protocol

from msgspec import Struct


class Show(Protocol):
    """Is called with how much is done, the total (None: not known, or unchanged), and a few words."""

    def __call__(self, done: int, total: int | None = None, status: str = "") -> None: ...


def show_nothing(done: int, total: int | None = None, status: str = "") -> None:
    """Show no progress."""


class ReportResult(Struct, frozen=True, rename="camel"):
    """page, tables: where they are. events, queues, stuck: how many there were in the report. queue_pages: how many
    pages of single queues were written."""

    page: str
    tables: str
    page_bytes: int
    events: int
    queues: int
    stuck: int
    queue_pages: int = 0


class CompactResult(Struct, frozen=True, rename="camel"):
    """days: how many were rewritten; rows: how many are in them."""

    days: int
    files_before: int
    files_after: int
    rows: int


class ArchiveResult(Struct, frozen=True, rename="camel"):
    """How many rows this run wrote, by table; 0 of a table of which nothing was new."""

    archive: str
    rows: dict[str, int]


class ReplayResult(Struct, frozen=True, rename="camel"):
    """matched: messages that were chosen, by the queue they are from; published: how many went into the queue (0 for a
    dry run); already_done: this replay was done before, so nothing happened; app: the name that makes sure of it."""

    queue: str
    app: str
    matched: dict[str, int]
    published: int
    already_done: bool


class LoadResult(Struct, frozen=True, rename="camel"):
    """read: rows of the dataset that were new; published: how many became messages; skipped: rows without a content."""

    queue: str
    checkpoint: str
    read: int
    published: int
    skipped: int
