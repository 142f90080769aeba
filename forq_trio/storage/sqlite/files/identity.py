"""Tells whether the files of an open database still have their names.

A process writes to the files that it opened, whatever happens to their names. When one of them is removed, moved or
replaced, the process notices nothing, and the next process finds another file, or none, under the name: answered
changes are lost. Without its log, a database file is as it was at some checkpoint. A second name (a hard link) is as
bad: a process that opens the database by it looks for a log beside that name, and finds none.

So the device and the number (inode) of each name and of the file that it leads to are kept when the file is opened, and
compared with what is there. The name counts, too: a symbolic link in its place leads to the same file, but the next
process would look for the log beside the file, where this one does not write it. The number of an open file is not
given to another one. A file that is overwritten in place is not noticed.
"""

import os
from collections.abc import Iterable

LOG_SUFFIX = "-wal"
INDEX_SUFFIX = "-shm"
"""Of the index of the log."""
JOURNAL_SUFFIX = "-journal"
"""Of a log of the old kind."""
LOG_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX)
SQLITE_SUFFIXES = (*LOG_SUFFIXES, JOURNAL_SUFFIX)
LOCK_SUFFIX = ".lock"


class FileNames:
    """The names of open files, each with the file that it led to when this was made. Names of nothing are left out."""

    def __init__(self, names: Iterable[str]) -> None:
        names = filter(os.path.exists, map(os.path.abspath, names))
        self._opened = {name: _identity(name) for name in names}

    def problem(self) -> str | None:
        """The problem of the first file that has lost its name, or has a second one; None if there is none."""
        for name, opened in self._opened.items():
            try:
                found, links = _identity(name), os.stat(name).st_nlink
            except FileNotFoundError:
                return f"{name} was removed or moved"
            except OSError as error:
                return f"{name} cannot be reached: {error.strerror}"
            if found != opened:
                return f"{name} was replaced by another file"
            if links > 1:
                return f"{name} has a second name (a hard link)"
        return None


def names_of(path: str, real_path: str) -> list[str]:
    """All names by which a server uses a database: `path`, as it was given, may be a symbolic link."""
    return [path, real_path, *(real_path + suffix for suffix in (*LOG_SUFFIXES, LOCK_SUFFIX))]


def _identity(name: str) -> tuple[int, ...]:
    """Device and number of a name, and of the file that it leads to: a symbolic link has its own."""
    link, file = os.lstat(name), os.stat(name)
    return link.st_dev, link.st_ino, file.st_dev, file.st_ino
