"""Spark's side of the scenario spark: `python -m bench.load.spark_work URL QUEUE BYTES MESSAGES`.

Publishes so many messages, drains them twice (for which it publishes again), once into nothing and once into Parquet,
and archives their lifecycle events. Says how many seconds each took, as JSON. The key is in FORQ_AUTH_SECRET.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from forq_trio.spark import session

CORES = 2
WARM_UP_MESSAGES = 1_000


class Work:
    """Reads and writes of one server."""

    def __init__(self, spark: SparkSession, url: str, size: int, directory: Path) -> None:
        self._spark, self._url, self._size, self._directory = spark, url, size, directory

    def publish(self, queue: str, count: int) -> None:
        frame = self._spark.range(0, count, 1, CORES).selectExpr(f"repeat('x', {self._size}) AS content")
        frame.write.format("forq").options(url=self._url, queue=queue).mode("append").save()

    def drain(self, queue: str, sink: str) -> int:
        """Into noop or parquet; returns how many messages."""
        source = self._spark.readStream.format("forq").options(url=self._url, queue=queue, consumer="bench")
        writer = source.load().writeStream.format(sink)
        if sink != "noop":
            writer = writer.option("path", str(self._directory / "out" / queue))
        place = str(self._directory / "checkpoints" / f"{queue}-{sink}")
        query = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    def archive(self, queue: str) -> int:
        """All events, in a batch; returns how many."""
        path = str(self._directory / "events")
        source = self._spark.read.format("forq").options(url=self._url, mode="events", minPartitions=CORES)
        source.load().write.mode("overwrite").parquet(path)
        return self._spark.read.parquet(path).count()


def timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    url, queue, size, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    spark = session("bench", **{"spark.master": f"local[{CORES}]", "spark.ui.enabled": "false"})
    with tempfile.TemporaryDirectory(prefix="forq-bench-spark-") as directory:
        work = Work(spark, url, size, Path(directory))
        work.publish(f"{queue}-warm", WARM_UP_MESSAGES)
        for sink in ("noop", "parquet"):
            work.drain(f"{queue}-warm", sink)
        work.archive(queue)
        found: dict[str, float] = {}
        for sink in ("noop", "parquet"):
            found["publish"] = timed(lambda: work.publish(queue, count))
            drained: list[int] = []
            found[f"drain_{sink}"] = timed(lambda: drained.append(work.drain(queue, sink)))  # noqa: B023
            if drained != [count]:
                raise SystemExit(f"{drained[0]} of {count} messages were drained")
        events: list[int] = []
        found["archive"] = timed(lambda: events.append(work.archive(queue)))
        found["events"] = events[0]
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
