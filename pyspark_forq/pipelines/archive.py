"""Archiving: new events and finished messages of a server become partitioned Parquet, each once.

A streaming query for each table continues from its checkpoint. `archive_files` has the rules that make the files
exact for every reader, also after kills; here a batch is written by them.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DateType, LongType, StringType, StructType

from pyspark_forq.pipelines.archive_files import DIRECTORIES, TABLES, ArchiveError, ArchiveFiles
from pyspark_forq.pipelines.owners import check_owner
from pyspark_forq.pipelines.patient_query import PatientQuery
from pyspark_forq.pipelines.results import ArchiveResult, Show, show_nothing

_TIME = {"events": "at", "history": "finished_at"}
_ID = {"events": "id", "history": "history_id"}
_ROWS_A_BATCH = {"events": 1_000_000, "history": 100_000}
FOLLOW_SECONDS = 30
_LOOK_SECONDS = 1


def archive(
    spark: SparkSession,
    directory: str | Path,
    *,
    url: str,
    token: str | None = None,
    queue: str | None = None,
    tables: Sequence[str] = TABLES,
    follow: bool = False,
    last: Mapping[str, int] | None = None,
    show: Show = show_nothing,
) -> ArchiveResult:
    """Append new events and finished messages of the server at `url` to the archive in a directory.

    A cluster may share the directory.

    queue: only of this queue. tables: events, history, or both. follow: go on until the caller interrupts, with a batch
    each FOLLOW_SECONDS; otherwise up to what there was at the start. last: the newest id of each table, for `show`.
    Raises ArchiveError when another process archives here or the checkpoint does not belong to the files, and
    InvalidRequest when it is of another server or queue.
    """
    about = {"url": url.rstrip("/"), "queue": queue}
    with ExitStack() as stack:
        writers = []
        for table in tables:
            writer = ArchiveWriter(ArchiveFiles(directory, table))
            stack.enter_context(writer.files.running())
            writer.files.check_checkpoint()
            check_owner(spark, str(writer.files.checkpoint), about, log="offsets")
            writer.files.remove_unfinished()
            writers.append(writer)
        queries: list[PatientQuery] = []
        try:
            for writer in writers:
                frame = _read(spark, writer.files.table, url, token, queue)
                queries.append(PatientQuery(partial(start, frame, writer, follow=follow)))
                if not follow:
                    # One after the other: each has processes of its own to start.
                    _wait([queries[-1]], [writer], last or {}, show)
            if follow:
                _wait(queries, writers, {}, show)
        except KeyboardInterrupt:
            if not follow:
                raise
        finally:
            for each in queries:
                each.query.stop()
    return ArchiveResult(str(Path(directory).absolute()), {each.files.table: each.rows for each in writers})


def start(frame: DataFrame, writer: "ArchiveWriter", *, follow: bool = False) -> StreamingQuery:
    """A query that appends a streaming frame to an archive; `archive` without the locks, the checks and the reading."""
    stream = frame.writeStream.foreachBatch(writer.write).queryName(f"archive {writer.files.table}")
    stream = stream.option("checkpointLocation", str(writer.files.checkpoint))
    if follow:
        return stream.trigger(processingTime=f"{FOLLOW_SECONDS} seconds").start()
    return stream.trigger(availableNow=True).start()


class ArchiveWriter:
    """Writes the batches of one table. rows: how many so far; first_id, last_id: of those."""

    def __init__(self, files: ArchiveFiles) -> None:
        self.files = files
        self.rows = 0
        self.first_id = 0
        self.last_id = 0

    def write(self, frame: DataFrame, batch: int) -> None:
        """One batch into directories of its own; the same batch again replaces them."""
        table = self.files.table
        # Of the stream's own session, so it ends with the stream: what Spark writes by default older readers shift.
        frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        seen = Observation()
        tasks = frame.sparkSession.sparkContext.defaultParallelism
        directories = (_day(f.col(_TIME[table])), f.col("queue"), f.lit(batch).cast("long"))
        rows = (
            frame.coalesce(tasks)
            .observe(
                seen,
                f.count(f.lit(1)).alias("rows"),
                f.min(_ID[table]).alias("first"),
                f.max(_ID[table]).alias("last"),
            )
            .withColumns(dict(zip(DIRECTORIES, directories, strict=True)))
            .write.mode("overwrite")
            .partitionBy(*DIRECTORIES)
            .option("partitionOverwriteMode", "dynamic")
            .option("compression", "zstd")
        )
        with self.files.changing():
            rows.parquet(str(self.files.data))
        found = seen.get
        if found["rows"]:
            self.rows += found["rows"]
            self.first_id = self.first_id or found["first"]
            self.last_id = found["last"]


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
    second one excluded; with `queue` they also choose the directories to look into.

    Beside `archive` and `compact` it has each row once, or fails when it is used after files were exchanged.
    """
    files = ArchiveFiles(directory, table)
    if not any(files.queues()):
        raise ArchiveError(f"there are no {table} in {files.archive}")
    with files.listing():  # Spark lists the files when a frame is made, and reads them when it is used
        found = spark.read.parquet(str(files.data))
        # Spark guesses the types of what directories are named after, and takes the queue 007 for 7.
        own = StructType([field for field in found.schema if field.name not in DIRECTORIES])
        schema = own.add("date", DateType()).add("queue_name", StringType()).add("batch", LongType())
        frame = spark.read.schema(schema).parquet(str(files.data))
    return _between(frame, _TIME[table], queue, since, until, directories=True).drop(*DIRECTORIES)


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
    """A table of an archive, or (None) what the server at `url` has stored of it; of a queue, of a time (ISO 8601)."""
    if archive is not None:
        return archived(spark, archive, table, queue=queue, since=since, until=until)
    frame = spark.read.format("forq").options(**_source_options(table, url, token, queue)).load()
    return _between(frame, _TIME[table], queue, since, until)


def _between(
    frame: DataFrame,
    time: str,
    queue: str | None,
    since: str | None,
    until: str | None,
    *,
    directories: bool = False,
) -> DataFrame:
    """The rows of a queue and of a time."""
    if queue is not None:
        frame = frame.where(f.col("queue") == queue)
        if directories:
            # A directory without a name is of a queue that is called as Hive calls what has none.
            frame = frame.where(f.coalesce("queue_name", f.lit(queue)) == queue)
    for moment, after in ((since, True), (until, False)):
        if moment is not None:
            at = f.lit(moment).cast("timestamp")
            frame = frame.where(f.col(time) >= at if after else f.col(time) < at)
            if directories:
                frame = frame.where(f.col("date") >= _day(at) if after else f.col("date") <= _day(at))
    return frame


def _read(spark: SparkSession, table: str, url: str, token: str | None, queue: str | None) -> DataFrame:
    options = _source_options(table, url, token, queue)
    options["maxMessagesPerTrigger"] = str(_ROWS_A_BATCH[table])
    return spark.readStream.format("forq").options(**options).load()


def _source_options(table: str, url: str, token: str | None, queue: str | None) -> dict[str, str]:
    """The options of the data source for a log of the server; those that are None are left out."""
    attributes = "true" if table == "history" else None
    given = {"mode": table, "url": url, "token": token, "queue": queue, "includeAttributes": attributes}
    return {name: value for name, value in given.items() if value is not None}


def _day(time: Column) -> Column:
    """The day in UTC, whatever the zone of the session."""
    return f.date_from_unix_date(f.floor(f.unix_seconds(time) / 86_400).cast("int"))


def _wait(
    queries: Sequence[PatientQuery], writers: Sequence[ArchiveWriter], last: Mapping[str, int], show: Show
) -> None:
    """Until all queries have ended; the first that fails ends it. Raises what Spark raised.

    last: up to which id each writer goes; without it nothing is said of how much is left.
    """
    while not all([query.has_ended(_LOOK_SECONDS) for query in queries]):
        begun = [each for each in writers if each.rows]
        done = sum(each.last_id - each.first_id + 1 for each in begun)
        total = sum(last[each.files.table] - each.first_id + 1 for each in begun if each.files.table in last)
        show(done, total or None, ", ".join(f"{each.rows:,} {each.files.table}" for each in begun))
