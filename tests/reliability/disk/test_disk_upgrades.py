"""Promise 1 when a file is brought up to date on a disk that fails: wherever it does, every message is still there, and
the next start goes on with them.

Every 23rd operation fails, others in each run; with FORQ_TEST_EFFORT=23 each of them does.
"""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.check import check_file
from reliability.disk.faulty import Fault, FaultyDisk, Kind
from support import old_files
from support.batches import run
from support.effort import count
from support.words import send

pytestmark = pytest.mark.tier2

MESSAGES = 60
LATER = Migration(
    migrations.KNOWN[-1].version + 1,
    "later",
    "ALTER TABLE messages ADD COLUMN later; UPDATE messages SET later = seq; CREATE INDEX by_later ON messages (later)",
)
STRIDE = count("upgrade_fault_stride")


def make_file_of_forq(path: str, rng: random.Random) -> None:
    old_files.make_forq_file(path, old_files.forq_rows(rng, MESSAGES))


def make_file_of_forq_with_a_log(path: str, rng: random.Random) -> None:
    old_files.make_forq_file(path, old_files.forq_rows(rng, MESSAGES), log=True)


def make_file_of_ours(path: str, rng: random.Random) -> None:
    """At the version of the first release."""
    with closing(SqliteEngine(path, EngineSettings())) as engine:
        run(engine, *(send(rng.choice(("", "grüße 🎃", "x" * 5_000))) for _ in range(MESSAGES)))


def start(place: Path) -> None:
    SqliteEngine(str(place / "forq.db"), EngineSettings()).close()


def found(place: Path) -> list[tuple[object, ...]]:
    """All that is there, once a server has started on it with a disk that works."""
    start(place)
    path = str(place / "forq.db")
    assert check_file(path).problems == []
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        messages = connection.execute("SELECT * FROM messages ORDER BY seq").fetchall()
        return messages + connection.execute("SELECT * FROM queue_counts ORDER BY queue").fetchall()


def copied(place: Path, name: str) -> Path:
    """The database as a crash now would leave it."""
    copy = place.parent / name
    shutil.copytree(place, copy, ignore=shutil.ignore_patterns("*-shm", "*.lock"))
    return copy


class Upgrade:
    """A file that is to be brought up to date, in copies, and what is in it then. operations: what that takes."""

    def __init__(self, disk: FaultyDisk, old: Path) -> None:
        self._disk = disk
        self._old = old
        self.expected = found(copied(old, "expected"))
        disk.arm(None)
        start(copied(old, "calm"))
        disk.heal()
        self.operations = disk.seen

    def survives(self, fault: Fault) -> bool:
        """Start on a disk with this fault, and then on one that works. Whether the first start went well."""
        place = copied(self._old, "place")
        self._disk.arm(fault)
        try:
            start(place)
        except StorageOpenError:
            started = False
        else:
            started = True
        self._disk.heal()
        assert list(place.glob("*.partial*")) == [], fault
        crashed = copied(place, "crashed")
        assert found(place) == self.expected, fault
        assert found(crashed) == self.expected, fault
        shutil.rmtree(place)
        shutil.rmtree(crashed)
        return started


@pytest.fixture
def upgrade(quick_path, rng, request, monkeypatch) -> Iterator[Upgrade]:
    """To a version with one more migration, which writes every message."""
    make = getattr(request, "param", make_file_of_forq)
    old = quick_path / "old"
    old.mkdir()
    make(str(old / "forq.db"), rng)
    monkeypatch.setattr(migrations, "KNOWN", (*migrations.KNOWN, LATER))
    with FaultyDisk().in_use() as disk:
        yield Upgrade(disk, old)


def faults(operations: int, first: int) -> Iterator[Fault]:
    for at in range(first, operations + 1, STRIDE):
        for kind in (Kind.FULL, Kind.IO):
            yield Fault(at, kind, lasting=False)
            yield Fault(at, kind, lasting=True)


@pytest.mark.parametrize(
    "upgrade", [make_file_of_forq, make_file_of_forq_with_a_log, make_file_of_ours], indirect=True
)
def test_an_upgrade_that_fails_leaves_every_message(upgrade, rng) -> None:
    to_try = list(faults(len(upgrade.operations), rng.randrange(1, STRIDE + 1)))
    refused = sum(not upgrade.survives(fault) for fault in to_try)
    print(f"{len(to_try)} starts with a fault, {refused} refused")
    assert refused > len(to_try) / 8


def test_files_beside_the_copy_that_cannot_be_deleted_by_sqlite_do_not_stay(upgrade) -> None:
    """It ignores that they are still there."""
    deletes = [at for at, operation in enumerate(upgrade.operations, start=1) if operation.name == "delete"]
    assert deletes
    for at in deletes:
        upgrade.survives(Fault(at, Kind.IO, lasting=False))
