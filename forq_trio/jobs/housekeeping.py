"""Tells jobs of the writer's progress: the sweeps, the checkpointer, the disk guard and retention."""

from collections.abc import Sequence

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.jobs.disk_guard import DiskGuard
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.retention import BytesWatch
from forq_trio.writer_actor import WriterListener


class Housekeeping(WriterListener):
    """Calls the jobs from the writer's notifications. A job that does not exist is None."""

    def __init__(self) -> None:
        self.checkpointer: Checkpointer | None = None
        self.disk_guard: DiskGuard | None = None
        self.failed_sweeps: Sequence[Periodic] = ()
        self.retention: BytesWatch | None = None

    def committed(self) -> None:
        if self.disk_guard is not None:
            self.disk_guard.note_commit()
        if self.checkpointer is not None:
            self.checkpointer.note_commit()
        if self.retention is not None:
            self.retention.check_sizes()

    def failed_queued(self) -> None:
        for sweep in self.failed_sweeps:
            sweep.nudge()

    def storage_full(self) -> bool:
        """Delete the reserve file and move the log into the database at once, before others take the space."""
        made_space = self.disk_guard is not None and self.disk_guard.make_space()
        if made_space and self.checkpointer is not None:
            self.checkpointer.hurry()
        return made_space
