"""A program for spark-submit: drain a queue into Parquet, write what is there into another queue, and archive.

Arguments: the server's URL, the queues, and a directory, into which it also writes what Spark's UI shows.
"""

import sys
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession

from pyspark_forq import archive, session


def main(url: str, source: str, target: str, directory: Path) -> None:
    spark = session("cluster")
    drained = str(directory / "drained")
    queue = spark.readStream.format("forq").options(
        url=url, queue=source, consumer="cluster", minPartitions=4
    )
    query = (
        queue.load()
        .writeStream.format("parquet")
        .option("path", drained)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    stored = spark.read.parquet(drained).select("content").repartition(4)
    stored.write.format("forq").options(url=url, queue=target).mode("append").save()
    archive(spark, directory / "archive", url=url, tables=["events"])
    spark.read.format("forq").options(url=url, queue=target).load().explain("extended")
    (directory / "ui").write_text("".join(shown(spark)), encoding="utf-8")
    spark.stop()


def shown(spark: SparkSession) -> list[str]:
    """Pages of Spark's UI, and what its API says."""
    context = spark.sparkContext
    api = f"api/v1/applications/{context.applicationId}"
    paths = (
        "environment/",
        "SQL/",
        "SQL/execution/?id=0",
        "StreamingQuery/",
        f"{api}/environment",
        f"{api}/sql",
    )
    pages = []
    for path in paths:
        with urlopen(f"{context.uiWebUrl}/{path}") as answer:
            pages.append(answer.read().decode())
    return pages


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
