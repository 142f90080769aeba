"""Compaction of an archive: the many small files of closed days become one directory per day and queue.

Steps, for each day and queue with something to gain:
1. The committed batches are written into one directory aside (`_compacting`, which readers skip), and synced.
2. With the lock that batches are written under: what else is in the queue's directory is linked beside it.
3. The two directories change places, in one step of the kernel (renameat2 with RENAME_EXCHANGE).
4. What is aside, now the old files, is removed.
A kill before 3 leaves all as it was, a kill after 3 leaves it done; the next run removes what is aside. So rows are
never missing or there twice. A reader that listed the files before 3 and opens them after it gets an error, because a
compacted directory has a new name; reading again helps. A reader that lists a directory at the moment of 3 may find
nothing: `archived` holds a lock while it lists, other readers should not list meanwhile.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow import dataset

from pyspark_forq.pipelines.archive_files import (
    TABLES,
    ArchiveError,
    ArchiveFiles,
    batches,
    compacted_number,
    compacting,
    highest_batch,
)
from pyspark_forq.pipelines.results import CompactResult, Show, show_nothing

FILE_ROWS_MAX = 5_000_000
ROW_GROUP_ROWS = 250_000
_AT_WORKING_DIRECTORY = -100
_RENAME_EXCHANGE = 2


def compact(
    archive: str | Path,
    *,
    before: str | None = None,
    show: Show = show_nothing,
    step: Callable[[str], None] = lambda name: None,
) -> CompactResult:
    """Rewrite the days before `before` (a date such as 2026-11-23; None: today in UTC) of a local archive.

    It may run beside `archive`, and as often as one likes: what is compact already is left alone. step: told what comes
    next ("written", "linked", "exchanged"), for tests that end the process there. Raises ArchiveError where the file
    system cannot exchange two directories.
    """
    with compacting(archive):
        return _compact(archive, before or datetime.now(UTC).date().isoformat(), show, step)


def _compact(archive: str | Path, end: str, show: Show, step: Callable[[str], None]) -> CompactResult:
    work = []
    for files in (ArchiveFiles(archive, table) for table in TABLES):
        shutil.rmtree(files.aside, ignore_errors=True)
        committed = files.committed()
        work += [
            (files, queue, numbers)
            for day, queue in files.queues()
            if day < end and (numbers := _worth_it(queue, committed))
        ]
    files_before = files_after = rows = 0
    for done, (files, queue, numbers) in enumerate(work):
        show(
            done,
            len(work),
            f"{queue.parent.name.removeprefix('date=')} {queue.name.removeprefix('queue_name=')}",
        )
        old, new, count = _compact_queue(files, queue, numbers, step)
        files_before, files_after, rows = files_before + old, files_after + new, rows + count
    return CompactResult(len(work), files_before, files_after, rows)


def _worth_it(queue: Path, committed: int) -> list[int]:
    """The directories to make one of: all committed ones, if they are more than one file."""
    numbers = [number for number in batches(queue) if highest_batch(number) <= committed]
    count = sum(1 for number in numbers for _ in _parquet(queue / f"batch={number}"))
    return (
        sorted(numbers, key=highest_batch)
        if len(numbers) > 1 or (numbers and numbers[0] >= 0 and count > 1)
        else []
    )


def _parquet(directory: Path) -> Iterator[Path]:
    return (path for path in sorted(directory.glob("*.parquet")) if path.name[0] not in "._")


def _compact_queue(
    files: ArchiveFiles, queue: Path, numbers: list[int], step: Callable[[str], None]
) -> tuple[int, int, int]:
    """Steps 1 to 4 for one day of a queue; the files before and after, and the rows."""
    aside = files.aside / queue.parent.name / queue.name
    target = aside / f"batch={compacted_number(highest_batch(numbers[-1]))}"
    target.mkdir(parents=True)
    sources = [path for number in numbers for path in _parquet(queue / f"batch={number}")]
    rows = _rewrite(sources, target)
    step("written")
    with files.changing():
        for number, directory in batches(queue).items():
            if number not in numbers:
                shutil.copytree(directory, aside / directory.name, copy_function=os.link)
        _sync_tree(aside)
        step("linked")
        _exchange(aside, queue)
        _sync(queue.parent)
        step("exchanged")
        new = sum(1 for _ in _parquet(queue / target.name))
    shutil.rmtree(aside)
    return len(sources), new, rows


def _rewrite(sources: list[Path], target: Path) -> int:
    """Write the rows of `sources` in their order into files of at most FILE_ROWS_MAX rows; how many rows there were.

    Column by column as the newest file has them: an older one may lack columns that came later.
    """
    schema = pq.read_schema(sources[-1]).remove_metadata()
    table = dataset.dataset([str(path) for path in sources], schema=schema, format="parquet")
    expected = sum(pq.read_metadata(path).num_rows for path in sources)
    dataset.write_dataset(
        table.scanner(batch_readahead=2, fragment_readahead=1, use_threads=False),
        target,
        format="parquet",
        file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd"),
        basename_template="part-{i}.parquet",
        use_threads=False,
        max_rows_per_file=FILE_ROWS_MAX,
        max_rows_per_group=ROW_GROUP_ROWS,
        min_rows_per_group=ROW_GROUP_ROWS // 4,
    )
    written: int = sum(pq.read_metadata(path).num_rows for path in _parquet(target))
    if written != expected:
        raise ArchiveError(f"{target} has {written:,} rows of {expected:,}; nothing was replaced")
    return written


def _sync_tree(directory: Path) -> None:
    """The old files are removed, so the new ones have to be on disk first."""
    for path in [*directory.rglob("*"), directory, directory.parent]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two directories. A reader sees one of the two in each place at any moment."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise ArchiveError(
            "compaction needs Linux: other systems cannot exchange two directories in one step"
        )
    here = _AT_WORKING_DIRECTORY
    if renameat2(here, os.fsencode(one), here, os.fsencode(other), _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV):
            raise ArchiveError(f"the file system of {other} cannot exchange two directories in one step")
        raise OSError(number, os.strerror(number), str(other))
