"""The file watch notices when a file of the database is removed, moved, replaced or linked while the server runs.

The server would continue without an error, and a restart would not find later changes. So sends, settings and moves are
refused until the same files are back in their places. Claims and settlements still work: only this process can deliver
the stored messages, and if a claim or settlement is lost, a message is delivered twice at worst. If both files exist,
the log is moved into the database file at once, because nobody may find it after the process has ended.

The watch costs a few system calls every few seconds, and no query.
"""

from collections.abc import Callable

import trio

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.model import limits
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor


class FileWatch:
    """A job: `run` until cancelled. files_problem: of the engine's log."""

    name = "files"

    def __init__(
        self, files_problem: Callable[[], str | None], writer: WriterActor, checkpointer: Checkpointer
    ) -> None:
        self._files_problem = files_problem
        self._writer = writer
        self._checkpointer = checkpointer

    async def run(self) -> None:
        while True:
            self._check_files()
            await trio.sleep(limits.FILES_LOOK_SECONDS)

    def _check_files(self) -> None:
        """Tell the writer what is wrong, and log it once."""
        before, problem = self._writer.storage.files_problem, self._files_problem()
        self._writer.storage.files_problem = problem
        if problem is None and before is not None:
            log(LogEvent.FILES_BACK)
        elif problem is not None and problem != before:
            log(LogEvent.FILES_LOST, problem=problem)
            self._checkpointer.hurry()
