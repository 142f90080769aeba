"""Locks that keep a second server off a database; the kernel releases them however the process ends.

Two are held, both by flock, which SQLite does not use:

- `<file>.lock`, because the database file may not exist yet, or may be about to be replaced (replace.py). The lock file
  is never removed: otherwise a second server could make and lock a new one.
- On Linux the database file itself, whatever its names are. It keeps a second server out even if the lock file was
  removed, or if that server reaches the file by another path with another lock file (a file that is mounted into two
  containers). On other systems a flock and SQLite's own locks on the same file may exclude each other, so only the
  first lock is used.

Closing any descriptor of the database file ends SQLite's locks in this process. So the descriptor that holds the lock
is closed after the connection, and another server in this process is recognised by device and inode of its file, not
by opening it.
"""

import errno
import fcntl
import os
import sys

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.identity import LOCK_SUFFIX

_CANNOT = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""The errors of a file system that has no such locks."""
_locked_here: set[tuple[int, int]] = set()
"""Device and inode of each database file that this process has open."""


class DatabaseLock:
    """The locks of one database. file: the descriptor of the database file while it is locked, else -1."""

    def __init__(self, real_path: str, path: str) -> None:
        """Take the lock beside the file. path: for error messages. Raises StorageOpenError if somebody else has it."""
        self._real_path = real_path
        self._path = path
        self._identity: tuple[int, int] | None = None
        self.file = -1
        self._beside = self._lock_beside()

    @property
    def held(self) -> bool:
        return self._beside >= 0

    def lock_file(self) -> None:
        """Lock the database file, which must exist. Raises StorageOpenError if somebody else has it."""
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
        """Release the locks, so that another server can open the database."""
        if self._identity is not None:
            _locked_here.discard(self._identity)
            self._identity = None
        for descriptor in (self.file, self._beside):
            if descriptor >= 0:
                os.close(descriptor)
        self.file = self._beside = -1

    def _lock_beside(self) -> int:
        """Lock the lock file, again if it was removed between being opened and being locked; returns its descriptor."""
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
