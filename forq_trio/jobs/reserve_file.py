"""The reserve file beside the database, whose space the log may use when another program has filled the disk."""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

import trio

from forq_trio.model import limits
from forq_trio.storage.on_disk import allocate


class ReserveFile:
    """A file of `keep_bytes`; no file if that is 0. free_bytes: see `DiskGuard`."""

    def __init__(self, path: Path, keep_bytes: int, free_bytes: Callable[[Path], int]) -> None:
        self.keep_bytes = keep_bytes
        self.exists = False
        self._path = path
        self._free_bytes = free_bytes
        self._limiter = trio.CapacityLimiter(1)
        self._taken_at = -inf  # when a full disk made it be deleted, on trio's clock

    @property
    def disk_free_bytes(self) -> int:
        """Free bytes on its disk, without the file itself. Raises FileNotFoundError if its directory was moved."""
        return self._free_bytes(self._path.parent)

    def take(self) -> bool:
        """Delete the file, because the disk is full; it is not made again at once. False if there was none."""
        self._taken_at = trio.current_time()
        return self.delete()

    def delete(self) -> bool:
        """Delete the file. False if there was none."""
        existed, self.exists = self.exists, False
        self._path.unlink(missing_ok=True)
        return existed

    async def restore(self) -> None:
        """Make the file if it is missing and the disk has space for it, and some for the log.

        If a full disk took the file, it is not made again for DISK_LOOK_SECONDS: a disk with a quota can report space
        and take no write, and the refused writer would delete the file at once and try again. Raises FileNotFoundError.
        """
        if self.exists or self.keep_bytes == 0:
            return
        if trio.current_time() < self._taken_at + limits.DISK_LOOK_SECONDS:
            return
        if self.disk_free_bytes >= self.keep_bytes + self.keep_bytes // 4:
            await trio.to_thread.run_sync(self._make, limiter=self._limiter)
            self.exists = self._path.exists()  # it may have been taken meanwhile

    def _make(self) -> None:
        """Make the file. Runs in a thread, because some file systems have to write all of it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                allocate(descriptor, 0, self.keep_bytes)
            finally:
                os.close(descriptor)
        except OSError:  # another program took the space, or a quota is used up: the next check tries again
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
