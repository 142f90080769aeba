"""Spark's side of the scenario spark: `python -m bench.load.spark_work WORK URL QUEUE BYTES MESSAGES`.

WORK is `drain`: publish so many messages, drain them into nothing, publish them again, drain them into Parquet, and
read these files. Or
`archive`: publish and drain them, on a server that keeps events, and archive those. Says how many seconds each took, as
JSON. The key is in FORQ_AUTH_SECRET.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from pyspark_forq import session

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
            writer = writer.option("path", self._files(queue))
        place = str(self._directory / "checkpoints" / f"{queue}-{sink}")
        query = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    def read_files(self, queue: str) -> None:
        """Into nothing, what was drained into Parquet."""
        self._spark.read.parquet(self._files(queue)).write.format("noop").mode("overwrite").save()

    def _files(self, queue: str) -> str:
        return str(self._directory / "out" / queue)

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


def drains(work: Work, queue: str, count: int) -> dict[str, float]:
    """Publish and drain, into nothing and into Parquet; and read these files, for comparison."""
    found: dict[str, float] = {}
    for sink in ("noop", "parquet"):
        found[f"publish_for_{sink}"] = timed(lambda: work.publish(queue, count))
        found[f"drain_{sink}"] = timed(lambda: check(work.drain(queue, sink), count))  # noqa: B023
    found["read_parquet"] = timed(lambda: work.read_files(queue))
    return found


def archive(work: Work, queue: str, count: int) -> dict[str, float]:
    """Publish, drain, and archive the events of that: three a message, and those of the warm-up."""
    work.publish(queue, count)
    work.drain(queue, "noop")
    events: list[int] = []
    seconds = timed(lambda: events.append(work.archive(queue)))
    check(events[0], 3 * (count + WARM_UP_MESSAGES))
    return {"archive": seconds, "events": events[0]}


def check(found: int, expected: int) -> None:
    if found != expected:
        raise SystemExit(f"{found} rows instead of {expected}")


WORKS = {"drain": drains, "archive": archive}


def main() -> None:
    name, url, queue, size, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    spark = session("bench", **{"spark.master": f"local[{CORES}]", "spark.ui.enabled": "false"})
    with tempfile.TemporaryDirectory(prefix="forq-bench-spark-") as directory:
        work = Work(spark, url, size, Path(directory))
        work.publish(f"{queue}-warm", WARM_UP_MESSAGES)
        work.drain(f"{queue}-warm", "parquet")
        work.read_files(f"{queue}-warm")
        if name == "archive":
            work.archive(queue)
        found = WORKS[name](work, queue, count)
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
