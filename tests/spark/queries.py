"""Streaming queries that end by themselves, and what their batches had."""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession


def stream(spark: SparkSession, options: dict[str, object]) -> DataFrame:
    return spark.readStream.format("forq").options(**options).load()


def drained(source: DataFrame, folder: Path, **trigger: object) -> list[list[Row]]:
    """The rows of each batch, in a query that goes on where the last one with this folder ended."""
    batches: list[list[Row]] = []
    query = (
        source.writeStream.foreachBatch(lambda rows, _: batches.append(rows.collect()))
        .option("checkpointLocation", str(folder))
        .trigger(**trigger or {"availableNow": True})
        .start()
    )
    query.awaitTermination()
    return batches


def uncommit(folder: Path, batch: int) -> None:
    """As after a crash before this batch was in the log of commits."""
    for name in (str(batch), f".{batch}.crc"):
        (folder / "commits" / name).unlink()
