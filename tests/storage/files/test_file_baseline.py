"""Files from before the first release: the last version is brought up to date, earlier ones are refused."""

import re
from contextlib import closing

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.check import check_file, verify_backup
from forq_trio.storage.sqlite.files.open import migrate_file, open_database
from support.batches import do
from support.rich import fill
from support.unreleased import SQLITE_VERSION, make_unreleased_file
from support.words import ack, claim, contents, send

SCHEMA = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name"
COLUMNS = """
SELECT tables.name, columns.name, columns.type, "notnull", dflt_value, pk, hidden, strict, wr
FROM pragma_table_list AS tables, pragma_table_xinfo(tables.name) AS columns
WHERE tables.schema = 'main' AND tables.name NOT LIKE 'sqlite%' ORDER BY 1, 2
"""
INDEXES = "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type <> 'table' ORDER BY 1, 2"
GENERATED = "SELECT sql FROM sqlite_schema WHERE name = 'messages'"
LATEST = migrations.KNOWN[-1].version
ROWS = ("forgotten_sequence", "history_ends", "consumers_forgotten")


def schema_of(path: str, read) -> dict[str, list[object]]:
    """What two schemas have in common if their columns are in another order and have other comments."""
    ((table,),) = read(path, GENERATED)
    found = re.search(r"GENERATED ALWAYS AS .* VIRTUAL", re.sub(r"--.*", "", table), re.DOTALL)
    assert found is not None
    return {
        "columns": read(path, COLUMNS),
        "indexes": read(path, INDEXES),
        "due": found[0].split(),
        **{each: read(path, f"SELECT * FROM {each}") for each in ROWS},
    }


@pytest.fixture
def unreleased(path) -> str:
    """A file at the last version before the first release."""
    make_unreleased_file(path)
    return path


def opened(path: str) -> closing[SqliteEngine]:
    return closing(SqliteEngine(path, EngineSettings(history=True, events=True), "normal"))


def test_a_new_file_has_the_same_tables(unreleased, tmp_path, read) -> None:
    new = str(tmp_path / "new.db")
    for path in (new, unreleased):
        open_database(path, "full").close()
    assert schema_of(new, read) == schema_of(unreleased, read)


def test_it_has_the_tables_of_the_baseline(unreleased, tmp_path, read, monkeypatch) -> None:
    monkeypatch.setattr(migrations, "KNOWN", migrations.KNOWN[:1])
    before = read(unreleased, SCHEMA), read(unreleased, "SELECT * FROM migrations")
    assert migrate_file(unreleased).now == SQLITE_VERSION
    assert (read(unreleased, SCHEMA), read(unreleased, "SELECT * FROM migrations")) == before
    new = str(tmp_path / "new.db")
    open_database(new, "full").close()
    assert schema_of(new, read) == schema_of(unreleased, read)


def test_it_opens(unreleased) -> None:
    migrated = migrate_file(unreleased)
    assert (migrated.before, migrated.now) == (SQLITE_VERSION, LATEST)
    with opened(unreleased) as engine:
        assert do(engine, send("first")).sequence == 1
    report = check_file(unreleased)
    assert (report.problems, report.messages, report.schema_version) == ([], 1, LATEST)
    assert not report.is_older


def test_it_takes_all_that_can_be_stored(unreleased) -> None:
    """Its columns are in another order than those of a new file."""
    with opened(unreleased) as engine:
        filled = fill(engine)
    with opened(unreleased) as engine:
        assert do(engine, ack(filled.leased)) == (True,)
        do(engine, send("last", priority=1_000))
        assert contents(do(engine, claim(most=1))) == ["last"]
    assert check_file(unreleased).problems == []


def test_its_next_migration_is_that_of_a_new_file(unreleased, tmp_path, read, monkeypatch) -> None:
    later = Migration(LATEST + 1, "later", "ALTER TABLE messages ADD COLUMN later INTEGER")
    monkeypatch.setattr(migrations, "KNOWN", (*migrations.KNOWN, later))
    new = str(tmp_path / "new.db")
    for path in (unreleased, new):
        open_database(path, "full").close()
    assert migrate_file(unreleased).before == LATEST + 1
    assert schema_of(new, read) == schema_of(unreleased, read)


@pytest.mark.parametrize("version", [1, SQLITE_VERSION - 1])
@pytest.mark.parametrize("look", [migrate_file, check_file, verify_backup])
def test_an_earlier_one_is_refused_and_left_untouched(path, fingerprint, version, look) -> None:
    make_unreleased_file(path, version)
    before = fingerprint()
    with pytest.raises(StorageOpenError) as refused:
        look(path)
    assert str(refused.value) == (
        f"{path} was written by an unreleased version of forq-trio, at version {version} of its tables; releases begin "
        "with 23: have the last unreleased version bring it there, or use another database"
    )
    assert fingerprint() == before


def test_one_whose_last_step_differs_is_refused(unreleased) -> None:
    with closing(apsw.Connection(unreleased)) as connection:
        connection.execute("UPDATE migrations SET checksum = 'x' WHERE version = ?", (SQLITE_VERSION,))
    with pytest.raises(StorageOpenError, match=r"had a migration 23 \(acknowledged_numbers\) that differs"):
        open_database(unreleased, "full")
