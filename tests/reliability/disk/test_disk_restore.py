"""`forq restore` and `forq compact` cut or failed at every step: the name leads to the old database or the new one.

Each of the two is whole.

The steps are the operations of SQLite on any file but the temporary copy, and the system calls that `restore.py` and
`copy.py` make for names and syncs. At each of them the directory is taken as a crash would leave it; and each fails.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import backup_file, check_file
from forq_trio.storage.sqlite.files.compact import compact_file
from forq_trio.storage.sqlite.files.restore import restore_file
from reliability.disk.faulty import FaultyDisk
from reliability.power_cut.history import State, stored
from support.batches import run
from support.effort import EFFORT
from support.words import send

CALLS = ("link", "unlink", "rename", "replace", "fsync")


class Steps(FaultyDisk):
    """Calls `at_step` before each step. failing: the number of the one that fails, the first being 1; 0 for none."""

    def __init__(self) -> None:
        super().__init__()
        self.at_step: Callable[[], None] = lambda: None
        self.failing = 0
        self.count = 0

    def failure(self, name: str, path: str) -> int:
        return 0 if path.endswith((".partial", "backup.db")) else self.step()

    def step(self) -> int:
        """The error number of this step; 0 if it does not fail."""
        if not self._armed:
            return 0
        with self.asleep():
            self.at_step()
        self.count += 1
        return errno.EIO if self.count == self.failing else 0

    @contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Let the body's system calls be steps, too."""
        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self._stepping(getattr(os, name)))
            self.count = 0
            self.arm(None)
            yield
            self.heal()

    def _stepping(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **options: Any) -> Any:
            number = self.step()
            if number:
                raise OSError(number, os.strerror(number))
            return call(*arguments, **options)

        return stepping


class Place:
    """A killed server's database with a log, and a backup of another one."""

    def __init__(self, directory: Path) -> None:
        self.backup = str(directory / "backup.db")
        source = SqliteEngine(str(directory / "source.db"), EngineSettings())
        run(source, send("from the backup"))
        backup_file(str(directory / "source.db"), self.backup)
        source.close()
        self._killed = directory / "killed"
        self._killed.mkdir()
        engine = SqliteEngine(str(directory / "old.db"), EngineSettings())
        run(engine, *(send(f"{number} {'x' * 3_000}") for number in range(8)))
        for ending in ("", "-wal"):
            shutil.copy(directory / f"old.db{ending}", self._killed / f"forq.db{ending}")
        engine.close()
        self._directory = directory
        self._copies = 0
        self.old = whole(self.fresh())
        self.new = stored(Path(self.backup))
        assert self.old != self.new

    def fresh(self) -> Path:
        return self.copied(self._killed)

    def copied(self, directory: Path) -> Path:
        """A copy of all in a directory, as a crash would leave it."""
        self._copies += 1
        copy = self._directory / f"copy-{self._copies}"
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*-shm", "*.lock"))
        return copy


def whole(directory: Path) -> State:
    """What is stored in a database that nobody has open; it has to be sound."""
    path = directory / "forq.db"
    with closing(apsw.Connection(str(path), vfs="unix")) as connection:
        connection.execute("SELECT count(*) FROM messages").fetchall()
    assert check_file(str(path)).problems == []
    return stored(path)


@pytest.fixture
def place(quick_path) -> Place:
    return Place(quick_path)


@pytest.fixture
def steps() -> Iterator[Steps]:
    with Steps().in_use() as steps:
        yield steps


def test_cut_at_any_step_the_name_leads_to_the_old_or_the_new(place, steps, monkeypatch) -> None:
    directory = place.fresh()
    crashed: list[Path] = []
    steps.at_step = lambda: crashed.append(place.copied(directory))
    with steps.watching(monkeypatch):
        restored = restore_file(place.backup, str(directory / "forq.db"))
    assert len(crashed) > 20
    # The last one is among them: only there may the new one have the name.
    every = 4 if EFFORT.times is None else 1
    found = [whole(copy) for copy in crashed[(len(crashed) - 1) % every :: every]]
    kinds = [state == place.new for state in found]
    assert set(found) == {place.old, place.new}
    assert kinds == sorted(kinds), "the new one was there, and then the old one again"
    assert whole(directory) == place.new
    assert restored.replaced is not None
    assert stored(Path(restored.replaced)) == place.old


@pytest.mark.tier2
def test_a_step_that_fails_leaves_the_old_or_the_new_and_it_can_be_done_again(
    place, steps, monkeypatch
) -> None:
    refused = 0
    while steps.count >= steps.failing:
        directory = place.fresh()
        steps.failing += 1
        failed = False
        with steps.watching(monkeypatch):
            try:
                restore_file(place.backup, str(directory / "forq.db"))
            except StorageOpenError:
                failed = True
        assert list(directory.glob("*.partial*")) == []
        assert (directory / "forq.db").stat().st_nlink == 1
        with steps.asleep():
            if failed:
                refused += 1
                assert whole(place.copied(directory)) in (place.old, place.new)
                restore_file(place.backup, str(directory / "forq.db"))
            assert whole(directory) == place.new
        shutil.rmtree(directory)
    assert refused > 10
    print(f"{refused} of {steps.failing} refused")


@pytest.mark.tier2
def test_a_compaction_cut_or_failed_at_any_step_leaves_a_whole_database(place, steps, monkeypatch) -> None:
    """The name leads to the old file or to the new one, and each has every message."""
    directory = place.fresh()
    crashed: list[Path] = []
    steps.at_step = lambda: crashed.append(place.copied(directory))
    with steps.watching(monkeypatch):
        compact_file(str(directory / "forq.db"))
    assert len(crashed) > 5
    assert {whole(copy) for copy in [*crashed, directory]} == {place.old}
    steps.at_step = lambda: None
    refused = 0
    while steps.count >= steps.failing:
        directory = place.fresh()
        steps.failing += 1
        with steps.watching(monkeypatch):
            try:
                compact_file(str(directory / "forq.db"))
            except StorageOpenError:
                refused += 1
        assert list(directory.glob("*.partial*")) == []
        assert whole(directory) == place.old
        shutil.rmtree(directory)
    assert refused > 5
    print(f"{refused} of {steps.failing} refused")
