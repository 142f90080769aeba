"""Exactly once in single cases: what is read again, repeated, restored, empty, odd, or not a message at all."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as f
from pyspark.sql.streaming.datasource import ReadMaxRows

from forq_trio.storage.sqlite.files.check import backup_file
from pyspark_forq import reason_of
from pyspark_forq.consume import ConsumeReader
from pyspark_forq.errors import ForqConsumerFenced
from pyspark_forq.log_streams import LogStreamReader
from pyspark_forq.options import parsed
from pyspark_forq.schemas import schema_of
from spark.queries import drained, stream
from spark.support import Server, running
from spark.test_reads import ODD

CONSUMER = "spark"


def consume(spark, server: Server, queue: str, **options: object):
    return stream(spark, server.options | {"queue": queue, "consumer": CONSUMER, **options})


def write(rows, server: Server, queue: str, checkpoint: Path) -> None:
    """Everything that is there, into a queue."""
    query = (
        rows.writeStream.format("forq")
        .options(**server.options, queue=queue)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.tier2
def test_what_is_read_again_is_the_same(spark, shared, queue, tmp_path) -> None:
    """By two actions, by both sides of a union, and by a task that is tried again."""
    sent = [str(number) for number in range(2_000)]
    shared.send(queue, sent)
    ids = {message.id for message in shared.messages(queue)}
    mark = str(tmp_path / "mark")

    @f.udf(returnType="string", useArrow=False)
    def break_once(content: str) -> str:
        if content == "1999" and not Path(mark).exists():
            Path(mark).touch()
            raise ValueError("broken once")
        return content

    actions: list[list[str]] = []

    def act_twice(rows, batch: int) -> None:
        for _ in range(2):
            actions.append([row.id for row in rows.select("id", break_once("content")).collect()])

    source = consume(spark, shared, queue, minPartitions=3)
    query = (
        source.union(source)
        .writeStream.foreachBatch(act_twice)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert Path(mark).exists()
    assert [sorted(action) for action in actions] == 2 * [sorted([*ids, *ids])]
    assert shared.contents(queue) == []


@pytest.mark.tier2
def test_a_checkpoint_that_is_a_little_older_has_the_same_rows_again(spark, shared, queue, tmp_path) -> None:
    older, folder = tmp_path / "older", tmp_path / "checkpoint"
    source = consume(spark, shared, queue, maxMessagesPerTrigger=2)
    shared.send(queue, "012")
    drained(source, folder)
    shutil.copytree(folder, older)
    shared.send(queue, "345")
    behind = drained(source, folder)
    assert [[row.content for row in batch] for batch in behind] == [["3", "4"], ["5"]]
    shared.send(queue, "6")
    again = drained(source, older)
    assert again[:2] == behind
    assert [[row.content for row in batch] for batch in again[2:]] == [["6"]]


@pytest.mark.tier2
def test_odd_messages_go_from_queue_to_queue_as_they_are(spark, shared, queue, tmp_path) -> None:
    """Empty ones, 256 KiB, emoji, NUL and what JSON escapes."""
    shared.send(queue, ODD, attributes={"k": "ü😀\0"}, group="g😀", priority=7)
    rows = consume(spark, shared, queue, includeAttributes="true")
    rows = rows.select("content", "priority", "group", "attributes").coalesce(1)
    write(rows, shared, f"{queue}-there", tmp_path)
    arrived = list(shared.messages(f"{queue}-there"))
    assert [message.content for message in arrived] == ODD
    assert {(one.priority, one.group, str(one.attributes)) for one in arrived} == {
        (7, "g😀", str({"k": "ü😀\0"}))
    }
    assert shared.contents(queue) == []


@pytest.mark.tier2
def test_nothing_is_read_and_nothing_is_written(spark, shared, queue, tmp_path) -> None:
    """Of a queue without messages, and where a filter leaves no row of a batch."""
    source = consume(spark, shared, queue)
    assert not any(drained(source, tmp_path / "empty"))
    filtered = source.where("content = 'wanted'").select("content")
    shared.send(queue, ["unwanted"])
    write(filtered, shared, f"{queue}-there", tmp_path / "filtered")
    assert shared.contents(f"{queue}-there") == []
    shared.send(queue, ["unwanted", "wanted"])
    write(filtered, shared, f"{queue}-there", tmp_path / "filtered")
    assert shared.contents(f"{queue}-there") == ["wanted"]
    assert shared.contents(queue) == []


@pytest.mark.tier2
def test_a_lone_surrogate_lets_nothing_in(spark, shared, queue, tmp_path) -> None:
    """It is no Unicode, and neither Arrow nor the server takes it for some."""

    @f.udf(returnType="string", useArrow=True)
    def half(content: str) -> str:
        return "\ud83d" if content == "1" else content

    shared.send(queue, "012")
    rows = consume(spark, shared, queue).select(half("content").alias("content"))
    with pytest.raises(StreamingQueryException, match=r"surrogates not allowed|invalid"):
        write(rows, shared, f"{queue}-there", tmp_path)
    assert shared.contents(f"{queue}-there") == []
    assert shared.client.consumer(queue, CONSUMER).open_messages == 3


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["sequence AS content"], "column 'content' is bigint, and string is wanted"),
        pytest.param(["content", "id"], "a message has no column 'id'", marks=pytest.mark.tier2),
        pytest.param(
            ["content", "array(1) AS attributes"], "'attributes' is array<int>", marks=pytest.mark.tier2
        ),
    ],
)
def test_rows_that_are_no_messages_take_none(spark, shared, queue, tmp_path, columns, reason) -> None:
    shared.send(queue, ["one"])
    with pytest.raises((PySparkException, StreamingQueryException)) as raised:
        write(consume(spark, shared, queue).selectExpr(*columns), shared, f"{queue}-there", tmp_path)
    assert reason in (reason_of(raised.value) or "")
    assert shared.contents(f"{queue}-there") == []
    write(consume(spark, shared, queue).select("content"), shared, f"{queue}-there", tmp_path / "right")
    assert shared.contents(f"{queue}-there") == ["one"]


def test_a_file_of_another_type_lets_nothing_in(spark, shared, queue, tmp_path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text(
        json.dumps({"content": "x", "priority": "high"}), encoding="utf-8"
    )
    reader = spark.readStream.schema("content string, priority int").option("mode", "FAILFAST")
    with pytest.raises(StreamingQueryException):
        write(reader.json(str(tmp_path / "files")), shared, queue, tmp_path / "checkpoint")
    assert shared.contents(queue) == []


def reader_of(kind, server: Server, **options: object):
    """A stream's reader as Spark makes it."""
    texts = server.options | {name: str(value) for name, value in options.items()}
    checked = parsed(texts, "stream")
    return kind(checked, schema_of(checked))


def test_what_a_running_query_says_when_its_lease_is_released(shared, queue) -> None:
    reader = reader_of(ConsumeReader, shared, queue=queue, consumer=CONSUMER)
    shared.send(queue, "0")
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    shared.client.release_consumer(queue, CONSUMER)
    with pytest.raises(
        ForqConsumerFenced, match=f"'{queue}' since this one did, or somebody has released it"
    ):
        reader.latestOffset(end, ReadMaxRows(1))


def test_a_query_that_begins_with_nothing_to_lease_reads_nothing(shared, queue) -> None:
    """Spark makes a first batch of it all the same. The newest lease is of another query then, and not read again."""
    shared.send(queue, "0")
    generation = shared.client.open_consumer(queue, CONSUMER).generation
    for acknowledged in (0, 1):
        if acknowledged:
            shared.client.lease(queue, CONSUMER, generation, 1)
            shared.client.acknowledge(queue, CONSUMER, generation, 1)
        reader = reader_of(ConsumeReader, shared, queue=queue, consumer=CONSUMER)
        assert reader.partitions({"seq": acknowledged}, {"seq": acknowledged}) == []


def test_a_loss_that_is_allowed_is_told(shared, queue, caplog) -> None:
    """A lease that was given back before and after its batch was written, and one of long ago."""

    def started_again() -> ConsumeReader:
        return reader_of(ConsumeReader, shared, queue=queue, consumer=CONSUMER, failOnDataLoss="false")

    reader = started_again()
    shared.send(queue, "0123456")
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    (part,) = reader.partitions({"seq": 0}, end)
    assert not caplog.messages
    shared.client.release_consumer(queue, CONSUMER)
    assert list(reader.read(part)) == []
    assert f"lease 1 of consumer 'spark' of queue '{queue}' is gone" in caplog.messages[-1]
    assert caplog.messages[-1].endswith("; its batch is taken as empty")  # it was asked for already
    reader = started_again()
    offset = reader.latestOffset(end, ReadMaxRows(1))
    assert "was given back after its batch was written" in caplog.messages[-1]
    while (further := reader.latestOffset(offset, ReadMaxRows(1))) != offset:
        offset = further
    assert len(caplog.messages) == 2
    started_again().latestOffset({"seq": 1}, ReadMaxRows(1))
    assert f"is at {offset['seq']}: this checkpoint is older" in caplog.messages[-1]


def test_events_that_are_gone_are_told_where_that_is_allowed(tmp_path, caplog) -> None:
    with running(tmp_path / "forq.db") as server:
        server.send("q", ["one"])
        reader = reader_of(LogStreamReader, server, mode="events", failOnDataLoss="false")
        assert reader.latestOffset({"after": 90, "until": 99}, ReadMaxRows(10)) == {"after": 0, "until": 1}
    assert "the checkpoint is at 99 and the server's events end at 1" in caplog.messages[-1]


@pytest.mark.tier2
def test_a_job_that_is_pointed_at_another_queue_acknowledges_nothing_there(
    spark, shared, queue, tmp_path
) -> None:
    """Another job has leased there and has not read yet; its lease has the number that the checkpoint has written."""
    other = f"{queue}-other"
    for name in (queue, other):
        shared.send(name, "0123")
    drained(consume(spark, shared, queue), tmp_path)
    generation = shared.client.open_consumer(other, CONSUMER).generation
    shared.client.lease(other, CONSUMER, generation, 1)
    with pytest.raises(StreamingQueryException) as raised:
        drained(consume(spark, shared, other), tmp_path)
    assert f"of queue '{queue}', and this query reads queue '{other}'" in (reason_of(raised.value) or "")
    assert shared.contents(other) == [*"0123"]
    shared.client.acknowledge(other, CONSUMER, generation, 1)  # that job was not ended


@pytest.mark.tier2
def test_a_job_of_before_a_restore_acknowledges_nothing_after_it(spark, queue, tmp_path) -> None:
    """The scheduler tries it again, while the new job was killed before it had written."""
    database, backup = tmp_path / "forq.db", tmp_path / "backup.db"
    with running(database) as server:
        server.send(queue, "0123")
        backup_file(str(database), str(backup))
        drained(consume(spark, server, queue, maxMessagesPerTrigger=2), tmp_path / "old")
    with running(backup) as server:
        server.send(queue, "4", priority=200)  # so that the leases of the same numbers have others
        generation = server.client.open_consumer(queue, CONSUMER).generation
        for number in (1, 2):
            server.client.lease(queue, CONSUMER, generation, number, max_messages=2, ahead=True)
        with pytest.raises(StreamingQueryException) as raised:
            drained(consume(spark, server, queue), tmp_path / "old")
        assert "and the server's was made at" in (reason_of(raised.value) or "")
        assert sorted(server.contents(queue)) == [*"01234"]
        (batch,) = drained(consume(spark, server, queue, maxMessagesPerTrigger=2), tmp_path / "new")[:1]
        assert [row.content for row in batch] == ["4", "0"]
