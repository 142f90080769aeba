"""What the writer refuses while the disk is full, or while a file of the database is lost.

The disk guard sets the four that concern the disk, and the writer when it finds the disk full; SendsAgain resets them,
too (jobs/disk_guard.py). The file watch (jobs/file_watch.py) sets `files_problem`.
"""

from typing import Any

from forq_trio.model.commands import GROWING, LASTING, SENDING
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.errors import StorageFull, StorageLost
from forq_trio.waiters import Call, without


class StorageState:
    """Whether the storage takes all, as jobs found it."""

    def __init__(self) -> None:
        self.set_full(full=False)
        self.files_problem: str | None = None  # what the file watch found; then what has to last is refused

    def set_full(self, *, full: bool) -> None:
        """Refuse all that needs space, or nothing."""
        self.sends_refused = full  # with StorageFull, as the next two
        self.leases_refused = full  # only with sends, when even the space that they leave is used
        self.moving_back_refused = full  # commands that need a message moved back from its leased page
        self.space_short = full  # the log has to start over early

    @property
    def refusal(self) -> SendsRefused | None:
        """Why sends to all queues are refused; None while they are not."""
        if self.files_problem is not None:
            return "storage_lost"
        return "storage_full" if self.sends_refused else None

    def admit(self, calls: list[Call[Any]]) -> list[Call[Any]]:
        """Answer the calls that are refused now, and return the others."""
        if self.files_problem is not None:
            calls = without(LASTING, calls, StorageLost)
        if self.sends_refused:
            calls = without(GROWING if self.leases_refused else SENDING, calls, StorageFull)
        return calls
