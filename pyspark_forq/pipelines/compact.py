"""Compaction of an archive: the many small files of a closed day become few, sorted by queue.

The files of a day are read as one commit of the log has them, written anew, counted, and exchanged in one commit
(archive_table.py). A kill before it leaves all as it was, and files that nobody reads.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_forq.pipelines.archive_files import ID, read_files, rows_in, write_files
from pyspark_forq.pipelines.archive_table import (
    COMPACTED,
    KEEP_HOURS,
    TABLES,
    ArchiveError,
    ArchiveTable,
    LoggedFile,
)
from pyspark_forq.pipelines.results import CompactResult, Show, show_nothing

FILE_BYTES = 256 * 2**20


def compact(
    spark: SparkSession,
    archive: str | Path,
    *,
    before: str | None = None,
    keep_hours: int = KEEP_HOURS,
    show: Show = show_nothing,
    step: Callable[[str], None] = lambda name: None,
) -> CompactResult:
    """Rewrite the days before `before` (a date such as 2026-11-23; None: today in UTC) of an archive.

    It may run beside `archive` and readers, and as often as one likes: what is compact already is left alone. Files
    that have not counted for `keep_hours` are removed; who still reads or writes them then gets an error. step: told
    what was done ("written", "exchanged"), for tests that end the process there. Raises ArchiveError when another
    compaction was faster.
    """
    end = date.fromisoformat(before) if before else datetime.now(UTC).date()
    found = [table for table in (ArchiveTable(spark, archive, name) for name in TABLES) if table.exists]
    work = [(table, files) for table in found for files in _worth_it(table, end)]
    before_count = after_count = rows = 0
    for done, (table, files) in enumerate(work):
        show(done, len(work), f"{table.table} of {files[0].day}")
        new = _rewrite(table, files, step)
        before_count, after_count = before_count + len(files), after_count + new
        rows += sum(each.rows for each in files)
    for table in found:
        table.vacuum(keep_hours)
    days = {files[0].day for _, files in work}
    return CompactResult(len(days), before_count, after_count, rows)


def _worth_it(table: ArchiveTable, end: date) -> list[list[LoggedFile]]:
    """The files of each closed day that has more of them than it needs."""
    days: dict[date, list[LoggedFile]] = {}
    for file in table.files():
        if file.day < end:
            days.setdefault(file.day, []).append(file)
    return [files for _, files in sorted(days.items()) if len(files) > _needed(files)]


def _needed(files: list[LoggedFile]) -> int:
    """How many files the rows of a day need."""
    return max(1, -(-sum(file.bytes for file in files) // FILE_BYTES))


def _rewrite(table: ArchiveTable, files: list[LoggedFile], step: Callable[[str], None]) -> int:
    """Exchange the files of a day for fewer; returns how many there are then."""
    previous = table.number(COMPACTED)
    rows = read_files(table, files).repartitionByRange(_needed(files), "queue", ID[table.table])
    new = write_files(rows, table, "compact")
    expected, written = sum(file.rows for file in files), rows_in(new)
    if written != expected:
        raise ArchiveError(
            f"{written:,} rows of {expected:,} were written of {files[0].day}; nothing was replaced"
        )
    step("written")
    table.commit(COMPACTED, previous, (previous or 0) + 1, new, files)
    step("exchanged")
    return len(new)
