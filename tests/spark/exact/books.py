"""The books of the round trips: what was given to the queries, and what has to be where in the end."""

import random
from pathlib import Path

import pyarrow as pa
from pyarrow import dataset, parquet
from pyspark.sql import SparkSession

from forq_trio import NewMessage, batches
from spark.exact.round_trips import BATCH_ROWS, BATCHES, CONSUMER, FROM_PARQUET, HERE, THERE, TO_PARQUET
from spark.support import Server


class Books:
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
