"""An archive has each row once for Spark and for pyarrow, after batches that were repeated, killed or compacted."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from pyarrow import dataset

from pyspark_forq.pipelines.archive import ArchiveWriter, archived, start
from pyspark_forq.pipelines.archive_files import ArchiveError, ArchiveFiles
from pyspark_forq.pipelines.compact import compact
from spark.event_frames import SCHEMA, event

DAY_SECONDS = 86_400


def land(spark, place: Path, *events: tuple) -> None:
    """Events that the stream of `streamed` finds: a file is a batch."""
    spark.createDataFrame(events, SCHEMA).coalesce(1).write.mode("append").parquet(str(place))


def run(spark, source: Path, archive: Path) -> ArchiveWriter:
    """The archive's streaming query over files instead of a server."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = ArchiveWriter(ArchiveFiles(archive, "events"))
    writer.files.check_checkpoint()
    query = start(frame, writer)
    query.awaitTermination()
    return writer


def ids(spark, archive: Path) -> list[int]:
    """The ids in the archive, in order, by plain readers: Spark and pyarrow agree."""
    by_spark = sorted(row["id"] for row in spark.read.parquet(str(archive / "events")).select("id").collect())
    by_arrow = dataset.dataset(archive / "events", partitioning="hive").to_table(columns=["id"])["id"]
    assert sorted(by_arrow.to_pylist()) == by_spark
    return by_spark


def test_each_event_is_there_once_also_after_a_kill_before_the_commit(spark, tmp_path) -> None:
    source, archive = tmp_path / "source", tmp_path / "archive"
    land(spark, source, event(1, 0, "produced", "a"), event(2, 1, "produced", "007"))
    land(spark, source, event(3, DAY_SECONDS, "produced", "a"), event(4, 2, "acked", "a"))
    assert run(spark, source, archive).rows == 4
    assert ids(spark, archive) == [1, 2, 3, 4]
    # Killed after the files were written and before Spark noted it: the batch comes again.
    files = ArchiveFiles(archive, "events")
    last = files.committed()
    (files.checkpoint / "commits" / str(last)).unlink()
    (files.checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    (files.data / ".spark-staging-killed" / "date=2026-11-23").mkdir(parents=True)
    assert run(spark, source, archive).rows
    assert ids(spark, archive) == [1, 2, 3, 4]
    files.remove_unfinished()
    assert not list(files.data.glob(".spark*"))


@pytest.mark.tier2
def test_what_was_compacted_reads_the_same_and_goes_on(spark, tmp_path) -> None:
    source, archive = tmp_path / "source", tmp_path / "archive"
    for number in (1, 2):
        land(spark, source, event(number, number, "produced", "007"))
    run(spark, source, archive)
    before = archived(spark, archive, "events").orderBy("id").collect()
    assert compact(archive, before="2026-11-24").files_after == 1
    assert archived(spark, archive, "events").orderBy("id").collect() == before
    land(spark, source, event(3, 3, "acked", "007"))
    run(spark, source, archive)
    assert ids(spark, archive) == [1, 2, 3]
    assert compact(archive, before="2026-11-24").rows == 3
    assert ids(spark, archive) == [1, 2, 3]


def test_the_archive_is_read_by_queue_and_time_with_the_types_of_the_server(spark, tmp_path) -> None:
    source, archive = tmp_path / "source", tmp_path / "archive"
    land(
        spark,
        source,
        event(1, 0, "produced", "007"),
        event(2, DAY_SECONDS, "produced", "007"),
        event(3, 2 * DAY_SECONDS, "produced", "007"),
        event(4, 1, "produced", "7"),
        event(5, 1, "produced", "__HIVE_DEFAULT_PARTITION__"),
    )
    run(spark, source, archive)
    found = archived(spark, archive, "events", queue="007", since="2026-11-24T01:00:00Z")
    assert found.schema == spark.createDataFrame([], SCHEMA).schema
    assert sorted(row["id"] for row in found.collect()) == [2, 3]
    found = archived(spark, archive, "events", queue="007", until="2026-11-24T01:00:00Z")
    assert [row["id"] for row in found.collect()] == [1]
    found = archived(spark, archive, "events", queue="__HIVE_DEFAULT_PARTITION__")
    assert [row["id"] for row in found.collect()] == [5]
    assert {path.name for path in (archive / "events").glob("date=*")} == {
        "date=2026-11-23",
        "date=2026-11-24",
        "date=2026-11-25",
    }
    plain = dataset.dataset(archive / "events", partitioning="hive").to_table(columns=["at", "queue"])
    assert datetime(2026, 11, 23, 1, tzinfo=UTC) in plain["at"].to_pylist()
    assert "007" in plain["queue"].to_pylist()


def test_one_archive_of_a_table_at_a_time_and_only_with_its_checkpoint(spark, tmp_path) -> None:
    files = ArchiveFiles(tmp_path, "events")
    with (
        files.running(),
        pytest.raises(ArchiveError, match="another run"),
        ArchiveFiles(tmp_path, "events").running(),
    ):
        pass
    with pytest.raises(ArchiveError, match="there are no events"):
        archived(spark, tmp_path, "events")
