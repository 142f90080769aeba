"""The look at the database's server: how long a snapshot is held, what is logged once, what a failed look leaves."""

from collections.abc import AsyncIterator
from contextlib import closing

import psycopg
import pytest

from forq_trio.jobs.database_watch import DatabaseWatch
from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine

OLD_SECONDS = limits.SNAPSHOT_HELD_MS / 1_000


class Seconds:
    """A clock that the test sets."""

    value = 1_000.0

    def __call__(self) -> float:
        return self.value


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
async def watch(empty_tables, seconds) -> AsyncIterator[DatabaseWatch]:
    with closing(open_engine(empty_tables, EngineSettings(), "normal")) as engine:
        readers = ReaderPool(engine.open_reader, size=1)
        try:
            yield DatabaseWatch(readers, seconds)
        finally:
            readers.close()


def dump(database: str, name: str = "dumps") -> psycopg.Connection:
    """A connection that keeps a snapshot."""
    connection = psycopg.connect(database, application_name=name)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute("SELECT 1")
    return connection


def told(caplog) -> list[str]:
    return [text for record in caplog.records if "database." in (text := record.getMessage())]


async def test_a_snapshot_is_as_old_as_the_first_look_that_found_it(watch, seconds, empty_tables, caplog):
    caplog.set_level("INFO")
    assert await watch.check() == "no old snapshot"
    assert watch.state.snapshot is None
    with dump(empty_tables) as dumps:
        await watch.check()
        assert watch.state.snapshot.keeper.name == "dumps"
        assert watch.state.old_snapshot is None
        seconds.value += OLD_SECONDS
        with dump(empty_tables, "a later one"):
            assert await watch.check() == f"an old snapshot: {watch.state.snapshot.keeper.words}"
            assert watch.state.old_snapshot.held_ms == limits.SNAPSHOT_HELD_MS
            seconds.value += 12
            await watch.check()
            assert watch.state.old_snapshot.held_ms == limits.SNAPSHOT_HELD_MS + 12_000
            (line,) = told(caplog)
            assert "database.snapshot_held" in line
            assert f"dumps (pid {dumps.info.backend_pid}), idle in transaction" in line
            assert "SELECT" not in line
            dumps.rollback()
            await watch.check()  # the later one has been seen for 12 s only
            assert (watch.state.snapshot.keeper.name, watch.state.old_snapshot) == ("a later one", None)
    assert ["snapshot_held" in told(caplog)[0], "snapshot_ended" in told(caplog)[1]] == [True, True]
    await watch.check()
    assert len(told(caplog)) == 2


async def test_a_snapshot_that_moves_on_does_not_grow_old(watch, seconds, empty_tables):
    with dump(empty_tables) as moves, psycopg.connect(empty_tables, autocommit=True) as writes:
        await watch.check()
        seconds.value += 10 * OLD_SECONDS
        moves.rollback()
        writes.execute("SELECT pg_current_xact_id()")
        moves.execute("SELECT 1")
        await watch.check()
        assert watch.state.snapshot.keeper.name == "dumps"
        assert watch.state.old_snapshot is None


async def test_after_a_look_that_failed_nothing_is_said(watch, empty_tables):
    await watch.check()
    assert watch.state.reading.connections_ours == 2
    with psycopg.connect(empty_tables, autocommit=True) as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'forq' AND datname = current_database()"
        )
    with pytest.raises(StorageUnavailable):
        await watch.check()
    assert watch.state is None
    await watch.check()
    assert watch.state.reading.connections_ours == 1  # the writer did not ask yet


async def test_a_file_has_no_server():
    with closing(open_engine("memory:", EngineSettings(), "normal")) as engine:
        readers = ReaderPool(engine.open_reader, size=1)
        watch = DatabaseWatch(readers)
        assert await watch.check() is None
        assert watch.state is None
        readers.close()
