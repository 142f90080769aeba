"""Locks that keep a second server off a database; the kernel releases them however the process ends.

Two are held, both by flock, which SQLite does not use:

- `<file>.lock`, because the database file may not be there yet, or is about to be replaced (replace.py). The lock file
  stays; whoever removes it would let a second server lock a new one.
- On Linux the database file itself, whatever names it has: then a second server is refused also without the first lock,
  or where it finds the file by another path with another lock file (a file that is mounted into two containers).
  Elsewhere a flock and SQLite's own locks of the same file may exclude each other, so there is the first one alone.

Closing any descriptor of the database file ends SQLite's locks in this process: the one that holds the lock is closed
after the connection, and another server of this process is found by the numbers of its file, not by a descriptor.
"""

import errno
import fcntl
import os
import sys

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.identity import LOCK_SUFFIX

_CANNOT = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""What a file system without such locks says."""
_locked_here: set[tuple[int, int]] = set()
"""Device and number of each database file that this process has open."""


class DatabaseLock:
    """The locks of one database. file: a descriptor of the database file once it is locked, else -1."""

    def __init__(self, real_path: str, path: str) -> None:
        """Take the lock beside the file. path: for messages. Raises StorageOpenError where somebody has it."""
        self._real_path = real_path
        self._path = path
        self._identity: tuple[int, int] | None = None
        self.file = -1
        self._beside = self._lock_beside()

    @property
    def held(self) -> bool:
        return self._beside >= 0

    def lock_file(self) -> None:
        """Lock the database file, which exists. Raises StorageOpenError where somebody has it."""
        refuse_if_open_here(self._real_path, self._path)
        self.file = os.open(self._real_path, os.O_RDONLY | os.O_CLOEXEC)
        if sys.platform == "linux":
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _in_use(self._path) from None
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
        self._identity = _identity(self._real_path)
        _locked_here.add(self._identity)

    def close(self) -> None:
        """Let another server in."""
        if self._identity is not None:
            _locked_here.discard(self._identity)
            self._identity = None
        for descriptor in (self.file, self._beside):
            if descriptor >= 0:
                os.close(descriptor)
        self.file = self._beside = -1

    def _lock_beside(self) -> int:
        """Lock the file that has the name now: it may have been removed between its opening and its locking."""
        name = self._real_path + LOCK_SUFFIX
        while True:
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.exists(name) and os.path.samestat(os.fstat(lock), os.stat(name)):
                    return lock
            except BlockingIOError:
                os.close(lock)
                raise _in_use(self._path) from None
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)


def refuse_if_open_here(real_path: str, path: str) -> None:
    """Raise StorageOpenError for a database that this process has open, before any descriptor of it is opened."""
    if os.path.exists(real_path) and _identity(real_path) in _locked_here:
        raise _in_use(path)


def _identity(real_path: str) -> tuple[int, int]:
    found = os.stat(real_path)
    return found.st_dev, found.st_ino


def _in_use(path: str) -> StorageOpenError:
    return StorageOpenError(f"{path} is in use by another forq server")
