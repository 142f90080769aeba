"""Batch reads from a real server."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import PySparkException

from pyspark_forq import reason_of
from support.sqs_messages import PICTURE, STORED, send_typed, sqs_client

ODD = ["", 'ä😀\u2028\0\\"', '{"json": [1, 2]}', "line\nline\r\n\ttab", "x" * 262_144, "é" * 131_072]


def snapshot(spark, server, queue: str, **options: object):
    return spark.read.format("forq").options(**server.options, queue=queue, **options).load()


def test_a_snapshot_has_every_message_as_it_is(spark, shared, queue) -> None:
    shared.send(queue, ODD, attributes={"k": "ü"}, group="g", priority=7)
    (leased,) = shared.client.receive(queue, max_messages=1, wait_ms=0)
    rows = snapshot(spark, shared, queue, includeAttributes="true").orderBy("sequence").collect()
    assert [row.content for row in rows] == ODD
    assert {(row.queue, row.group, row.priority, str(row.attributes)) for row in rows} == {
        (queue, "g", 7, "{'k': 'ü'}")
    }
    stored = list(shared.messages(queue))
    assert [(row.id, row.sequence, row.attempts, row.state) for row in rows] == [
        (message.id, message.sequence, message.attempts, message.state) for message in stored
    ]
    assert rows[0].id == leased.id
    age = datetime.now(UTC) - rows[0].received_at.astimezone(UTC)
    assert timedelta(0) <= age < timedelta(hours=1)


def test_attributes_from_amazon_sqs_have_their_bytes_in_base64_and_their_types_beside_them(
    spark, shared, queue
) -> None:
    with sqs_client(shared.url) as sqs:
        send_typed(sqs, sqs.create_queue(QueueName=queue)["QueueUrl"])
    rows = snapshot(spark, shared, queue, includeAttributes="true")
    (row,) = rows.selectExpr(
        "attributes",
        "unbase64(attributes['picture']) AS picture",
        "CAST(attributes['weight'] AS DECIMAL(9,2)) AS weight",
        "from_json(get_json_object(attributes['AWS.SQS'], '$.types'), 'map<string,string>') AS types",
    ).collect()
    assert {name: text for name, text in row.attributes.items() if name != "AWS.SQS"} == STORED
    assert (bytes(row.picture), str(row.weight)) == (PICTURE, "5.50")
    assert row.types == {"price": "Number.int", "weight": "Number", "seal": "Binary", "picture": "Binary.png"}


def test_a_snapshot_is_read_in_parts(spark, shared, queue) -> None:
    contents = [str(number) for number in range(5_000)]
    shared.send(queue, contents)
    read = snapshot(spark, shared, queue, minPartitions=6)
    assert read.rdd.getNumPartitions() == 6
    assert sorted(row.content for row in read.select("content").collect()) == sorted(contents)


def test_an_empty_queue_has_no_rows(spark, shared, queue) -> None:
    with pytest.raises(PySparkException) as raised:
        snapshot(spark, shared, queue).count()
    assert f"there is no queue called {queue}" in (reason_of(raised.value) or "")
    shared.send(queue, ["one"])
    shared.client.purge(queue)
    assert snapshot(spark, shared, queue).count() == 0


@pytest.mark.tier2
def test_the_module_registers_the_source_by_itself(spark, shared, queue) -> None:
    shared.send(queue, ["one"])
    assert snapshot(spark.newSession(), shared, queue).select("content").collect() == [("one",)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mode": "evens"}, "option mode='evens': one of consume, events, history, snapshot is wanted"),
        (
            {"url": "http://127.0.0.1:1", "retrySeconds": "0"},
            "no server can be reached at http://127.0.0.1:1",
        ),
        ({"token": "wrong"}, "refused: "),
    ],
    ids=["mode", "url", "token"],
)
def test_what_a_person_is_told(spark, shared, options, reason) -> None:
    given = shared.options | {"queue": "q"} | options
    with pytest.raises(PySparkException) as raised:
        spark.read.format("forq").options(**given).load().collect()
    assert reason in (reason_of(raised.value) or "")
    assert len(str(raised.value).splitlines()) < 40


def test_columns_of_ones_own_are_refused(spark, shared) -> None:
    own = spark.read.format("forq").options(**shared.options, queue="q").schema("content string")
    with pytest.raises(PySparkException, match=r"leave out \.schema"):
        own.load().collect()
