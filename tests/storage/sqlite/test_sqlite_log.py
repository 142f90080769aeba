"""The write-ahead log of a real file: what its checkpoints leave in the system's memory."""

import errno
import os
from contextlib import closing

import pytest

from forq_trio.model.errors import StorageFull, StorageUnavailable
from forq_trio.storage.engine import Batch
from forq_trio.storage.sqlite.engine import SqliteEngine
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
    assert 0 < result.moved_pages < result.log_pages
    assert synced == [tmp_path.joinpath("forq.db").stat().st_ino]


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
    assert result.moved_pages == result.log_pages > 0
