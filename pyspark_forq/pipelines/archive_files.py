"""The files of an archive: their directories, what makes them exact, and the locks.

    ARCHIVE/events/date=2026-11-23/queue_name=orders/batch=17/part-….parquet
    ARCHIVE/history/…
    ARCHIVE/_checkpoints/events            where the streaming query of the table is
    ARCHIVE/_locks                         one run at a time for each table, one change of files at a time
    ARCHIVE/_compacting                    what a compaction writes aside

Rules
1. A batch of the streaming query writes only into directories with its own number, and replaces them whole. Spark gives
   a batch that it repeats the same number and the same rows, so a repeated batch overwrites itself: no kill leaves rows
   twice, and no file is left over that a reader other than Spark would count.
2. A batch whose number is not in the checkpoint's commits may be written again. Compaction leaves it alone.
3. Batches on disk are never ahead of the checkpoint. An archive whose checkpoint is missing or older (restored from a
   backup) would write other rows under old numbers; it is refused.
4. `queue` is a column of the files. The directory has another name for it because readers guess the type of what a
   directory is named after, and queues may be called 007.
5. A compacted directory has the negative number of the highest batch in it, less one: a name that was never used
   before. So a reader that listed the files before an exchange and reads them after it fails loudly, and never has
   both. One that lists them during an exchange may miss what was exchanged, because Spark and pyarrow leave out what
   has gone since they saw its name: `listing` keeps changes off meanwhile.
6. Names with _ or . in front are skipped by Spark and pyarrow alike.
"""

import errno
import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forq_trio.model.errors import ForqError

TABLES = ("events", "history")
DIRECTORIES = ("date", "queue_name", "batch")
_BATCH = re.compile(r"batch=(-?[0-9]{1,18})")


class ArchiveError(ForqError):
    """An archive is not as it has to be, or somebody else is at work in it."""


class ArchiveFiles:
    """One table of an archive in a local directory."""

    def __init__(self, archive: str | Path, table: str) -> None:
        if "://" in str(archive):
            raise ArchiveError(
                f"{archive} is not a directory of this machine; an archive needs one, or a shared one"
            )
        self.archive = Path(archive).absolute()
        self.table = table
        self.data = self.archive / table
        self.checkpoint = self.archive / "_checkpoints" / table
        self.aside = self.archive / "_compacting" / table

    def planned(self) -> int:
        """The highest batch that the streaming query has planned, -1: none."""
        return _highest_number(self.checkpoint / "offsets")

    def committed(self) -> int:
        """The highest batch that the streaming query will not repeat, -1: none."""
        return _highest_number(self.checkpoint / "commits")

    def queues(self) -> Iterator[tuple[str, Path]]:
        """The date and the directory of each queue of each day, oldest first."""
        for day in sorted(self.data.glob("date=*")):
            for directory in sorted(day.glob("queue_name=*")):
                yield day.name.removeprefix("date="), directory

    def check_checkpoint(self) -> None:
        """Rule 3. Raises ArchiveError."""
        highest = max(
            (highest_batch(number) for _, queue in self.queues() for number in batches(queue)), default=-1
        )
        if highest > self.planned():
            raise ArchiveError(
                f"{self.data} has batch {highest}, and its checkpoint {self.checkpoint} knows none after "
                f"{self.planned()}: bring back the checkpoint that belongs to it, or archive into an empty directory"
            )

    def remove_unfinished(self) -> None:
        """Remove the files that a killed batch was writing; to be called while `running` is held."""
        for leftover in self.data.glob(".spark-staging-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this table is archived. Raises ArchiveError if another process archives it."""
        with _locked(self._lock(f"{self.table}.run"), wait=False):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for adding and removing directories of this table; waits for others."""
        with _locked(self._lock(f"{self.table}.change"), wait=True):
            yield

    @contextmanager
    def listing(self) -> Iterator[None]:
        """While the files of this table are listed: none come or go. Where no lock can be written, nothing changes."""
        try:
            lock = self._lock(f"{self.table}.change")
            file = lock.open("a")
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def _lock(self, name: str) -> Path:
        return _lock(self.archive, name)


@contextmanager
def compacting(archive: str | Path) -> Iterator[None]:
    """While an archive is compacted. Raises ArchiveError if another process does."""
    with _locked(_lock(Path(archive).absolute(), "compact"), wait=False):
        yield


def batches(queue: Path) -> dict[int, Path]:
    """The batches of a day of a queue by their numbers."""
    found = {}
    for directory in queue.iterdir():
        if match := _BATCH.fullmatch(directory.name):
            found[int(match[1])] = directory
    return found


def compacted_number(highest: int) -> int:
    """The number of a compacted directory whose newest batch is `highest` (rule 5)."""
    return -(highest + 1)


def highest_batch(number: int) -> int:
    """The newest batch in a directory with this number."""
    return number if number >= 0 else -number - 1


def _highest_number(directory: Path) -> int:
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _lock(archive: Path, name: str) -> Path:
    directory = archive / "_locks"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / name


@contextmanager
def _locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold a lock that ends with the process, whatever ends it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ArchiveError(
                f"somebody else holds {path}: another run is at work in this archive"
            ) from None
        yield
