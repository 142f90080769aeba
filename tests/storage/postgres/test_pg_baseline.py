"""Databases from before the first release: the last version goes on as it is, earlier ones are refused."""

from contextlib import closing

import psycopg
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.open import move
from forq_trio.storage.postgres import open as module
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do
from support.rich import fill
from support.unreleased import POSTGRES_VERSION, make_unreleased_database, make_unreleased_file
from support.words import ack, claim, contents, send

COLUMNS = """
SELECT relname, attname, format_type(atttypid, atttypmod), collname, attnotnull, attidentity, attgenerated,
    pg_get_expr(adbin, adrelid)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE relnamespace = 'forq'::regnamespace AND relkind = 'r' ORDER BY 1, 2
"""
RELATIONS = """
SELECT relname, relkind, relpersistence, relreplident, relacl::text FROM pg_class
WHERE relnamespace = 'forq'::regnamespace ORDER BY 1
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'forq' ORDER BY 1"
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'forq'::regnamespace AND contype <> 'n' ORDER BY 1, 2
"""
FUNCTIONS = """
SELECT oid::regprocedure::text, pg_get_functiondef(oid), proacl::text FROM pg_proc
WHERE pronamespace = 'forq'::regnamespace ORDER BY 1
"""
RIGHTS = "SELECT nspacl::text FROM pg_namespace WHERE nspname = 'forq'"
ROWS = """
SELECT last_seq, gone, last, generation, number
FROM forq.forgotten_sequence, forq.history_ends, forq.consumers_forgotten
"""
ALL = (COLUMNS, RELATIONS, INDEXES, CONSTRAINTS, FUNCTIONS, RIGHTS, ROWS)
RECORD = "SELECT version, name, checksum FROM forq.migrations ORDER BY version"


@pytest.fixture
def unreleased(database) -> str:
    """A database at the last version before the first release."""
    make_unreleased_database(database)
    return database


def found(url: str, *statements: str) -> list[object]:
    with psycopg.connect(url) as connection:
        return [connection.execute(each).fetchall() for each in statements]  # type: ignore[arg-type]


def opened(url: str) -> closing[PostgresEngine]:
    return closing(PostgresEngine(url, EngineSettings(history=True, events=True), "normal"))


def test_a_new_database_has_the_same_tables(unreleased, postgres) -> None:
    """In another order of their columns."""
    new = postgres.new_database()
    try:
        module.migrate(new)
        module.migrate(unreleased)
        for statement in ALL:
            assert found(new, statement) == found(unreleased, statement)
    finally:
        postgres.drop_database(new)


def test_once_migrated_it_opens_and_is_not_changed(unreleased) -> None:
    migrated = module.migrate(unreleased)
    assert (migrated.before, migrated.now) == (POSTGRES_VERSION, module.KNOWN[-1].version)
    before = found(unreleased, *ALL[:-1], RECORD)
    with opened(unreleased) as engine:
        filled = fill(engine)
    with opened(unreleased) as engine:
        assert do(engine, ack(filled.leased)) == (True,)
        do(engine, send("last", priority=1_000))
        assert contents(do(engine, claim(most=1))) == ["last"]
    assert found(unreleased, *ALL[:-1], RECORD) == before


def test_its_next_migration_is_that_of_a_new_database(unreleased, monkeypatch) -> None:
    later = Migration(module.KNOWN[-1].version + 1, "later", "ALTER TABLE queues ADD COLUMN later text")
    monkeypatch.setattr(module, "KNOWN", (*module.KNOWN, later))
    assert [module.migrate(unreleased).before for _ in range(2)] == [POSTGRES_VERSION, later.version]


def test_a_file_from_before_the_first_release_is_moved_there_and_back(unreleased, tmp_path) -> None:
    """Each side has its columns in its own order."""
    path, back = str(tmp_path / "forq.db"), str(tmp_path / "back.db")
    make_unreleased_file(path)
    with closing(SqliteEngine(path, EngineSettings(history=True, events=True), "normal")) as engine:
        fill(engine)
    there = move(f"sqlite:{path}", unreleased, lambda *_: None)
    again = move(unreleased, f"sqlite:{back}", lambda *_: None)
    moved = {each.name: each.rows for each in there.tables}
    assert moved == {each.name: each.rows for each in again.tables}
    assert moved["messages"] == 43


@pytest.mark.parametrize("version", [1, POSTGRES_VERSION - 1])
def test_an_earlier_one_is_refused_and_left_untouched(database, version) -> None:
    make_unreleased_database(database, version)
    before = found(database, *ALL, RECORD)
    with pytest.raises(StorageOpenError) as refused:
        module.migrate(database)
    assert str(refused.value).endswith(
        f" was written by an unreleased version of forq-trio, at version {version} of its tables; releases begin with "
        "11: have the last unreleased version bring it there, or use another database"
    )
    assert found(database, *ALL, RECORD) == before
