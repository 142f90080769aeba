"""Promise 1 against power cuts: after any cut the file opens, and holds exactly what some commit left behind.

With `full` that is the last commit that was answered, or the one under way; with `normal` an earlier one may be all
there is, but never half of one and never a damaged file. FORQ_TEST_EFFORT sets how many cuts are tried, FORQ_TEST_SEED
repeats a run.
"""

import random
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.engine import SqliteEngine
from reliability.power_cut.disk import Disk
from reliability.power_cut.history import SETTINGS, Moment, live, stored
from support.effort import count, many_trials

CUTS = count("power_cuts")
CUTS_PER_LIFE = 50
COMMITS = 60


class Loss(AssertionError):
    """Something that was answered is gone, or the file is damaged."""


def cut_and_look(disk: Disk, moments: list[Moment], cut: int, rng: random.Random, durability: str) -> int:
    """How many answered commits were lost by a cut after `cut` operations. Raises Loss for what must never be."""
    answered = max(place for place, moment in enumerate(moments) if moment.answered_at <= cut)
    with tempfile.TemporaryDirectory() as directory:
        disk.after_cut(cut, Path(directory), rng)
        path = Path(directory) / "forq.db"
        try:
            with closing(SqliteEngine(str(path), SETTINGS, durability)):
                found = stored(path)
        except (StorageOpenError, apsw.Error, UnicodeDecodeError) as error:
            raise Loss(f"the file cannot be read: {error}") from error
        with closing(apsw.Connection(str(path))) as connection:
            try:
                whole = connection.execute("PRAGMA integrity_check").get == "ok"
            except apsw.CorruptError:
                whole = False
            if not whole:
                raise Loss("the file is damaged")
    for place in range(min(answered + 1, len(moments) - 1), -1, -1):
        if moments[place].state == found:
            return max(0, answered - place)
    raise Loss("what is there was never stored so")


def lives(durability: str, cuts: int, seed: int):
    """Random lives, and random moments to cut the power, as (disk, moments, cut, rng)."""
    rng = random.Random(seed)
    for done in range(0, cuts, CUTS_PER_LIFE):
        with tempfile.TemporaryDirectory() as directory, Disk().recording() as disk:
            moments = live(disk, Path(directory) / "forq.db", durability, COMMITS, rng)
        for _ in range(min(CUTS_PER_LIFE, cuts - done)):
            yield disk, moments, rng.randint(0, len(disk.operations)), rng


@many_trials
def test_full_loses_nothing_that_was_answered(seed) -> None:
    for disk, moments, cut, rng in lives("full", CUTS, seed):
        assert cut_and_look(disk, moments, cut, rng, "full") == 0, f"cut after {cut} operations"


@many_trials
def test_normal_loses_only_whole_commits_from_the_end(seed) -> None:
    lost = [
        cut_and_look(disk, moments, cut, rng, "normal")
        for disk, moments, cut, rng in lives("normal", CUTS, seed)
    ]
    assert max(lost) > 0, "the disk never lost anything: it does not cut"


@many_trials
def test_without_syncs_the_loss_is_found(seed) -> None:
    """The test of the test: an engine that never syncs must be caught."""
    caught = 0
    for disk, moments, cut, rng in lives("none", count("power_cuts_without_syncs"), seed):
        try:
            caught += cut_and_look(disk, moments, cut, rng, "none") > 0
        except Loss:
            caught += 1
    assert caught > 0


@pytest.mark.parametrize("keep", [0.0, 1.0])
def test_the_disk_gives_back_what_was_synced_and_no_more_than_was_written(keep, tmp_path) -> None:
    class Always(random.Random):
        def choice(self, seq):
            return keep

        def random(self):
            return 1.0 - keep if keep == 0.0 else 0.0

    with Disk().recording() as disk, closing(apsw.Connection(str(tmp_path / "a.db"))) as connection:
        connection.pragma("journal_mode", "WAL")
        connection.pragma("synchronous", "FULL")
        connection.execute("CREATE TABLE t (x)")
        synced = len(disk.operations)
        connection.pragma("synchronous", "OFF")
        connection.execute("INSERT INTO t VALUES (1)")
        end = len(disk.operations)
    assert "sync" not in [operation.kind for operation in disk.operations[synced:end]]
    found = tmp_path / "found"
    found.mkdir()
    disk.after_cut(end, found, Always())
    with closing(apsw.Connection(str(found / "a.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM t").get == keep
