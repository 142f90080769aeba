"""Syncs and space on a system without Linux's calls for them: their names are removed here."""

import fcntl
import os
from contextlib import closing

import pytest

from forq_trio.model.limits import KIB, MIB
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.on_disk import allocate, sync_all, sync_data
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.batches import do
from support.words import send


@pytest.fixture
def elsewhere(monkeypatch) -> None:
    monkeypatch.delattr("os.posix_fallocate", raising=False)
    monkeypatch.delattr("os.fdatasync", raising=False)


@pytest.mark.usefixtures("elsewhere")
def test_a_database_is_opened_written_moved_and_copied(path, tmp_path) -> None:
    with closing(SqliteEngine(path, EngineSettings())) as engine:
        do(engine, send("kept"))
        engine.log.checkpoint(truncate=True)
        assert os.path.getsize(path + "-shm") >= 512 * KIB
        copy = str(tmp_path / "copy.db")
        engine.copy_to(copy, lambda done, total: None)
    with closing(SqliteEngine(copy, EngineSettings())) as engine:
        assert engine.snapshot().counts["q"].ready == 1
    assert check_file(path).ok


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("begin", "size"), [(0, 0), (0, 1), (3, 2 * MIB + 5)])
def test_space_is_real_bytes_behind_what_is_there(tmp_path, begin, size) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc"[:begin])
    descriptor = os.open(file, os.O_RDWR)
    allocate(descriptor, begin, size)
    os.close(descriptor)
    assert file.read_bytes() == b"abc"[:begin] + bytes(size)
    assert file.stat().st_blocks * 512 >= size


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("sync", [sync_data, sync_all])
@pytest.mark.parametrize("can", [True, False])
def test_a_sync_passes_the_cache_of_the_drive_where_the_system_has_one_that_does(
    tmp_path, monkeypatch, sync, can
) -> None:
    calls = []

    def full(descriptor: int, command: int) -> int:
        calls.append(command)
        if not can:
            raise OSError("this file system has none")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    sync(descriptor)
    os.close(descriptor)
    assert calls == ([51] if can else [51, "fsync"])


def test_sqlite_is_told_to_pass_it_too(path) -> None:
    with closing(SqliteEngine(path, EngineSettings())) as engine:
        for connection in (engine._database.connection, engine.log._connection):
            assert connection.pragma("fullfsync") == connection.pragma("checkpoint_fullfsync") == 1
