"""Batch writes to a real server."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from pyspark_forq import reason_of
from spark.test_reads import ODD


def write(rows, server, **options: object) -> None:
    rows.write.format("forq").options(**server.options, **options).mode("append").save()


def test_rows_become_messages_in_the_order_of_their_partition(spark, shared, queue) -> None:
    write(spark.createDataFrame([(text,) for text in ODD], "content string").coalesce(1), shared, queue=queue)
    assert shared.contents(queue) == ODD


def test_every_column(spark, shared, queue) -> None:
    row = spark.range(1).select(
        f.lit("text").alias("content"),
        f.lit(7).alias("priority"),
        f.create_map(f.lit("k"), f.lit("ü")).alias("attributes"),
        f.lit("g").alias("group"),
        f.lit("d").alias("deduplication_id"),
        f.lit(3).alias("max_attempts"),
        f.expr("current_timestamp() + interval 1 hour").alias("process_after"),
        f.lit(None).cast("long").alias("delay_ms"),
        f.lit(10**6).cast("long").alias("ttl_ms"),
        f.lit(queue).alias("queue"),
    )
    write(row, shared)
    write(row, shared)  # a duplicate
    (message,) = shared.messages(queue)
    assert (message.content, message.priority, message.group) == ("text", 7, "g")
    assert (message.attributes, message.state) == ({"k": "ü"}, "delayed")


def test_messages_go_to_the_queues_of_their_column(spark, shared, queue) -> None:
    rows = spark.range(1_000).select(
        f.col("id").cast("string").alias("content"),
        f.concat(f.lit(f"{queue}-"), f.col("id") % 3).alias("queue"),
    )
    write(rows.repartition(2), shared)
    found = {int(text) % 3: 0 for text in "012"}
    for part in range(3):
        contents = shared.contents(f"{queue}-{part}")
        assert {int(content) % 3 for content in contents} == {part}
        found[part] = len(contents)
    assert found == {0: 334, 1: 333, 2: 333}


def test_more_than_a_page(spark, shared, queue) -> None:
    rows = spark.range(25_000, numPartitions=2).select(f.col("id").cast("string").alias("content"))
    write(rows, shared, queue=queue)
    assert shared.contents(queue) == [str(number) for number in range(25_000)]


def test_a_version_is_written_once(spark, shared, queue) -> None:
    rows = spark.range(3).select(f.col("id").cast("string").alias("content"))
    for version in (1, 1, 0, 2):
        write(rows, shared, queue=queue, txnAppId=queue, txnVersion=version)
    assert len(shared.contents(queue)) == 6
    write(rows, shared, queue=queue)
    write(rows, shared, queue=queue)
    assert len(shared.contents(queue)) == 12


def test_nothing_to_write(spark, shared, queue) -> None:
    write(spark.range(0).select(f.lit("x").alias("content")), shared, queue=queue)
    assert shared.contents(queue) == []


def test_a_row_that_the_server_refuses_lets_nothing_in(spark, shared, queue) -> None:
    rows = spark.range(10).select(
        f.when(f.col("id") == 7, f.repeat(f.lit("x"), 262_145)).otherwise(f.lit("y")).alias("content")
    )
    with pytest.raises(PySparkException) as raised:
        write(rows.coalesce(1), shared, queue=queue)
    assert "at most 262144 are allowed (lines[7].content)" in (reason_of(raised.value) or "")
    assert shared.contents(queue) == []


@pytest.mark.parametrize(
    ("columns", "mode", "reason"),
    [
        (["id"], "append", "a message has no column 'id'"),
        (["'x' AS content"], "overwrite", "a queue cannot be overwritten"),
    ],
)
def test_what_a_person_is_told(spark, shared, columns, mode, reason) -> None:
    rows = spark.range(1).selectExpr(*columns)
    with pytest.raises(PySparkException) as raised:
        rows.write.format("forq").options(**shared.options, queue="q").mode(mode).save()
    assert reason in (reason_of(raised.value) or "")
