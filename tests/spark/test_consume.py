"""Streams that drain a queue: each message once, whoever is killed or started twice."""

from itertools import chain
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_forq import reason_of
from spark.queries import drained, stream, uncommit
from spark.support import Server, running
from spark.test_reads import ODD

CONSUMER = "spark"


def consume(spark, server: Server, queue: str, **options: object):
    return stream(spark, server.options | {"queue": queue, "consumer": CONSUMER, **options})


def contents(rows) -> list[str]:
    return [row.content for row in rows]


def test_every_message_once_and_as_it_is(spark, shared, queue, tmp_path) -> None:
    shared.send(queue, ODD, attributes={"k": "ü"}, group="g")
    source = consume(spark, shared, queue, includeAttributes="true")
    (batch,) = drained(source, tmp_path)
    assert contents(batch) == ODD
    assert {(row.queue, row.attempts, row.group, str(row.attributes)) for row in batch} == {
        (queue, 1, "g", "{'k': 'ü'}")
    }
    assert shared.client.consumer(queue, CONSUMER).open_messages == 0


def test_batches_have_the_limit_and_later_messages_come_to_the_same_query(
    spark, shared, queue, tmp_path
) -> None:
    sent = [str(number) for number in range(2_500)]
    shared.send(queue, sent)
    source = consume(spark, shared, queue, maxMessagesPerTrigger=1_000, minPartitions=3)
    batches = drained(source, tmp_path)
    assert [len(batch) for batch in batches] == [1_000, 1_000, 500]
    assert sorted(contents(chain(*batches))) == sorted(sent)
    shared.send(queue, ["later"])
    assert [contents(batch) for batch in drained(source, tmp_path)] == [["later"]]


def test_a_batch_that_was_not_committed_is_the_same_again(spark, shared, queue, tmp_path) -> None:
    one_each = consume(spark, shared, queue, maxMessagesPerTrigger=1)
    shared.send(queue, ["0", "1"])
    drained(one_each, tmp_path)
    uncommit(tmp_path, 1)
    shared.send(queue, ["2"])
    assert [contents(batch) for batch in drained(one_each, tmp_path)] == [["1"], ["2"]]


def test_of_two_queries_with_one_consumer_the_older_one_ends(spark, shared, queue, tmp_path) -> None:
    shared.send(queue, ["one"])
    source = consume(spark, shared, queue)
    older = start(source, tmp_path / "one")
    older.processAllAvailable()
    newer = start(source, tmp_path / "two")
    newer.processAllAvailable()
    shared.send(queue, ["two"])
    with pytest.raises(StreamingQueryException) as raised:
        older.awaitTermination(60)
    assert f"another query has opened consumer '{CONSUMER}' of queue '{queue}'" in (
        reason_of(raised.value) or ""
    )
    newer.processAllAvailable()
    assert newer.lastProgress is not None
    newer.stop()


def start(source, folder: Path):
    return source.writeStream.format("noop").option("checkpointLocation", str(folder)).start()


def test_a_server_that_is_killed_in_a_batch_and_comes_back(spark, queue, tmp_path) -> None:
    sent = [str(number) for number in range(3_000)]
    read: list[str] = []

    def kill_and_read(rows, batch: int) -> None:
        if batch == 0:
            server.kill()
            server.start()
        read.extend(contents(rows.collect()))

    with running(tmp_path / "forq.db") as server:
        server.send(queue, sent)
        query = (
            consume(spark, server, queue, maxMessagesPerTrigger=2_000)
            .writeStream.foreachBatch(kill_and_read)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        left = server.client.consumer(queue, CONSUMER)
    assert sorted(read) == sorted(sent)
    assert (left.open_messages, left.ready, left.acknowledged) == (0, 0, 2)
