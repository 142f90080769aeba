"""Three streaming queries that take messages round: from a queue to Parquet, from Parquet to a queue, and from a queue
to a queue. A driver imports this, so it imports little."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from spark.queries import stream

TO_PARQUET, FROM_PARQUET, HERE, THERE = "to-parquet", "from-parquet", "here", "there"
CONSUMER = "spark"
BATCH_ROWS = 200
WORKER_WAS_SLOW = "Python worker failed to connect back"
BATCHES = 2
"""So many each query has each time that there is something new, so that every request is made as often."""


def take_round(spark: SparkSession, options: dict[str, str], folder: Path) -> None:
    """Take everything round that is there now, with all queries at the same time. Raises what Spark raises."""

    def queue(name: str) -> DataFrame:
        more = {"queue": name, "consumer": CONSUMER, "maxMessagesPerTrigger": BATCH_ROWS, "minPartitions": 2}
        return stream(spark, options | more)

    def write(rows: DataFrame, batch: int) -> None:
        """A directory for each batch: a batch that comes again replaces it."""
        writer = rows.withColumn("batch", f.lit(batch)).write.mode("overwrite").partitionBy("batch")
        writer.option("partitionOverwriteMode", "dynamic").parquet(str(folder / "archive"))

    def to_parquet() -> DataStreamWriter:
        return queue(TO_PARQUET).writeStream.foreachBatch(write)

    def from_parquet() -> DataStreamWriter:
        files = spark.readStream.schema("content string").option("maxFilesPerTrigger", 1)
        rows = files.parquet(str(folder / "files"))
        return rows.writeStream.format("forq").options(**options, queue=FROM_PARQUET)

    def from_queue_to_queue() -> DataStreamWriter:
        rows = queue(HERE).select(f.concat_ws(" ", "id", "content").alias("content"))
        return rows.writeStream.format("forq").options(**options, queue=THERE)

    with ExitStack() as stack:
        makers = (to_parquet, from_parquet, from_queue_to_queue)
        for ending in [started(stack, make, folder / "checkpoints" / make.__name__) for make in makers]:
            ending()


def started(stack: ExitStack, make: Callable[[], DataStreamWriter], checkpoint: Path) -> Callable[[], None]:
    """Start a query and return what waits for its end; with the next one started when this one has its processes.

    Spark gives a Python worker ten seconds to start. Where a busy machine needs more, the query is started again.
    """

    def start() -> StreamingQuery:
        writer = make().option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = writer.start()
        stack.callback(query.stop)
        return query

    query = start()
    while query.isActive and query.status["message"].startswith("Initializing"):
        with suppress(StreamingQueryException):  # it is told by what follows
            query.awaitTermination(timeout=1)

    def ending() -> None:
        awaited = query
        while True:
            try:
                awaited.awaitTermination()
            except StreamingQueryException as problem:
                if WORKER_WAS_SLOW not in str(problem):
                    raise
                awaited = start()
            else:
                return

    return ending
