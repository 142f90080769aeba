"""Promise 1 on a disk that fails: at whichever operation, the engine goes on as if it had not been asked, or it ends,
for nobody knows; and the file holds exactly what was committed.

Every 150th operation of a life fails (FORQ_TEST_EFFORT: every 23rd and less), others in each run; in the soak as many
as there is time for. Each fails alone, and with all that come after it until the engine has refused something.
"""

import tempfile
from collections.abc import Iterator
from math import inf
from pathlib import Path
from random import Random
from time import monotonic

import apsw
import pytest

from forq_trio.model.commands import Claim, Produce
from forq_trio.model.errors import StorageFull, StorageOpenError, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import Batch
from forq_trio.storage.sqlite.engine import SqliteEngine
from reliability.disk.faulty import Fault, FaultyDisk, Kind
from reliability.disk.life import SETTINGS, Life
from reliability.power_cut.history import T0, stored
from support.effort import count, many_trials, soak_seconds

STRIDE = count("disk_fault_stride")


def live(directory: Path, fault: Fault | None, *, with_syncs: bool = False) -> tuple[FaultyDisk, Life]:
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        FaultyDisk(with_syncs=with_syncs).in_use() as disk,
    ):
        disk.arm(fault)
        life = Life(disk, Path(place))
        life.run()
        disk.heal()
    return disk, life


def faults(operations: int, first: int, stride: int) -> Iterator[Fault]:
    for at in range(first, operations + 1, stride):
        for kind in Kind:
            yield Fault(at, kind, lasting=False)
            yield Fault(at, kind, lasting=True)


def try_faults(directory: Path, first: int, stride: int, rng: Random, seconds: float = inf) -> None:
    """Lives with a fault, in random order, until there are no more or the time is over."""
    calm, life = live(directory, None)
    assert life.refusals == life.unknown == 0
    runs = refusals = 0
    kinds = set()
    left = list(faults(len(calm.seen), first, stride))
    rng.shuffle(left)
    end = monotonic() + seconds
    while left and monotonic() < end:
        fault = left.pop()
        try:
            disk, life = live(directory, fault)
        except BaseException as error:
            error.add_note(f"{fault}")
            raise
        assert life.unknown == 0, f"{fault}: only a sync leaves anybody not knowing"
        runs += 1
        refusals += life.refusals
        kinds.update(operation.name for operation in disk.failed)
    print(f"{runs} lives of {len(calm.seen)} operations with a fault, {refusals} refusals; {len(left)} left")
    assert refusals > runs / 4
    assert {"write", "read", "size"} <= kinds


@many_trials
def test_after_any_fault_what_was_committed_is_there_and_no_more(quick_path, rng) -> None:
    try_faults(quick_path, rng.randrange(1, STRIDE + 1), STRIDE, rng)


@pytest.mark.soak
def test_after_every_fault_what_was_committed_is_there_and_no_more(quick_path, rng) -> None:
    try_faults(quick_path, 1, 1, rng, soak_seconds())


@pytest.mark.tier2
def test_a_sync_that_fails_in_a_commit_leaves_the_outcome_unknown_and_all_or_nothing_on_disk(
    quick_path,
) -> None:
    """The life begins again after it, as the process does."""
    calm, _ = live(quick_path, None, with_syncs=True)
    unknown = refusals = 0
    for at in range(1, len(calm.seen) + 1):
        disk, life = live(quick_path, Fault(at, Kind.IO, lasting=False), with_syncs=True)
        assert len(disk.failed) == 1
        unknown += life.unknown
        refusals += life.refusals
    assert unknown >= 6  # one for each batch of a life
    assert unknown + refusals == len(
        calm.seen
    )  # the others happen at the start, in checkpoints and in backups


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.QUOTA])
def test_a_write_of_a_commit_that_finds_no_room_is_known_to_have_changed_nothing(quick_path, kind) -> None:
    path = quick_path / "forq.db"
    with FaultyDisk().in_use() as disk:
        engine = SqliteEngine(str(path), SETTINGS)
        engine.execute_batch(Batch([Produce("q", NewMessage("kept"))], T0))
        engine.commit()
        before = stored(path)
        engine.execute_batch(Batch([Produce("q", NewMessage("x" * 9_000))], T0))
        disk.arm(Fault(1, kind, lasting=True))
        with pytest.raises(StorageFull):
            engine.commit()
        disk.heal()
        assert stored(path) == before
        assert engine.snapshot().counts["q"].ready == 1
        engine.execute_batch(Batch([Claim("q", 5, 1_000)], T0))
        assert engine.commit()
        engine.close()


def test_what_fell_due_in_a_batch_that_failed_is_still_due(quick_path) -> None:
    """The time of the next due message is put back, too."""
    with FaultyDisk().in_use() as disk:
        engine = SqliteEngine(str(quick_path / "forq.db"), SETTINGS)
        engine.execute_batch(Batch([Produce("q", NewMessage("later", delay_ms=100))], T0))
        engine.commit()
        result = engine.execute_batch(Batch([], T0 + 100))
        assert result.next_due_ms is not None
        assert result.next_due_ms > T0 + 100
        disk.arm(Fault(1, Kind.IO, lasting=False))
        with pytest.raises(StorageUnavailable):
            engine.commit()
        disk.heal()
        assert engine.execute_batch(Batch([], T0 + 100)).woken == {"q"}
        engine.commit()
        engine.close()


def test_the_index_of_the_log_has_its_space_beforehand(quick_path) -> None:
    """Without it a full disk is found only after the sync of a commit, when nobody can say any more what holds."""
    with FaultyDisk().in_use() as disk:
        engine = SqliteEngine(str(quick_path / "forq.db"), SETTINGS)
        disk.is_full = lambda operation: operation.file == "-shm"
        for _ in range(30):
            messages = [Produce("q", NewMessage("x" * 200_000)) for _ in range(4)]
            engine.execute_batch(Batch(messages, T0))
            assert engine.commit()
        assert engine.log.pages() > 4_096 + 1_000
        engine.close()


@pytest.mark.parametrize("name", ["forq.db", "forq.db-wal", "forq.db-shm"])
def test_files_that_can_only_be_read_are_refused_at_the_start(quick_path, name) -> None:
    """SQLite would open them, and then refuse every write."""
    path = quick_path / "forq.db"
    SqliteEngine(str(path), SETTINGS).close()
    with FaultyDisk().in_use() as disk:
        disk.read_only = name
        with pytest.raises(StorageOpenError, match="cannot be"):
            SqliteEngine(str(path), SETTINGS)
        disk.read_only = None
        SqliteEngine(str(path), SETTINGS).close()


def test_the_disk_fails_what_it_is_told_to(quick_path) -> None:
    """The test of the test."""
    with FaultyDisk().in_use() as disk:
        connection = apsw.Connection(str(quick_path / "a.db"))
        connection.pragma("journal_mode", "WAL")
        connection.execute("CREATE TABLE t (x)")
        for kind, error in ((Kind.FULL, apsw.FullError), (Kind.IO, apsw.Error), (Kind.QUOTA, apsw.IOError)):
            disk.arm(Fault(1, kind, lasting=True))
            with pytest.raises(error):
                connection.execute("INSERT INTO t VALUES (1)")
            assert disk.failed
            disk.heal()
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT count(*) FROM t").get == 1
        connection.close()
