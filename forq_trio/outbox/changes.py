"""Notices that another connection, of any process, may have written to a database, without reading it.

On Linux the kernel reports writes (inotify), which costs nothing while nothing is written. Elsewhere, and on network
file systems, the files' sizes and times are compared once a second, without a query.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress
from typing import Protocol

import anyio

LOOK_SECONDS = 1.0
_ENDINGS = ("", "-wal", "-journal")
_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE, _IN_DELETE, _IN_Q_OVERFLOW = 0x2, 0x80, 0x100, 0x200, 0x4000
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_READ_BYTES = 64 * 1024


class Changes(Protocol):
    """Watches a database, from its construction on."""

    async def wait(self) -> None:
        """Return when something may have been written since it was made, or since the last wait returned."""
        ...

    def close(self) -> None: ...


def watch(path: str, *, notified: bool = True) -> Changes:
    """Watch a database. notified: whether to let the kernel report writes, if it can."""
    if notified and sys.platform == "linux":
        with suppress(OSError):
            return NotifiedChanges(path)
    return SeenChanges(path)


class NotifiedChanges:
    """Watches with inotify on the directory, which also reports files that come and go, as the write-ahead log does."""

    def __init__(self, path: str) -> None:
        """Raises OSError if there is no inotify, or if no more watches are allowed."""
        directory, name = os.path.split(path)
        self._names = {os.fsencode(f"{name}{ending}") for ending in _ENDINGS}
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.inotify_init1(_FLAGS)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        mask = _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE | _IN_DELETE
        if libc.inotify_add_watch(self._file, os.fsencode(directory or "."), mask) < 0:
            problem = ctypes.get_errno()
            self.close()
            raise OSError(problem, "inotify_add_watch")

    async def wait(self) -> None:
        while not self._read():
            await anyio.wait_readable(self._file)

    def _read(self) -> bool:
        """Whether one of the events that wait is about our files."""
        ours = False
        with suppress(BlockingIOError):
            while True:
                events = os.read(self._file, _READ_BYTES)
                place = 0
                while place < len(events):
                    _, mask, _, length = _EVENT.unpack_from(events, place)
                    place += _EVENT.size + length
                    name = events[place - length : place].rstrip(b"\0")
                    ours = ours or name in self._names or bool(mask & _IN_Q_OVERFLOW)
        return ours

    def close(self) -> None:
        os.close(self._file)


class SeenChanges:
    """Watches by comparing the files' sizes and times."""

    def __init__(self, path: str) -> None:
        self._paths = [f"{path}{ending}" for ending in _ENDINGS]
        self._before = self._read_times()

    async def wait(self) -> None:
        while (now := self._read_times()) == self._before:  # noqa: ASYNC110  nobody could set an event
            await anyio.sleep(LOOK_SECONDS)
        self._before = now

    def _read_times(self) -> list[tuple[int, int] | None]:
        found: list[tuple[int, int] | None] = []
        for path in self._paths:
            try:
                status = os.stat(path)
            except OSError:
                found.append(None)
            else:
                found.append((status.st_size, status.st_mtime_ns))
        return found

    def close(self) -> None:
        pass
