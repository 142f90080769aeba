"""Streams into queues: a micro-batch appears at once, and once, whatever is repeated."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_forq import reason_of
from spark.queries import stream, uncommit
from spark.support import Server


def rows_of_files(spark, folder: Path) -> DataFrame:
    """A stream of the files in a folder, one a batch."""
    folder.mkdir(exist_ok=True)
    reader = spark.readStream.schema("content string, priority int").option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))


def add_file(folder: Path, name: str, contents: list[str]) -> None:
    lines = [json.dumps({"content": content, "priority": 1}) for content in contents]
    (folder / name).write_text("\n".join(lines), encoding="utf-8")


def write(rows: DataFrame, server: Server, checkpoint: Path, **options: object) -> None:
    """Everything that is there, into a queue."""
    query = (
        rows.writeStream.format("forq")
        .options(**server.options, **options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_batch_is_published_once(spark, shared, queue, tmp_path) -> None:
    """Also when Spark repeats it, as after a crash behind the publication; and of a retried task only one attempt."""
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    rows = rows_of_files(spark, files)
    add_file(files, "1.json", ["ä", "two"])
    add_file(files, "2.json", ["three"])
    write(rows, shared, checkpoint, queue=queue)
    assert sorted(shared.contents(queue)) == ["three", "two", "ä"]
    uncommit(checkpoint, 1)
    add_file(files, "3.json", ["four"])
    write(rows, shared, checkpoint, queue=queue)
    assert sorted(shared.contents(queue)) == ["four", "three", "two", "ä"]
    # A new checkpoint is another query, whose batches are new.
    write(rows, shared, tmp_path / "another", queue=queue)
    assert len(shared.contents(queue)) == 8


def test_of_a_task_that_is_tried_again_one_attempt_is_published(spark, shared, queue, tmp_path) -> None:
    mark = str(tmp_path / "mark")

    @f.udf(returnType="string", useArrow=False)
    def break_once(content: str) -> str:
        if content == "11999" and not Path(mark).exists():
            Path(mark).touch()
            raise ValueError("broken once")
        return content

    files = tmp_path / "files"
    rows = rows_of_files(spark, files)
    # Spark hands rows over by 10,000: some are staged when the last one fails.
    contents = [str(number) for number in range(12_000)]
    add_file(files, "1.json", contents)
    write(rows.select(break_once("content").alias("content")), shared, tmp_path / "checkpoint", queue=queue)
    assert Path(mark).exists()
    assert shared.contents(queue) == contents


def test_from_queue_to_queues(spark, shared, queue, tmp_path) -> None:
    sent = [str(number) for number in range(200)]
    shared.send(queue, sent)
    source = stream(
        spark, shared.options | {"queue": queue, "consumer": "spark", "maxMessagesPerTrigger": "150"}
    )
    rows = source.select(
        "content", "priority", f.concat(f.lit(f"{queue}-"), f.col("content").cast("int") % 2).alias("queue")
    )
    write(rows, shared, tmp_path)
    assert sorted(map(int, shared.contents(f"{queue}-0"))) == list(range(0, 200, 2))
    assert sorted(map(int, shared.contents(f"{queue}-1"))) == list(range(1, 200, 2))
    assert shared.contents(queue) == []


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (lambda rows: rows.select("priority"), {"queue": "q"}, "column 'content' is missing"),
        (lambda rows: rows, {}, "where do the messages go?"),
    ],
    ids=["column", "queue"],
)
def test_what_a_person_is_told(spark, shared, tmp_path, change, options, reason) -> None:
    files = tmp_path / "files"
    rows = rows_of_files(spark, files)
    add_file(files, "1.json", ["one"])
    with pytest.raises((PySparkException, StreamingQueryException)) as raised:
        write(change(rows), shared, tmp_path / "checkpoint", **options)
    assert reason in (reason_of(raised.value) or "")
