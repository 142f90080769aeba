"""Tells whether the files of an open database still have their names.

A process writes to the files that it opened, whatever happens to their names. If one of them is removed, moved or
replaced, the process notices nothing. The next process finds another file, or none, under that name, and answered
changes are lost: without its log, a database file is as it was at its last checkpoint. A second name (a hard link) is
just as bad: a process that opens the database by that name looks for a log beside it, and finds none.

So the device and inode of each name, and of the file to which it leads, are remembered when the file is opened and
compared with the present ones later. The name itself counts, because a symbolic link that took its place would lead to
the same file, but the next process would look for the log beside that file, not here. The system gives the inode of an
open file to no other file. A file that is overwritten in place goes unnoticed.
"""

import os
from collections.abc import Iterable

LOG_SUFFIX = "-wal"
INDEX_SUFFIX = "-shm"
"""The suffix of the index of the log."""
JOURNAL_SUFFIX = "-journal"
"""The suffix of a rollback journal, which SQLite uses instead of a log in its old mode."""
LOG_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX)
SQLITE_SUFFIXES = (*LOG_SUFFIXES, JOURNAL_SUFFIX)
LOCK_SUFFIX = ".lock"


class FileNames:
    """The names of open files, with the file to which each led when this was made. Other names are left out."""

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
    """All names under which a server uses a database. `path`, as the user gave it, may be a symbolic link."""
    return [path, real_path, *(real_path + suffix for suffix in (*LOG_SUFFIXES, LOCK_SUFFIX))]


def _identity(name: str) -> tuple[int, ...]:
    """Device and inode of a name, and of the file to which it leads; they differ for a symbolic link."""
    link, file = os.lstat(name), os.stat(name)
    return link.st_dev, link.st_ino, file.st_dev, file.st_ino
