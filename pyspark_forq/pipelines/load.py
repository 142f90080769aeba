"""Load: the rows of a dataset become messages of a queue.

A streaming query reads the files and remembers in its checkpoint which it has read, and the sink publishes each of its
batches in one transaction, once. So a load that was interrupted goes on where it was when it is asked again, and a
later one takes the files that came since. A file is never read twice, also if it is changed: write new files. The
checkpoint is of one dataset, server and queue (owners.py).
"""

from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from forq_trio.model.errors import InvalidRequest
from pyspark_forq.columns import COLUMNS
from pyspark_forq.pipelines.owners import check_owner, server_of
from pyspark_forq.pipelines.results import LoadResult, Show, show_nothing
from pyspark_forq.pipelines.stores import literal, plain, whole

FORMATS = ("parquet", "json", "csv", "text")
_READER_OPTIONS = {
    "json": {"mode": "FAILFAST"},
    # Quotes in quotes are doubled (RFC 4180), not written with a backslash.
    "csv": {"mode": "FAILFAST", "header": "true", "escape": '"'},
}
_SUFFIXES = {
    ".parquet": "parquet",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
    ".csv": "csv",
    ".txt": "text",
}
_BYTES_A_BATCH = 128 * 2**20
_LOOK_SECONDS = 1


def load(
    spark: SparkSession,
    dataset: str | Path,
    queue: str,
    *,
    url: str,
    token: str | None = None,
    format: str | None = None,
    content: str | None = None,
    columns: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    show: Show = show_nothing,
) -> LoadResult:
    """Send each row of a Parquet, JSON (an object a line), CSV (with a header) or text dataset to a queue as a message.

    dataset: a file, a directory, or a pattern, here or in a store that Spark reaches. format: None: by the names of the
    files. content: the column that is the message's content; None: all columns as JSON, of text the line. columns:
    other members of a message (priority, delay_ms, ttl_ms, process_after, attributes, group, deduplication_id,
    max_attempts) and the columns they come from. checkpoint: what was loaded is remembered there; None: beside the
    dataset, by queue. Rows without a content are skipped. Raises InvalidRequest for columns and formats that do not
    exist, and for the checkpoint of another load.
    """
    directory, files = _listed(spark, whole(dataset))
    kind = format or _format_of(str(dataset), files)
    options = _READER_OPTIONS.get(kind, {})
    schema = spark.read.format(kind).options(**options).load(directory).schema
    place = str(checkpoint or f"{str(dataset).rstrip('/*')}.forq-load/{queue}")
    rows = (
        spark.readStream.format(kind)
        .options(**options)
        .option("maxBytesPerTrigger", _BYTES_A_BATCH)
        .schema(schema)
        .load(directory)
    )
    messages = as_messages(rows, content, columns or {})
    # A load that was not begun there may go elsewhere: what was wrong may have been the URL.
    about = {"url": server_of(url), "queue": queue, "dataset": directory}
    check_owner(spark, place, about, log="commits")
    counted = messages.observe(
        "rows", f.count(f.lit(1)).alias("read"), f.count("content").alias("with_content")
    ).where(f.col("content").isNotNull())
    settings = {"url": url, "queue": queue, "checkpointLocation": place}
    if token is not None:
        settings["token"] = token
    query = counted.writeStream.format("forq").options(**settings).trigger(availableNow=True).start()
    try:
        read, published = _follow(query, show)
    finally:
        query.stop()
    return LoadResult(queue, place, read, published, read - published)


def as_messages(rows: DataFrame, content: str | None, columns: Mapping[str, str]) -> DataFrame:
    """Rows as the data source takes them; see `load`."""
    kinds = {field.name: field.dataType for field in rows.schema}
    for name in [*([content] if content else []), *columns.values()]:
        if name not in kinds:
            raise InvalidRequest(f"the dataset has no column {name!r}; there are {', '.join(kinds)}")
    for member in columns:
        if member not in COLUMNS or member in ("content", "queue"):
            others = ", ".join(name for name in COLUMNS if name not in ("content", "queue"))
            raise InvalidRequest(f"a message has no {member!r} to take from a column; there are {others}")
    if content is not None:
        text = _text(f.col(f"`{content}`"), kinds[content])
    elif list(kinds) == ["value"]:
        text = f.col("value")
    else:
        text = f.to_json(f.struct(*(f.col(f"`{name}`") for name in kinds)))
    members = [_member(member, f.col(f"`{name}`"), kinds[name]) for member, name in columns.items()]
    return rows.select(text.alias("content"), *members)


def _listed(spark: SparkSession, dataset: str) -> tuple[str, list[str]]:
    """A dataset as a stream takes it, and its files. Raises InvalidRequest where there is nothing.

    A file becomes a pattern that only it fits, for a path of a stream has to be a directory's.
    """
    for path in dict.fromkeys((literal(dataset), dataset)):
        lines = spark.read.format("text").option("recursiveFileLookup", "true")
        try:
            files = [plain(each) for each in lines.load(path).inputFiles()]
        except AnalysisException as problem:
            if problem.getCondition() != "PATH_NOT_FOUND":
                raise
            continue
        if files == [dataset]:
            directory, _, name = path.rpartition("/")
            path = f"{directory}/{{{name}}}"
        return path, sorted(files)
    raise InvalidRequest(f"there is no file or directory {dataset}")


def _text(column: Column, kind: DataType) -> Column:
    return f.to_json(column) if isinstance(kind, (StructType, MapType, ArrayType)) else column.cast("string")


def _member(member: str, column: Column, kind: DataType) -> Column:
    """A column as the member's type. Attributes may be a map, an object, or the JSON of one."""
    wanted = COLUMNS[member].type
    if member == "attributes" and not isinstance(kind, MapType):
        column = f.from_json(
            column if isinstance(kind, StringType) else f.to_json(column), "map<string,string>"
        )
    return column.cast(wanted).alias(member)


def _format_of(dataset: str, files: list[str]) -> str:
    """The format of a dataset, by the names of its files. Raises InvalidRequest if they do not tell."""
    for name in files:
        for suffix, kind in _SUFFIXES.items():
            if name.removesuffix(".gz").removesuffix(".zst").endswith(suffix):
                return kind
    raise InvalidRequest(
        f"the format of {dataset} cannot be seen from its name; it has to be one of {', '.join(FORMATS)}"
    )


def _follow(query: StreamingQuery, show: Show) -> tuple[int, int]:
    """Wait for the end of the query; returns how many rows were read, and how many had a content. Raises its error."""
    seen: dict[int, tuple[int, int]] = {}

    def counted() -> tuple[int, int]:
        for progress in query.recentProgress:
            if "rows" in progress.observedMetrics:
                row = progress.observedMetrics["rows"]
                # Behind Spark Connect the row has a member for all values, and one for their schema.
                read, with_content = row["values"] if hasattr(row, "values") else row
                seen[progress.batchId] = (read, with_content)
        return sum(read for read, _ in seen.values()), sum(kept for _, kept in seen.values())

    while query.isActive and not query.awaitTermination(_LOOK_SECONDS):
        show(counted()[0], None, f"{counted()[0]:,} rows")
    query.awaitTermination()
    return counted()
