"""Compaction: a reader never sees rows twice or not at all, wherever it is killed; and what it leaves alone."""

import errno
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not here (pip install -e '.[spark]')")

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from pyspark_forq.pipelines.archive_files import ArchiveError, ArchiveFiles
from pyspark_forq.pipelines.compact import compact

DAY = "2026-11-20"
BEFORE = "2026-11-21"
QUEUES = ("orders", "007", "null")


def add_batch(archive: Path, batch: int, *, rows: int = 10, day: str = DAY, committed: bool = True) -> None:
    """What a batch of the streaming query leaves."""
    files = ArchiveFiles(archive, "events")
    for place, queue in enumerate(QUEUES):
        directory = files.data / f"date={day}" / f"queue_name={queue}" / f"batch={batch}"
        directory.mkdir(parents=True)
        first = (batch * len(QUEUES) + place) * rows
        table = pa.table({"id": range(first, first + rows), "queue": [queue] * rows})
        pq.write_table(table, directory / "part-0.snappy.parquet")
    for log in ("offsets", *(["commits"] if committed else [])):
        (files.checkpoint / log).mkdir(parents=True, exist_ok=True)
        (files.checkpoint / log / str(batch)).touch()


def read(archive: Path) -> list[tuple[int, str]]:
    """Every row, as a plain reader that knows nothing of us has it."""
    return rows_of(dataset.dataset(archive / "events", partitioning="hive"))


def rows_of(found: dataset.Dataset) -> list[tuple[int, str]]:
    table = found.to_table(columns=["id", "queue"])
    return sorted(zip(table["id"].to_pylist(), table["queue"].to_pylist(), strict=True))


def directories(archive: Path, queue: str = "007") -> set[str]:
    return {path.name for path in (archive / "events" / f"date={DAY}" / f"queue_name={queue}").iterdir()}


@pytest.fixture
def archive(tmp_path) -> Path:
    for batch in range(4):
        add_batch(tmp_path, batch)
    return tmp_path


def test_closed_days_become_one_directory_and_stay_so(archive) -> None:
    before = read(archive)
    done = compact(archive, before=BEFORE)
    assert (done.directories, done.files_before, done.files_after, done.rows) == (3, 12, 3, 120)
    assert directories(archive) == {"batch=-4"}
    assert read(archive) == before
    assert compact(archive, before=BEFORE).directories == 0
    assert not any((archive / "_compacting").rglob("*.parquet"))


def test_later_batches_of_a_compacted_day_join_it(archive) -> None:
    compact(archive, before=BEFORE)
    add_batch(archive, 9)
    before = read(archive)
    assert directories(archive) == {"batch=-4", "batch=9"}
    assert compact(archive, before=BEFORE).rows == 150
    assert directories(archive) == {"batch=-10"}
    assert read(archive) == before


def test_open_days_and_batches_that_may_be_written_again_are_left_alone(archive) -> None:
    add_batch(archive, 4, committed=False)
    add_batch(archive, 3 + 2, day="2026-11-21", committed=False)
    before = read(archive)
    compact(archive, before=BEFORE)
    assert directories(archive) == {"batch=-4", "batch=4"}
    assert read(archive) == before
    today = archive / "events" / "date=2026-11-21" / "queue_name=007"
    assert {path.name for path in today.iterdir()} == {"batch=5"}


@pytest.mark.parametrize("where", ["written", pytest.param("linked", marks=pytest.mark.tier2), "exchanged"])
def test_a_kill_at_any_step_loses_and_repeats_nothing(archive, where) -> None:
    add_batch(archive, 4, committed=False)
    before = read(archive)
    child = multiprocessing.get_context("spawn").Process(target=end_at, args=(archive, where))
    child.start()
    child.join(60)
    assert child.exitcode == 9
    assert read(archive) == before
    compact(archive, before=BEFORE)
    assert read(archive) == before
    assert directories(archive) == {"batch=-4", "batch=4"}
    assert not any((archive / "_compacting").rglob("*.parquet"))


def end_at(archive: Path, where: str) -> None:
    compact(archive, before=BEFORE, step=lambda name: os._exit(9) if name == where else None)


def found_once(archive: Path) -> dataset.Dataset:
    """What `archived` does with Spark: the files are listed while none are exchanged, and read afterwards."""
    with ArchiveFiles(archive, "events").listing():
        return dataset.dataset(archive / "events", partitioning="hive")


def test_a_reader_beside_it_has_all_rows_once_or_an_error(tmp_path) -> None:
    """Batches come and are compacted while somebody reads: each read has what there was at some moment of it."""
    archive, aside = tmp_path / "archive", tmp_path / "aside"
    stop = threading.Event()
    seen: list[set[tuple[int, str]]] = []
    wrong: list[int] = []

    def look() -> None:
        while not stop.is_set():
            try:
                found = rows_of(found_once(archive))
            except FileNotFoundError:
                continue  # it was listed before the exchange and opened after it
            seen.append(set(found))
            if len(seen[-1]) != len(found) or (len(seen) > 1 and not seen[-2] <= seen[-1]):
                wrong.append(len(found))

    add_batch(archive, 0)
    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        for batch in range(1, 25):
            add_batch(aside, batch)
            for queue in QUEUES:
                part = Path("events", f"date={DAY}", f"queue_name={queue}", f"batch={batch}")
                (aside / part).rename(archive / part)
            for log in ("offsets", "commits"):
                (archive / "_checkpoints" / "events" / log / str(batch)).touch()
            compact(archive, before=BEFORE)
    finally:
        stop.set()
        reader.join(60)
    assert wrong == []
    assert len(seen) > 1
    assert len(read(archive)) == 25 * 10 * len(QUEUES)


def test_files_are_not_exchanged_while_somebody_lists_them(archive) -> None:
    """Spark and pyarrow leave out what has gone since they saw its name: they would miss rows and say nothing."""
    before, listed, compacted = read(archive), threading.Event(), threading.Event()

    def next_step(step: str) -> None:
        if step == "written":
            listed.set()

    def run() -> None:
        compact(archive, before=BEFORE, step=next_step)
        compacted.set()

    runner = threading.Thread(target=run, daemon=True)
    with ArchiveFiles(archive, "events").listing():
        runner.start()
        assert listed.wait(60)
        assert directories(archive, "orders") == {"batch=0", "batch=1", "batch=2", "batch=3"}
        assert read(archive) == before
        assert not compacted.is_set()
    runner.join(60)
    assert read(archive) == before
    assert directories(archive, "orders") == {"batch=-4"}


def test_an_archive_that_cannot_be_written_is_read_without_a_lock(archive, monkeypatch) -> None:
    def refused(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "open", refused)
    with ArchiveFiles(archive, "events").listing():
        pass


def test_one_compaction_at_a_time(archive) -> None:
    def another(name: str) -> None:
        with pytest.raises(ArchiveError, match="another run"):
            compact(archive, before=BEFORE)

    compact(archive, before=BEFORE, step=another)


def test_an_archive_is_a_directory_of_this_machine() -> None:
    with pytest.raises(ArchiveError, match="not a directory of this machine"):
        ArchiveFiles("s3a://bucket/archive", "events")


def test_an_archive_ahead_of_its_checkpoint_is_refused(archive) -> None:
    files = ArchiveFiles(archive, "events")
    files.check_checkpoint()
    compact(archive, before=BEFORE)
    files.check_checkpoint()
    for log in ("offsets", "commits"):
        (files.checkpoint / log / "3").unlink()
    with pytest.raises(ArchiveError, match=r"has batch 3, and its checkpoint .* knows none after 2"):
        files.check_checkpoint()
