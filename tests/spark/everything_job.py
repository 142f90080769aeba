"""A program for test_versions.py and test_connect.py: everything once; prints what came of it as JSON.

It has the secret in its environment. Arguments: the server's URL, a queue from which one message has gone, and a
directory. What fails has its reason as its result.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_forq import archive, archived, compact, load, reason_of, replay, report, session, write_once


class Tried:
    """Each method is tried, in this order."""

    def __init__(self, spark: SparkSession, url: str, queue: str, folder: Path) -> None:
        self._spark, self._queue, self._folder = spark, queue, folder
        self._server = {"url": url}
        self._given = {"url": url, "queue": queue}
        self._archive = folder / "archive"

    def write(self, columns: str = "'one' AS content") -> None:
        rows = self._spark.sql(f"SELECT {columns}")
        rows.write.format("forq").options(**self._given).mode("append").save()

    def snapshot(self, **more: str) -> int:
        return self._spark.read.format("forq").options(**self._given | more).load().count()

    def events(self) -> int:
        return self.snapshot(mode="events")

    def history(self) -> int:
        return self.snapshot(mode="history")

    def every_column(self) -> None:
        self.write("'a' AS content, map('k', 'v') AS attributes, now() AS process_after, 5S AS priority")

    def table(self) -> int:
        options = ", ".join(f"{name} '{value}'" for name, value in self._given.items())
        self._spark.sql(f"CREATE TABLE tried USING forq OPTIONS ({options})")
        self._spark.sql(f"CREATE TEMPORARY VIEW some (content STRING) USING forq OPTIONS ({options})")
        self._spark.sql("INSERT INTO some VALUES ('two')")
        return self._spark.sql("SELECT * FROM tried WITH (minPartitions '2')").count()

    def insert(self) -> int:
        self._spark.sql("INSERT INTO tried (content) VALUES ('three')")
        return self.snapshot()

    def setting(self) -> int:
        self._spark.conf.set("spark.forq.url", self._server["url"])
        try:
            session()
            return self._spark.read.format("forq").option("queue", self._queue).load().count()
        finally:
            self._spark.conf.unset("spark.forq.url")

    def drain(self) -> int:
        rows = self._spark.readStream.format("forq").options(**self._given, consumer="c").load()
        query = rows.writeStream.foreachBatch(lambda batch, _: write_once(batch, str(self._folder / "lake")))
        query = query.option("checkpointLocation", str(self._folder / "drain")).trigger(availableNow=True)
        query.start().awaitTermination()
        return self._spark.read.parquet(str(self._folder / "lake")).count()

    def follow(self) -> int:
        rows = self._spark.readStream.format("forq").options(**self._given, mode="events").load()
        query = rows.writeStream.format("parquet").option("path", str(self._folder / "log"))
        query = query.option("checkpointLocation", str(self._folder / "follow")).trigger(availableNow=True)
        query.start().awaitTermination()
        return self._spark.read.parquet(str(self._folder / "log")).count()

    def load(self) -> int:
        (self._folder / "lines.txt").write_text("four\n", encoding="utf-8")
        return load(self._spark, self._folder / "lines.txt", self._queue, **self._server).published

    def archive(self) -> dict[str, int]:
        return archive(self._spark, self._archive, queue=self._queue, **self._server).rows

    def archived(self) -> int:
        return archived(self._spark, self._archive, "events").count()

    def compact(self) -> int:
        return compact(self._spark, self._archive, before="2100-01-01").days

    def report(self) -> int:
        return report(archived(self._spark, self._archive, "events"), self._folder / "report").events

    def replay(self) -> int:
        done = replay(self._spark, f"{self._queue}-again", source_queue=self._queue, **self._server)
        return sum(done.matched.values())

    def dead_letters(self) -> int:
        asked = {"source_queue": self._queue, "dead_letters": True, "dry_run": True}
        return sum(replay(self._spark, f"{self._queue}-again", **asked, **self._server).matched.values())


def main(url: str, queue: str, directory: str) -> None:
    folder = Path(directory)
    settings = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.log.level": "OFF"}
    spark = session("everything", **({} if "SPARK_REMOTE" in os.environ else settings))
    tried = Tried(spark, url, queue, folder)
    found: dict[str, object] = {"version": spark.version}
    for name in [each for each in vars(Tried) if not each.startswith("_")]:
        try:
            found[name] = getattr(tried, name)()
        except Exception as problem:
            found[name] = reason_of(problem) or str(problem).splitlines()[0]
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
