"""Makes a directory for a temporary database, in memory if possible, and removes it at the end.

The directory is locked while its process lives, and gets its final name only once it is locked. So a directory without
a lock belongs to a process that was killed, and the next process removes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forq_trio.model.errors import StorageOpenError

MEMORY = Path("/dev/shm")
PREFIX = "forq-memory-"
_UNNAMED = ".forq-unnamed-"


@contextmanager
def temporary_database(base: Path | None = None) -> Iterator[str]:
    """The path for a database file in a new directory, which is removed with all its files when the body ends.

    base: where to make that directory; None means /dev/shm if there is one, else the system's directory for temporary
    files. Raises StorageOpenError.
    """
    base = base or _default_base()
    remove_leftovers(base)
    try:
        directory, lock = _make(base)
    except OSError as error:
        raise StorageOpenError(f"{base} cannot hold a temporary directory: {error.strerror}") from None
    try:
        yield str(directory / "forq.db")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def remove_leftovers(base: Path) -> None:
    """Remove the directories below `base` that processes of this user left behind."""
    for directory in base.glob(f"{PREFIX}*"):
        try:
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # of another user, or gone by now
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue  # its process lives
        finally:
            os.close(lock)


def _make(base: Path) -> tuple[Path, int]:
    """A locked directory, and the descriptor that holds the lock."""
    unnamed = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=base))
    lock = os.open(unnamed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    directory = base / unnamed.name.replace(_UNNAMED, PREFIX)
    unnamed.rename(directory)
    return directory, lock


def _default_base() -> Path:
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK):
        return MEMORY
    return Path(tempfile.gettempdir())
