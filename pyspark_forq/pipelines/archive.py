"""Archiving: new events and finished messages of a server become rows of two Delta tables, each once.

A batch is a range of ids, from the one behind the last batch. It is read, written as files, and committed with its last
id (archive_table.py). What ends the process before the commit leaves files that nobody reads.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_forq.logs import bounds
from pyspark_forq.options import parsed
from pyspark_forq.pipelines.archive_files import TIME, day, read_files, rows_in, write_files
from pyspark_forq.pipelines.archive_table import ARCHIVED, TABLES, ArchiveError, ArchiveTable
from pyspark_forq.pipelines.owners import server_of
from pyspark_forq.pipelines.results import ArchiveResult, Show, show_nothing
from pyspark_forq.pipelines.stores import whole
from pyspark_forq.rows import arrow_schema
from pyspark_forq.spark_conf import defaults_of

_IDS_A_BATCH = {"events": 1_000_000, "history": 100_000}
FOLLOW_SECONDS = 30


def archive(
    spark: SparkSession,
    directory: str | Path,
    *,
    url: str,
    token: str | None = None,
    queue: str | None = None,
    tables: Sequence[str] = TABLES,
    follow: bool = False,
    show: Show = show_nothing,
    step: Callable[[str], None] = lambda name: None,
) -> ArchiveResult:
    """Append new events and finished messages of the server at `url` to the archive in a directory.

    directory: on this machine, or a URI of a store that Spark reaches, such as s3a://bucket/archive. queue: only what
    concerns this queue. tables: events, history, or both. follow: go on until the caller interrupts, and look for more
    each FOLLOW_SECONDS; otherwise end with what there was at the start. step: told what was done ("written",
    "committed"), for tests that end the process there. Raises ArchiveError when another process archives here or the
    server's log ends before the archive does, and InvalidRequest when the archive is of another server or queue.
    """
    about = {"url": server_of(url), "queue": queue}
    given = {"url": url, "token": token, "queue": queue}
    logs = [_Log(spark, directory, table, given, about, step) for table in tables]
    try:
        while True:
            for log in logs:
                for done, total in log.append():
                    words = ", ".join(f"{each.rows:,} {each.table.table}" for each in logs if each.rows)
                    show(done, total, words)
            if not follow:
                break
            time.sleep(FOLLOW_SECONDS)
    except KeyboardInterrupt:
        if not follow:
            raise
    return ArchiveResult(whole(directory), {log.table.table: log.rows for log in logs})


class _Log:
    """A log of the server and its table in an archive. rows: how many were appended."""

    def __init__(
        self,
        spark: SparkSession,
        directory: str | Path,
        table: str,
        given: Mapping[str, str | None],
        about: Mapping[str, str | None],
        step: Callable[[str], None],
    ) -> None:
        self.rows = 0
        self.table = ArchiveTable(spark, directory, table)
        self._spark = spark
        self._step = step
        self._source = source_options(table, **given)
        self._options = parsed(self._source, "read", defaults_of(spark))
        schema = self._frame(1, 1).schema
        self.table.belong_to(arrow_schema(schema), about)

    def append(self) -> Iterator[tuple[int, int]]:
        """Append what the server has now, batch by batch; yields how many ids are done, of how many."""
        first, last = bounds(self._options)
        done = self.table.number(ARCHIVED)
        if done is not None and done > last:
            raise ArchiveError(
                f"the archive {self.table.root} is at {done:,}, and the server's {self.table.table} end at {last:,}: is"
                " this another server, or one restored from a backup?"
            )
        start = first - 1 if done is None else done
        for after in range(start, last, _IDS_A_BATCH[self.table.table]):
            until = min(last, after + _IDS_A_BATCH[self.table.table])
            added = write_files(self._frame(after + 1, until), self.table, f"batch-{until}")
            self._step("written")
            self.table.commit(ARCHIVED, done, until, added)
            self._step("committed")
            done = until
            self.rows += rows_in(added)
            yield until - start, last - start

    def _frame(self, first: int, last: int) -> DataFrame:
        """What the server has stored from one id to another."""
        own = {"startingOffsets": str(first), "endingOffsets": str(last)}
        return self._spark.read.format("forq").options(**self._source, **own).load()


def archived(
    spark: SparkSession,
    directory: str | Path,
    table: str,
    *,
    queue: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> DataFrame:
    """A table of an archive as it was on the server. since, until: moments (ISO 8601) that the rows lie between, the
    second one excluded; with `queue` they also choose the files to read.

    It has what was archived when this was called, each row once, whatever `archive` and `compact` do meanwhile. Raises
    ArchiveError where nothing was archived.
    """
    found = ArchiveTable(spark, directory, table)
    moments = (day(f.lit(moment).cast("timestamp")) for moment in (since, until))
    ((first, last),) = spark.range(1).select(*moments).collect()
    files = found.files(queue=queue, since=first, until=last)
    return between(read_files(found, files), TIME[table], queue, since, until)


def log_of(
    spark: SparkSession,
    table: str,
    *,
    url: str,
    token: str | None = None,
    archive: str | Path | None = None,
    queue: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> DataFrame:
    """A table of the archive; or, where `archive` is None, of what the server at `url` has stored. Of a queue, and of a
    time (ISO 8601), if these are given."""
    if archive is not None:
        return archived(spark, archive, table, queue=queue, since=since, until=until)
    frame = spark.read.format("forq").options(**source_options(table, url, token, queue)).load()
    return between(frame, TIME[table], queue, since, until)


def between(
    frame: DataFrame, time: str, queue: str | None, since: str | None, until: str | None
) -> DataFrame:
    """The rows of a queue and of a time, whose column is `time`; None: of all."""
    if queue is not None:
        frame = frame.where(f.col("queue") == queue)
    if since is not None:
        frame = frame.where(f.col(time) >= f.lit(since).cast("timestamp"))
    if until is not None:
        frame = frame.where(f.col(time) < f.lit(until).cast("timestamp"))
    return frame


def source_options(table: str, url: str | None, token: str | None, queue: str | None) -> dict[str, str]:
    """The options of the data source for a log of the server; those that are None are left out."""
    attributes = "true" if table == "history" else None
    given = {"mode": table, "url": url, "token": token, "queue": queue, "includeAttributes": attributes}
    return {name: value for name, value in given.items() if value is not None}
