"""Compaction: a reader never sees rows twice or not at all, wherever it is killed; and what it leaves alone."""

import shutil
import threading
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from deltalake import DeltaTable

from pyspark_forq.pipelines import compact as compaction
from pyspark_forq.pipelines.archive import archived
from pyspark_forq.pipelines.archive_table import ArchiveError, ArchiveTable
from pyspark_forq.pipelines.compact import compact
from spark.archives import add_batch, ids, parquet
from spark.event_frames import event

BEFORE = "2026-11-24"
DAY_SECONDS = 86_400
QUEUES = ("orders", "007")


def batch(number: int, *, days: int = 0) -> list[tuple]:
    return [
        event(10 * number + place, days * DAY_SECONDS, "produced", queue)
        for place, queue in enumerate(QUEUES)
    ]


@pytest.fixture(scope="module")
def three_batches(spark, tmp_path_factory) -> Path:
    """An archive that is only copied: to write one takes three seconds."""
    place = tmp_path_factory.mktemp("archive")
    for number in (1, 2, 3):
        add_batch(spark, place, *batch(number))
    return place


@pytest.fixture
def archive(three_batches, tmp_path) -> Path:
    """A copy of this test's own; in a Delta table all paths are relative."""
    return shutil.copytree(three_batches, tmp_path / "archive")


@pytest.mark.tier2
def test_a_day_of_both_tables_is_one_day(spark, archive) -> None:
    for number in (4, 5):
        add_batch(spark, archive, *batch(number), table_name="history")
    done = compact(spark, archive, before=BEFORE)
    assert (done.days, done.files_before, done.files_after) == (1, 5, 2)


def test_closed_days_become_one_file_by_queue_and_stay_so(spark, archive) -> None:
    before = ids(archive)
    done = compact(spark, archive, before=BEFORE)
    assert (done.days, done.files_before, done.files_after, done.rows) == (1, 3, 1, 6)
    rows = DeltaTable(archive / "events").to_pyarrow_table(columns=["queue", "id"]).to_pylist()
    assert [row["queue"] for row in rows] == ["007"] * 3 + ["orders"] * 3
    assert [row["id"] for row in rows] == [11, 21, 31, 10, 20, 30]
    assert compact(spark, archive, before=BEFORE).days == 0
    add_batch(spark, archive, *batch(4))
    assert compact(spark, archive, before=BEFORE).rows == 8
    assert ids(archive) == sorted([*before, 40, 41])


@pytest.mark.tier2
def test_open_days_are_left_alone(spark, archive) -> None:
    add_batch(spark, archive, *batch(4, days=1))
    add_batch(spark, archive, *batch(5, days=1))
    assert compact(spark, archive, before=BEFORE).files_before == 3
    assert len(ArchiveTable(spark, archive, "events").files()) == 3


@pytest.mark.tier2
def test_a_large_day_has_files_of_a_bounded_size(spark, archive, monkeypatch) -> None:
    size = sum(file.bytes for file in ArchiveTable(spark, archive, "events").files())
    monkeypatch.setattr(compaction, "FILE_BYTES", size * 2 // 3)
    before = ids(archive)
    assert compact(spark, archive, before=BEFORE).files_after == 2
    assert ids(archive) == before
    assert archived(spark, archive, "events", queue="007").count() == 3


class Killed(BaseException):
    """Nothing happens behind it, as after a kill."""


@pytest.mark.parametrize("where", ["written", "exchanged"])
def test_a_kill_between_any_two_steps_loses_and_repeats_nothing(spark, archive, where) -> None:
    def step(name: str) -> None:
        if name == where:
            raise Killed

    before = ids(archive)
    with pytest.raises(Killed):
        compact(spark, archive, before=BEFORE, step=step)
    assert ids(archive) == before
    compact(spark, archive, before=BEFORE, keep_hours=0)
    assert ids(archive) == before
    assert len(parquet(archive)) == 1


@pytest.mark.tier2
def test_of_two_compactions_at_once_one_wins_and_the_other_says_so(spark, archive) -> None:
    before, steps = ids(archive), []

    def another(name: str) -> None:
        steps.append(name)
        compact(spark, archive, before=BEFORE)

    with pytest.raises(ArchiveError, match="another run is at work"):
        compact(spark, archive, before=BEFORE, step=another)
    assert steps == ["written"]
    assert ids(archive) == before


@pytest.mark.tier2
def test_another_tool_that_moves_the_same_rows_is_not_passed(spark, archive) -> None:
    before = ids(archive)

    def another(name: str) -> None:
        DeltaTable(archive / "events").optimize.compact()

    with pytest.raises(ArchiveError, match="another run is at work"):
        compact(spark, archive, before=BEFORE, step=another)
    assert ids(archive) == before


def test_a_batch_that_comes_meanwhile_disturbs_nothing(spark, archive) -> None:
    def another(name: str) -> None:
        if name == "written":
            add_batch(spark, archive, *batch(4))

    assert compact(spark, archive, before=BEFORE, step=another).rows == 6
    assert len(ids(archive)) == len(set(ids(archive))) == 8


@pytest.mark.tier2
def test_a_frame_that_was_made_before_reads_what_it_saw(spark, archive) -> None:
    frame = archived(spark, archive, "events")
    add_batch(spark, archive, *batch(4))
    compact(spark, archive, before=BEFORE)
    assert sorted(row["id"] for row in frame.collect()) == [10, 11, 20, 21, 30, 31]


@pytest.mark.tier2
def test_a_reader_beside_it_sees_one_state_each_time(spark, archive) -> None:
    """Batches come and are compacted while somebody reads: each read has what there was at some moment of it."""
    stop = threading.Event()
    seen: list[list[int]] = []

    def look() -> None:
        while not stop.is_set():
            seen.append(ids(archive))

    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        for number in range(4, 10):
            add_batch(spark, archive, *batch(number))
            compact(spark, archive, before=BEFORE)
    finally:
        stop.set()
        reader.join(60)
    assert len(ids(archive)) == 18
    assert all(len(found) == len(set(found)) for found in seen)
    assert all(set(earlier) <= set(later) for earlier, later in pairwise(seen))
    assert len({len(found) for found in seen}) > 2
