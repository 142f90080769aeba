"""A program for spark-submit: drain a queue into Parquet, then write what is there into another queue."""

import sys
from pathlib import Path

from pyspark_forq import session


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
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
