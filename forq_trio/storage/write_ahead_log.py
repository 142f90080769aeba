"""The write-ahead log of an engine, as its jobs use it: checkpoints, and the disk space that it takes."""

from typing import Protocol

from msgspec import Struct


class CheckpointResult(Struct, frozen=True, gc=False):
    """log_pages: pages in the write-ahead log; copied_pages: how many of them are copied into the database."""

    log_pages: int
    copied_pages: int


class LogSpace(Struct, frozen=True, gc=False):
    """Disk space that a log and its database have already, in bytes."""

    used_bytes: int  # what the next commit adds to; 0 when it starts the log over
    file_bytes: int  # how long the log's file is
    unmoved_bytes: int  # of the log, what is not in the database yet
    free_page_bytes: int  # how much of the database file holds nothing, as of the last checkpoint


class WriteAheadLog(Protocol):
    """The write-ahead log of an engine: checkpoints move commits from it into the database, beside the writer."""

    @property
    def reserve_path(self) -> str:
        """The path of the reserve file (jobs/disk_guard.py).

        A file that a killed process left there is removed when the engine is opened, which may need its disk space.
        """
        ...

    def files_problem(self) -> str | None:
        """Why a file of the database is no longer found by its name, or by two; None if all is well.

        Only looks at names: safe in any thread, and quick enough for the event loop.
        """
        ...

    def pages(self) -> int:
        """Pages in the log after the last commit."""
        ...

    def space(self) -> LogSpace:
        """A few system calls and no query: safe in any thread, and quick enough for the event loop."""
        ...

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """Move the log into the database, on a connection of its own; callable from any thread.

        truncate: also empty the log, and cut it if it is long, unless a reader uses it; no batch may run meanwhile.
        Raises StorageUnavailable.
        """
        ...
