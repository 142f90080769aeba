"""What notices writes to a database: the kernel, or sizes and times of its files."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from forq_trio.outbox.changes import LOOK_SECONDS, Changes, NotifiedChanges, SeenChanges, watch
from support.processes import WAIT_SECONDS_MAX


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    return path


@pytest.fixture(params=[NotifiedChanges, SeenChanges])
def changes(request, path) -> Iterator[Changes]:
    made = request.param(str(path))
    yield made
    made.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_a_write_is_noticed(path, changes, mode):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for _ in range(3):
            connection.execute("INSERT INTO t VALUES (1)")
            connection.commit()
            with trio.fail_after(WAIT_SECONDS_MAX):
                await changes.wait()


def test_neither_reads_nor_other_files_are_changes(path, tmp_path):
    with closing(NotifiedChanges(str(path))) as changes, closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
        (tmp_path / "another.db").write_bytes(b"x")
        assert not changes._read()
        (tmp_path / "shop.db-wal").write_bytes(b"x")
        assert changes._read()
        assert not changes._read()


async def test_without_the_kernel_files_are_looked_at_once_a_second(path, autojump_clock):
    changes = SeenChanges(str(path))
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(changes.wait)
        await trio.testing.wait_all_tasks_blocked()
        path.write_bytes(path.read_bytes() + b"x")
    assert trio.current_time() - begun == LOOK_SECONDS


def test_where_the_kernel_cannot_files_are_looked_at(path, tmp_path, monkeypatch):
    with closing(watch(str(path))) as changes:
        assert isinstance(changes, NotifiedChanges)
    assert isinstance(watch(str(path), notified=False), SeenChanges)
    assert isinstance(watch(str(tmp_path / "missing" / "shop.db")), SeenChanges)
