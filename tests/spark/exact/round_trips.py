"""Three streaming queries that take messages round: from a queue to Parquet, from Parquet to a queue, and from a queue
to a queue; and the books of what has to be where in the end."""

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import dataset, parquet
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from forq_trio import NewMessage, batches
from spark.queries import stream
from spark.support import Server

TO_PARQUET, FROM_PARQUET, HERE, THERE = "to-parquet", "from-parquet", "here", "there"
CONSUMER = "spark"
BATCH_ROWS = 400
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

    def start(make: Callable[[], DataStreamWriter]) -> StreamingQuery:
        writer = make().option("checkpointLocation", str(folder / "checkpoints" / make.__name__))
        query = writer.trigger(availableNow=True).start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            query.awaitTermination(timeout=1)
        return query

    for make, query in [(make, start(make)) for make in (to_parquet, from_parquet, from_queue_to_queue)]:
        ended = False
        while not ended:
            try:
                query.awaitTermination()
                ended = True
            except StreamingQueryException as problem:
                # Spark gives a Python worker ten seconds to start, which is not always enough on a busy machine.
                if WORKER_WAS_SLOW not in str(problem):
                    raise
                query = start(make)


class RoundTrips:
    """What was given to the queries. sent: ids and contents by queue. rows: of the files."""

    def __init__(self, server: Server, folder: Path, rng: random.Random) -> None:
        self._server = server
        self._folder = folder
        self._rng = rng
        self._files = 0
        self.sent: dict[str, list[tuple[str, str]]] = {TO_PARQUET: [], HERE: []}
        self.rows: list[str] = []
        (folder / "files").mkdir(parents=True)

    def add(self) -> None:
        """Something new for each query."""
        for queue, sent in self.sent.items():
            contents = self._contents(
                len(sent), BATCH_ROWS * (BATCHES - 1) + self._rng.randint(1, BATCH_ROWS)
            )
            for batch in batches(map(NewMessage, contents)):
                made = self._server.client.produce_many(queue, batch)
                sent += [(one.id, new.content) for one, new in zip(made, batch, strict=True)]
        for _ in range(BATCHES):
            contents = self._contents(len(self.rows), self._rng.randint(1, BATCH_ROWS))
            self.rows += contents
            self._files += 1
            parquet.write_table(
                pa.table({"content": contents}), self._folder / "files" / f"{self._files}.parquet"
            )

    def _contents(self, first: int, count: int) -> list[str]:
        return [f"{number} {'é😀' * self._rng.randrange(40)}" for number in range(first, first + count)]

    def check(self, spark: SparkSession) -> None:
        """Everything arrived once, by its ids and contents, and nothing else did."""
        wanted = sorted(self.sent[TO_PARQUET])
        archive = self._folder / "archive"
        table = dataset.dataset(archive, partitioning="hive").to_table(columns=["id", "content"])
        by_arrow = list(zip(table["id"].to_pylist(), table["content"].to_pylist(), strict=True))
        by_spark = [tuple(row) for row in spark.read.parquet(str(archive)).select("id", "content").collect()]
        assert_same(by_arrow, wanted)
        assert_same(by_spark, wanted)
        assert_same(self._server.contents(FROM_PARQUET), self.rows)
        assert_same(self._server.contents(THERE), [" ".join(each) for each in self.sent[HERE]])
        for queue in (TO_PARQUET, HERE):
            stats = self._server.client.queue_stats(queue)
            assert (stats.total, stats.bytes) == (0, 0)
            assert self._server.client.consumer(queue, CONSUMER).open_messages == 0


def assert_same(found: list, wanted: list) -> None:
    """As many of each, in whatever order; tells few of them, not thousands."""
    found, wanted = sorted(found), sorted(wanted)
    if found != wanted:
        missing, extra = set(wanted) - set(found), set(found) - set(wanted)
        twice = len(found) - len(set(found))
        raise AssertionError(
            f"{len(found)} for {len(wanted)}: {len(missing)} missing {sorted(missing)[:3]},"
            f" {len(extra)} of nobody {sorted(extra)[:3]}, {twice} repeated"
        )
