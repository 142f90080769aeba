"""The files of an archive as Spark writes and reads them. Which of them count is said by archive_table.py."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from deltalake.transaction import AddAction
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, StructField, StructType

from pyspark_forq.pipelines.archive_table import DAY, ArchiveTable, LoggedFile
from pyspark_forq.pipelines.stores import literal

TIME = {"events": "at", "history": "finished_at"}
ID = {"events": "id", "history": "history_id"}
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


def write_files(rows: DataFrame, table: ArchiveTable, name: str) -> list[AddAction]:
    """Write rows as files that a commit can add, in a directory that nobody else has; none for no rows.

    In a file the rows are sorted by queue, so a read of one queue skips most of the others.
    """
    below = f"{name}-{uuid4().hex}"
    place, number = f"{table.root}/{below}", ID[table.table]
    with _older_timestamps(table.spark):
        days = rows.withColumn(DAY, day(f.col(TIME[table.table]))).sortWithinPartitions(DAY, "queue", number)
        days.write.partitionBy(DAY).option("compression", "zstd").parquet(place)
    ends = (
        f.struct(*(end(column).alias(column) for column in (number, "queue"))).alias(f"{word}Values")
        for word, end in (("min", f.min), ("max", f.max))
    )
    stats = f.to_json(f.struct(f.count(f.lit(1)).alias("numRecords"), *ends))
    found = (
        table.spark.read.schema(StructType([*rows.schema, StructField(DAY, DateType())]))
        .parquet(literal(place))
        .groupBy(DAY, f.col("_metadata.file_path").alias("path"), f.col("_metadata.file_size").alias("size"))
        .agg(stats.alias("stats"))
    )
    now = time.time_ns() // 1_000_000
    return [
        AddAction(
            below + row["path"].rpartition(f"/{below}")[2],
            row["size"],
            {DAY: row[DAY].isoformat()},
            now,
            True,
            row["stats"],
        )
        for row in found.collect()
    ]


def rows_in(added: list[AddAction]) -> int:
    """How many rows these files have."""
    return sum(json.loads(each.stats)["numRecords"] for each in added)


def read_files(table: ArchiveTable, files: list[LoggedFile]) -> DataFrame:
    """The rows of files that count now. They can be read for KEEP_HOURS after they no longer count."""
    schema = table.schema()
    if not files:
        return table.spark.createDataFrame([], schema)
    return table.spark.read.schema(schema).parquet(*(literal(f"{table.root}/{each.path}") for each in files))


def day(moment: Column) -> Column:
    """The day in UTC, whatever the zone of the session."""
    return f.date_from_unix_date(f.floor(f.unix_seconds(moment) / 86_400).cast("int"))


@contextmanager
def _older_timestamps(spark: SparkSession) -> Iterator[None]:
    """Write another form of timestamps than Spark's default, which older readers shift and libraries cannot prune."""
    before = spark.conf.get(_TIMESTAMPS)
    spark.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMPS, str(before))
