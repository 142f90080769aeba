"""The backups in a directory: their names, and which of them are removed when there are too many.

A backup is called `<database>-<UTC time><ending>`, as in `forq-20260131T030000Z.db`. Only regular files with such
names are ever listed or removed. While it is written it is a `.partial` file, which a process that is killed leaves.
"""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from forq_trio.model.server.backups import BackupFile

_TIME = "%Y%m%dT%H%M%SZ"


class BackupFiles:
    """database: the path of the database, which gives the names their first part and their ending."""

    def __init__(self, directory: Path, database: Path) -> None:
        self.directory = directory
        self._start, self._end = database.stem, database.suffix
        name = rf"{re.escape(self._start)}-(\d{{8}}T\d{{6}}Z){re.escape(self._end)}"
        self._name = re.compile(name, re.ASCII)
        self._partial = re.compile(rf"{name}\.[^.]+\.partial(-journal|-wal|-shm)?", re.ASCII)

    def name_at(self, now_ms: int) -> str:
        return f"{self._start}-{datetime.fromtimestamp(now_ms // 1_000, UTC):{_TIME}}{self._end}"

    def path_of(self, name: str) -> str:
        return str(self.directory / name)

    def list(self) -> list[BackupFile]:
        """The backups, the latest first; none if the directory does not exist. Raises OSError."""
        found = []
        for entry in self._entries():
            match = self._name.fullmatch(entry.name)
            if match is None or not entry.is_file(follow_symlinks=False):
                continue
            try:
                made_at = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
                size = entry.stat().st_size
            except (ValueError, FileNotFoundError):
                continue  # not a time, or removed meanwhile
            found.append(BackupFile(entry.name, size, int(made_at.timestamp()) * 1_000))
        return sorted(found, key=lambda file: file.made_at, reverse=True)

    def remove_oldest(self, keep: int) -> None:
        """Remove all but the latest `keep` backups. Raises OSError."""
        for file in self.list()[keep:]:
            (self.directory / file.name).unlink(missing_ok=True)

    def remove_partial(self) -> None:
        """Remove what a killed process left; to be called while no backup is written. Raises OSError."""
        for entry in self._entries():
            if self._partial.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.directory) as entries:
                yield from entries
        except FileNotFoundError:
            return
