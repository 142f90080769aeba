"""An archive has each row once, whatever was killed or ran twice, for every reader of Delta tables."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

import pyarrow as pa
from deltalake import DeltaTable

from forq_trio.model.errors import InvalidRequest
from pyspark_forq.pipelines import archive as archiving
from pyspark_forq.pipelines.archive import archive, archived
from pyspark_forq.pipelines.archive_table import ARCHIVED, ArchiveError, ArchiveTable
from pyspark_forq.pipelines.compact import compact
from spark.archives import OWNER, add_batch, ids, parquet
from spark.event_frames import SCHEMA, event
from spark.support import Server, running

DAY_SECONDS = 86_400


class Killed(BaseException):
    """Nothing happens behind it, as after a kill."""


def kill_at(where: str):
    def step(name: str) -> None:
        if name == where:
            raise Killed

    return step


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("archive") / "forq.db") as server:
        yield server


@pytest.fixture
def asked(server, queue) -> dict:
    """What an archive of this test's queue is asked with; it has four events."""
    server.send(queue, ["a", "b", "c", "d"])
    return {**server.options, "queue": queue, "tables": ["events"]}


def test_new_events_are_appended_in_batches_and_nothing_else(
    spark, server, queue, asked, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(archiving._IDS_A_BATCH, "events", 2)
    assert archive(spark, tmp_path, **asked).rows == {"events": 4}
    first = ids(tmp_path)
    assert archive(spark, tmp_path, **asked).rows == {"events": 0}
    server.send(queue, ["e"])
    assert archive(spark, tmp_path, **asked).rows == {"events": 1}
    assert ids(tmp_path) == [*first, ids(tmp_path)[-1]]
    assert archived(spark, tmp_path, "events").count() == 5
    on_server = spark.read.format("forq").options(mode="events", queue=queue, **server.options).load()
    found = archived(spark, tmp_path, "events").orderBy("id")
    assert found.schema == on_server.schema
    assert found.collect() == on_server.orderBy("id").collect()


@pytest.mark.parametrize("where", [pytest.param("written", marks=pytest.mark.tier2), "committed"])
def test_a_kill_between_any_two_steps_loses_and_repeats_nothing(
    spark, asked, tmp_path, monkeypatch, where
) -> None:
    monkeypatch.setitem(archiving._IDS_A_BATCH, "events", 3)
    with pytest.raises(Killed):
        archive(spark, tmp_path, **asked, step=kill_at(where))
    archive(spark, tmp_path, **asked)
    assert len(ids(tmp_path)) == len(set(ids(tmp_path))) == 4
    assert archived(spark, tmp_path, "events").count() == 4


def test_what_a_killed_run_left_is_removed_later(spark, asked, tmp_path) -> None:
    with pytest.raises(Killed):
        archive(spark, tmp_path, **asked, step=kill_at("written"))
    orphans = parquet(tmp_path)
    archive(spark, tmp_path, **asked)
    compact(spark, tmp_path)
    assert orphans < parquet(tmp_path)
    compact(spark, tmp_path, keep_hours=0)
    assert orphans.isdisjoint(parquet(tmp_path))
    assert len(ids(tmp_path)) == 4


def test_of_two_runs_at_once_one_wins_and_the_other_says_so(spark, asked, tmp_path) -> None:
    with pytest.raises(ArchiveError, match="another run is at work"):
        archive(spark, tmp_path, **asked, step=lambda name: archive(spark, tmp_path, **asked))
    assert len(ids(tmp_path)) == 4


@pytest.mark.tier2
def test_a_compaction_that_comes_meanwhile_disturbs_nothing(spark, asked, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(archiving._IDS_A_BATCH, "events", 2)
    done = []

    def another(name: str) -> None:
        if name == "written":
            done.append(compact(spark, tmp_path, before="2100-01-01").days)

    archive(spark, tmp_path, **asked, step=another)
    assert sum(done) > 0
    assert len(ids(tmp_path)) == 4


def test_a_store_that_cannot_be_reached_is_said_in_a_line(spark) -> None:
    words = r"^hdfs://127\.0\.0\.1:9/a/events cannot be read: .*[Cc]onnection[^\n\x1b]*$"
    with pytest.raises(ArchiveError, match=words):
        archived(spark, "hdfs://127.0.0.1:9/a", "events")


def test_an_archive_belongs_to_a_server_and_queue(spark, server, asked, tmp_path) -> None:
    archive(spark, tmp_path, **asked)
    with pytest.raises(InvalidRequest, match=r"queue .*, not any queue: use another one"):
        archive(spark, tmp_path, **server.options, tables=["events"])
    table = ArchiveTable(spark, tmp_path, "events")
    table.commit(ARCHIVED, table.number(ARCHIVED), 10**6, [])
    with pytest.raises(ArchiveError, match="is at 1,000,000, and the server's events end at"):
        archive(spark, tmp_path, **asked)
    with pytest.raises(ArchiveError, match="there are no history"):
        archived(spark, tmp_path, "history")


def test_the_archive_is_read_by_queue_and_time_with_the_types_of_the_server(spark, tmp_path) -> None:
    place = tmp_path / "a [b] {c}, d"
    add_batch(
        spark,
        place,
        event(1, 0, "produced", "007"),
        event(2, DAY_SECONDS, "produced", "007"),
        event(3, 2 * DAY_SECONDS, "produced", "007"),
        event(4, 1, "produced", "7"),
        event(5, 1, "produced", "__HIVE_DEFAULT_PARTITION__"),
    )
    found = archived(spark, place, "events", queue="007", since="2026-11-24T01:00:00Z")
    assert found.schema == spark.createDataFrame([], SCHEMA).schema
    assert sorted(row["id"] for row in found.collect()) == [2, 3]
    found = archived(spark, place, "events", queue="007", until="2026-11-24T01:00:00Z")
    assert [row["id"] for row in found.collect()] == [1]
    found = archived(spark, place, "events", queue="__HIVE_DEFAULT_PARTITION__")
    assert [row["id"] for row in found.collect()] == [5]
    assert archived(spark, place, "events", since="2027-01-01").collect() == []
    plain = DeltaTable(place / "events").to_pyarrow_table()
    assert datetime(2026, 11, 23, 1, tzinfo=UTC) in plain["at"].to_pylist()
    assert set(plain["date"].to_pylist()) == {date(2026, 11, 23 + days) for days in range(3)}
    assert "007" in plain["queue"].to_pylist()


@pytest.mark.tier2
def test_a_column_that_is_new_is_null_in_older_files(spark, tmp_path) -> None:
    add_batch(spark, tmp_path, event(1, 0, "produced"))
    table = ArchiveTable(spark, tmp_path, "events")
    table.belong_to(pa.schema([("id", pa.int64()), ("later", pa.string())]), OWNER)
    add_batch(spark, tmp_path, event(2, 0, "produced"))
    rows = archived(spark, tmp_path, "events").select("id", "later").collect()
    assert sorted(map(tuple, rows)) == [(1, None), (2, None)]
