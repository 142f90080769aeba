"""What the writer refuses while the disk is full, or while a file of the database is lost.

The disk guard sets the four members about the disk, and so does the writer when it finds the disk full; SendsAgain
resets them (jobs/disk_guard.py). The file watch (jobs/file_watch.py) sets `files_problem`.
"""

from typing import Any

from forq_trio.model.commands import GROWING, LASTING, SENDING, Command
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.errors import StorageFull, StorageLost
from forq_trio.waiters import Call, without


class StorageState:
    """Which commands the storage can take, according to the jobs that watch it."""

    def __init__(self) -> None:
        self.set_full(full=False)
        self.files_problem: str | None = None  # found by the file watch; refuses what has to last

    def set_full(self, *, full: bool) -> None:
        """Refuse everything that needs disk space, or nothing."""
        self.sends_refused = full  # with StorageFull, as the next two
        self.leases_refused = full  # only with sends, when even the space that those leave is used up
        self.moving_back_refused = full  # commands that need a message moved back from its leased page
        self.space_short = full  # disk space is short, so the log has to start over early

    @property
    def refusal(self) -> SendsRefused | None:
        """Why sends to all queues are refused; None while they are not."""
        if self.files_problem is not None:
            return "storage_lost"
        return "storage_full" if self.sends_refused else None

    def admit(self, calls: list[Call[Any]]) -> list[Call[Any]]:
        """Answer the calls that are refused now; returns the others."""
        if self.files_problem is not None:
            calls = without(LASTING, calls, StorageLost)
        if self.sends_refused:
            calls = without(GROWING if self.leases_refused else SENDING, calls, StorageFull)
        return calls

    def commands_of(self, calls: list[Call[Any]]) -> list[Command[Any]]:
        """The commands of calls as they are executed now."""
        if self.sends_refused:
            return [call.command.when_full() for call in calls]
        return [call.command for call in calls]
