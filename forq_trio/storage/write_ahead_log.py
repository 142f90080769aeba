"""The write-ahead log of an engine, as its jobs use it: checkpoints, and the disk space that it takes."""

from typing import Protocol

from msgspec import Struct


class CheckpointResult(Struct, frozen=True, gc=False):
    """log_pages: pages in the write-ahead log; copied_pages: how many of them are copied into the database."""

    log_pages: int
    copied_pages: int


class LogSpace(Struct, frozen=True, gc=False):
    """The disk space that a log and its database take already, in bytes."""

    used_bytes: int  # the part of the log that the next commit appends to; 0 if it starts the log over
    file_bytes: int  # the length of the log's file
    unmoved_bytes: int  # the part of the log that is not in the database yet
    free_page_bytes: int  # the free pages of the database file, as of the last checkpoint


class WriteAheadLog(Protocol):
    """The write-ahead log of an engine: checkpoints move commits from it into the database, beside the writer."""

    @property
    def reserve_path(self) -> str:
        """The path of the reserve file (jobs/disk_guard.py).

        A file that a killed process left there is removed when the engine is opened, which may need its disk space.
        """
        ...

    def files_problem(self) -> str | None:
        """Why a file of the database has lost its name, or has a second one; None if all is well.

        Only looks at names: safe in any thread, and quick enough for the event loop.
        """
        ...

    def pages(self) -> int:
        """Pages in the log after the last commit."""
        ...

    def space(self) -> LogSpace:
        """The disk space of the log: a few system calls, no query, so safe in any thread and quick enough for the
        event loop."""
        ...

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        """Move the log into the database, on a connection of its own; callable from any thread.

        truncate: also empty the log, and shorten a long file, unless a reader uses it; no batch may run meanwhile.
        Raises StorageUnavailable.
        """
        ...
