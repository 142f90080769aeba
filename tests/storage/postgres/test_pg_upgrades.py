"""Processes of two versions at once: the older one goes on where a migration only added something, and else says so."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from forq_trio.model.commands import Configure, Ping
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.postgres import open as module
from forq_trio.storage.postgres.dialect import SQL
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.postgres.open import migrate
from support.actors import T0
from support.batches import do, run
from support.processes import WAIT_SECONDS_MAX
from support.words import claim, contents, send

FENCE = "ALTER TABLE batches_2 RENAME TO batches_3;"
ADD_TO_ALL = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'forq'
    LOOP EXECUTE format('ALTER TABLE forq.%I ADD COLUMN later text', name); END LOOP;
END $$
"""

Open = Callable[[], PostgresEngine]


@pytest.fixture
def open_one(database) -> Open:
    """Opens an engine on a database of this test alone."""
    opened: list[PostgresEngine] = []

    def one() -> PostgresEngine:
        opened.append(PostgresEngine(database, EngineSettings(), "normal"))
        return opened[-1]

    yield one
    for engine in opened:
        engine.close()


@pytest.fixture
def newer(database, monkeypatch) -> Callable[[str], None]:
    """Brings the database up to date as a newer version would that has these migrations, too."""

    def migrated(*scripts: str) -> None:
        more = [
            Migration(module.KNOWN[-1].version + n, "later", each) for n, each in enumerate(scripts, start=1)
        ]
        with monkeypatch.context() as patched:
            patched.setattr(module, "KNOWN", (*module.KNOWN, *more))
            migrate(database)

    return migrated


def test_a_process_goes_on_behind_a_migration_that_adds_columns(open_one: Open, newer) -> None:
    a = open_one()
    do(a, send("before"))
    assert contents(do(a, claim())) == ["before"]
    newer(ADD_TO_ALL)
    do(a, send("behind"))
    assert contents(do(a, claim())) == ["behind"]
    with pytest.raises(StorageOpenError, match="written by a newer version of forq-trio"):
        open_one()


def test_no_statement_that_is_prepared_notices_a_column_that_is_added(open_one: Open, database) -> None:
    """PostgreSQL refuses a prepared statement whose result has another column than before: `SELECT *` among them."""
    open_one()
    prepared = [
        name for name, text in SQL.items() if not text.startswith(("DECLARE", "CREATE", "FETCH", "CLOSE"))
    ]
    with psycopg.connect(f"{database}&options=-csearch_path%3Dforq", autocommit=True) as connection:
        for name in prepared:
            assert connection.pgconn.prepare(name.encode(), SQL[name].encode()).status == 1, name
        connection.execute(ADD_TO_ALL)
        refused = {
            name: found.error_message
            for name in prepared
            if (found := connection.pgconn.describe_prepared(name.encode())).status != 1
        }
    assert refused == {}


def test_a_process_that_must_not_write_any_more_says_so(open_one: Open, newer) -> None:
    a = open_one()
    do(a, send("before"))
    newer(FENCE)
    for _ in range(2):
        for act in (lambda: do(a, send("lost")), lambda: do(a, claim()), lambda: run(a)):
            with pytest.raises(StorageUnavailable, match="a newer version of forq-trio") as refused:
                act()
            assert refused.value.message_for_callers
    assert a.snapshot().counts["q"].ready == 1


def test_a_setting_of_a_newer_version_is_not_ignored(open_one: Open, database) -> None:
    """Whoever does not know it would break it."""
    a = open_one()
    do(a, Configure("q", SettingsChange(lease_ms=1_000)))
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE forq.queues SET settings = '{\"later\": 1}'")
        connection.execute(
            "INSERT INTO forq.batches_2 SELECT max(version) + 1, 'newer-1', '' FROM forq.batches_2"
        )
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="the settings of queue q cannot be read") as refused:
            do(a, send("x"))
        assert "a newer version" in str(refused.value)


@pytest.mark.parametrize("is_new", [True, False])
def test_of_processes_that_start_at_once_one_migrates(database, monkeypatch, *, is_new: bool) -> None:
    if not is_new:
        migrate(database)
    later = Migration(module.KNOWN[-1].version + 1, "later", "CREATE TABLE later ()")
    monkeypatch.setattr(module, "KNOWN", (*module.KNOWN, later))
    ready = threading.Barrier(4)

    def start(number: int) -> str:
        ready.wait(WAIT_SECONDS_MAX)
        with closing(PostgresEngine(database, EngineSettings(), "normal")) as engine:
            do(engine, send(str(number)))
        return str(number)

    with ThreadPoolExecutor(4) as threads:
        sent = set(threads.map(start, range(4)))
    with closing(PostgresEngine(database, EngineSettings(), "normal")) as engine:
        assert set(contents(do(engine, claim(most=10)))) == sent
    with psycopg.connect(database) as connection:
        applied = connection.execute("SELECT version FROM forq.migrations ORDER BY version").fetchall()
    assert applied == [(each.version,) for each in module.KNOWN]


LONG = "DO $$ BEGIN WHILE NOT pg_try_advisory_xact_lock(1) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$"
"""A migration that lasts until nobody has this lock; it does not wait for it, for such a wait has a bound."""


def test_batches_wait_shortly_for_a_migration_and_are_refused_then(
    open_one: Open, newer, database, monkeypatch
) -> None:
    monkeypatch.setitem(module.SESSION, "lock_timeout", "50ms")
    a = open_one()
    with ThreadPoolExecutor(1) as thread, psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        migrating = thread.submit(newer, LONG)
        while not connection.execute("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchall():
            assert not migrating.done()
        with pytest.raises(StorageUnavailable, match="lock timeout"):
            do(a, send("meanwhile"))
        connection.execute("SELECT pg_advisory_unlock(1)")
        migrating.result(WAIT_SECONDS_MAX)
    do(a, send("behind"))
    assert contents(do(a, claim(most=5))) == ["behind"]


def test_a_migration_waits_for_the_batch_that_runs(open_one: Open, newer, database) -> None:
    a = open_one()
    a.execute_batch(Batch([send("first")], T0))
    with ThreadPoolExecutor(1) as thread, psycopg.connect(database, autocommit=True) as connection:
        migrating = thread.submit(newer, "DELETE FROM messages")
        while not connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
            assert not migrating.done()
        assert a.commit()
        migrating.result(WAIT_SECONDS_MAX)
    assert contents(do(a, claim())) == []


def test_a_migration_that_waits_for_a_table_lets_batches_run_and_tries_again(
    open_one: Open, newer, database, monkeypatch
) -> None:
    """As an export holds it, for minutes."""
    a = open_one()
    with psycopg.connect(database) as reading:
        reading.execute("SELECT count(*) FROM forq.messages")

        def pause(seconds: float) -> None:
            do(a, send("meanwhile"))
            reading.rollback()

        monkeypatch.setattr(module, "sleep", pause)
        newer("ALTER TABLE messages ADD COLUMN later text")
    assert contents(do(a, claim(most=5))) == ["meanwhile"]


def test_a_migration_that_waits_too_long_is_given_up_in_a_sentence(
    open_one: Open, newer, database, monkeypatch
) -> None:
    a = open_one()
    monkeypatch.setattr(module, "MIGRATION_WAIT_SECONDS_MAX", 0)
    with psycopg.connect(database) as reading:
        reading.execute("SELECT count(*) FROM forq.messages")
        with pytest.raises(StorageOpenError, match="cannot be brought up to date: another process"):
            newer("ALTER TABLE messages ADD COLUMN later text")
    assert do(a, Ping()) is None
