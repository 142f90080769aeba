"""Streams that drain a queue: each message once, whoever is killed or started twice."""

import json
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from threading import Event

import pytest
from pyspark.errors import StreamingQueryException

from forq_trio.model.limits import CONSUMER_IDLE_SECONDS_MIN, CONSUMER_JOB_SECONDS
from pyspark_forq import reason_of
from spark.queries import drained, stream, uncommit
from spark.support import Server, running
from spark.test_reads import ODD

CONSUMER = "spark"

DRIVER = """
import json, pathlib, sys, threading
from pyspark.sql import SparkSession
options = json.loads(sys.argv[2]) | {"consumer": "spark", "idleSeconds": "60"}
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
def write(rows, number):
    rows.collect()
    pathlib.Path(sys.argv[1], "began").touch()
    threading.Event().wait()
source = spark.readStream.format("forq").options(**options).load()
source.writeStream.foreachBatch(write).option("checkpointLocation", sys.argv[1] + "/c").start().awaitTermination()
"""
"""A program whose batch never ends."""

PAUSE = Event()
"""Never set: for what nothing tells, between two looks."""


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


@pytest.mark.tier2
def test_a_server_that_is_killed_in_a_batch_and_comes_back(spark, queue, tmp_path) -> None:
    sent = [str(number) for number in range(3_000)]
    read: list[str] = []

    def kill_and_read(rows, batch: int) -> None:
        if batch == 0:
            server.kill()
            server.start()
        read.extend(contents(rows.collect()))

    with running(tmp_path / "forq.db", FORQ_HISTORY="off") as server:
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


@pytest.mark.tier2
def test_a_lease_lasts_through_a_batch_of_any_length_and_ends_behind_a_driver_that_was_killed(
    spark, shared, queue, tmp_path
) -> None:
    """The server looks for idle consumers every CONSUMER_JOB_SECONDS: both drivers have to be waited for, so that is
    done for both at once."""
    killed = f"{queue}-killed"
    for each in (queue, killed):
        shared.send(each, ["one"])
    seen: list[list[str]] = []

    def write(rows, number: int) -> None:
        seen.append(contents(rows.collect()))
        ends_at = time.monotonic() + CONSUMER_IDLE_SECONDS_MIN + 2 * CONSUMER_JOB_SECONDS
        while time.monotonic() < ends_at:
            assert shared.client.consumer(queue, CONSUMER).released_before == 0
            PAUSE.wait(1)

    query = (
        consume(spark, shared, queue, idleSeconds=CONSUMER_IDLE_SECONDS_MIN)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    kill_in_a_batch(tmp_path, shared.options | {"queue": killed})
    while shared.client.consumer(killed, CONSUMER).open_messages:
        PAUSE.wait(1)
    assert shared.client.consumer(killed, CONSUMER).released_before == 2
    query.awaitTermination()
    assert seen == [["one"]]
    info = shared.client.consumer(queue, CONSUMER)
    assert (info.open_messages, info.released_before) == (0, 0)
    assert list(shared.messages(queue)) == []


def kill_in_a_batch(folder: Path, options: dict[str, str]) -> None:
    """Start DRIVER, and kill it once its batch has begun."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), json.dumps(options)], start_new_session=True
    )
    while not (folder / "began").exists():
        assert driver.poll() is None
        PAUSE.wait(0.1)
    driver.kill()  # the process of the program alone: what it started has to end by itself
    driver.wait()
