"""The disk guard: watches the disk of the database, so that a full disk stops sends and nothing else.

Two amounts of disk space, each of FORQ_DISK_RESERVE_MB, are reserved:

- Free space: with less of it, sends are refused, before the disk is full. They are accepted again when a quarter more
  is free.
- The reserve file beside the database: when the disk becomes full all the same, because another program filled it, the
  file is deleted. Acks, nacks, extensions, claims and checkpoints use its space: they write to the log, and a
  checkpoint lets the log start over. The file is made again when the disk has space for it.

That costs one system call every few seconds and no query.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import trio

from forq_trio.model import limits
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor


class DiskGuard:
    """A job: `run` until cancelled.

    reserve: the path of the reserve file, on the disk of the database. keep_bytes: the size of each reserve; with 0
    there is no file, and sends are refused only while the disk is full. free_bytes: returns how much this process may
    still write to the disk of a directory.
    """

    name = "disk"

    def __init__(
        self,
        reserve: str,
        writer: WriterActor,
        keep_bytes: int,
        free_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self._reserve = Path(reserve)
        self._writer = writer
        self._keep_bytes = keep_bytes
        self._free_bytes = free_bytes or free_bytes_of
        self._limiter = trio.CapacityLimiter(1)
        self._woken = trio.Event()
        self._has_reserve = False
        self._logged_refused = False

    async def run(self) -> None:
        try:
            while True:
                with suppress(FileNotFoundError):  # the directory was moved: the file watch tells of it
                    await self._check_space()
                with trio.move_on_after(limits.DISK_LOOK_SECONDS):
                    await self._woken.wait()
                self._woken = trio.Event()
        finally:
            self._give_up_reserve()  # before the last checkpoint, which may need the space

    async def _check_space(self) -> None:
        spare = self._spare_bytes()
        if not self._has_reserve and spare >= self._keep_bytes > 0:
            await trio.to_thread.run_sync(self._make_reserve, limiter=self._limiter)
            spare = self._spare_bytes()
        if self._writer.sends_refused:
            wanted = self._keep_bytes + self._keep_bytes // 4 + limits.DISK_REOPEN_BYTES
            self._writer.sends_refused = spare < wanted
        elif spare < self._keep_bytes:
            self._writer.sends_refused = True
        self._log_change(spare)

    def _spare_bytes(self) -> int:
        """Free bytes besides the reserve file, which may still have to be made; negative if it does not fit."""
        free = self._free_bytes(self._reserve.parent)
        return free if self._has_reserve else free - self._keep_bytes

    def _log_change(self, spare: int) -> None:
        """Log when sends begin to be refused, and when they are accepted again."""
        if self._writer.sends_refused != self._logged_refused:
            self._logged_refused = self._writer.sends_refused
            event = LogEvent.DISK_FULL if self._logged_refused else LogEvent.DISK_ROOM
            log(event, spare_bytes=spare, reserve_bytes=self._keep_bytes if self._has_reserve else 0)

    def make_space(self) -> bool:
        """The disk is full: delete the reserve file and check the disk soon. False if there was no such file."""
        self._woken.set()
        return self._give_up_reserve()

    def _give_up_reserve(self) -> bool:
        had_reserve, self._has_reserve = self._has_reserve, False
        self._reserve.unlink(missing_ok=True)
        return had_reserve

    def _make_reserve(self) -> None:
        """Make the reserve file. Runs in a thread: some file systems have to write all of it."""
        try:
            descriptor = os.open(self._reserve, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._keep_bytes)
            finally:
                os.close(descriptor)
            self._has_reserve = True
        except OSError:  # another program took the space, or a quota is used up: the next check tries again
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)


def free_bytes_of(directory: Path) -> int:
    """Free bytes on the disk of `directory` for users other than root."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize
