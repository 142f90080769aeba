"""The write-ahead log of a real file: what its checkpoints leave in the system's memory."""

import ctypes
import errno
import os
from collections.abc import Callable
from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.errors import StorageFull, StorageUnavailable
from forq_trio.model.limits import KIB
from forq_trio.storage.engine import Batch
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import write_back as write_back_module
from forq_trio.storage.write_ahead_log import CheckpointResult
from support.actors import T0
from support.words import send


def commit_one(engine: SqliteEngine) -> None:
    engine.execute_batch(Batch([send("x" * 20_000)], T0))
    assert engine.commit()


def test_what_a_checkpoint_has_copied_is_synced_though_it_did_not_reach_the_end_of_the_log(
    engine, tmp_path, monkeypatch
) -> None:
    """SQLite itself would not; then all of it would be written while the writer is paused for the last checkpoint."""
    synced = []
    fdatasync = os.fdatasync

    def noted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", noted)
    commit_one(engine)
    with closing(engine.open_reader()) as reader:
        reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
        commit_one(engine)
        result = engine.log.checkpoint(truncate=False)
    assert 0 < result.copied_pages < result.log_pages
    assert synced == [tmp_path.joinpath("forq.db").stat().st_ino]


def test_what_a_checkpoint_has_copied_is_brought_to_the_disk_little_by_little(
    engine, tmp_path, monkeypatch
) -> None:
    """Commits sync the log meanwhile: behind 8 MiB handed over at once they would wait for milliseconds."""
    ranges = []

    def noted(_descriptor: int, start: int, length: int, _flags: int) -> int:
        ranges.append((start, length))
        return 0

    monkeypatch.setattr(write_back_module, "_sync_file_range", lambda: noted)
    monkeypatch.setattr(limits, "WRITE_BACK_BYTES", 16 * KIB)
    monkeypatch.setattr(limits, "WRITE_BACK_PAGES_MIN", 2)
    while tmp_path.joinpath("forq.db").stat().st_size < 100 * KIB:
        commit_one(engine)
        engine.log.checkpoint(truncate=False)
    size = tmp_path.joinpath("forq.db").stat().st_size
    last = ranges[[start for start, _ in ranges].index(0, -(size // (16 * KIB)) - 1) :]
    assert [start for start, _ in last] == list(range(0, size, 16 * KIB))
    assert {length for _, length in ranges} == {16 * KIB}
    monkeypatch.setattr(limits, "WRITE_BACK_RANGES_MAX", 4)
    ranges.clear()
    commit_one(engine)
    engine.log.checkpoint(truncate=False)
    assert len(ranges) == 4
    assert ranges[-1][0] < size <= sum(ranges[-1])
    ranges.clear()
    engine.log.checkpoint(truncate=False)
    assert ranges == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_range_that_cannot_be_written_is_a_checkpoint_that_failed(engine, monkeypatch, number) -> None:
    monkeypatch.setattr(limits, "WRITE_BACK_PAGES_MIN", 2)
    commit_one(engine)
    with monkeypatch.context() as patched:
        patched.setattr(write_back_module, "_sync_file_range", lambda: failing_with(number))
        with pytest.raises(StorageUnavailable, match="cannot be synced"):
            engine.log.checkpoint(truncate=False)
    assert engine.log.checkpoint(truncate=False).copied_pages > 0


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EINVAL])
def test_where_ranges_cannot_be_written_the_file_is_synced_as_a_whole(engine, monkeypatch, number) -> None:
    monkeypatch.setattr(limits, "WRITE_BACK_PAGES_MIN", 0)
    commit_one(engine)
    monkeypatch.setattr(write_back_module, "_sync_file_range", lambda: failing_with(number))
    assert engine.log.checkpoint(truncate=False).copied_pages > 0
    monkeypatch.setattr(write_back_module, "_sync_file_range", lambda: None)
    assert engine.log.checkpoint(truncate=False).copied_pages > 0


def failing_with(number: int) -> Callable[..., int]:
    def failing(*_arguments: int) -> int:
        ctypes.set_errno(number)
        return -1

    return failing


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageUnavailable)]
)
def test_a_sync_that_fails_is_a_checkpoint_that_failed(engine, monkeypatch, number, expected) -> None:
    def failing(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    commit_one(engine)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", failing)
        with pytest.raises(StorageUnavailable, match="cannot be synced") as refused:
            engine.log.checkpoint(truncate=False)
    assert type(refused.value) is expected
    result = engine.log.checkpoint(truncate=False)
    assert result.copied_pages == result.log_pages > 0


def test_a_log_that_somebody_removed_is_emptied_all_the_same(engine, tmp_path) -> None:
    """What is committed is in the file that is still open; that it has lost its name is said by the file watch."""
    commit_one(engine)
    tmp_path.joinpath("forq.db-wal").unlink()
    assert engine.log.checkpoint(truncate=True) == CheckpointResult(0, 0)
    assert engine.log.pages() == 0
