"""Migrations are ordered, checksummed and forward-only; a file that had others is refused."""

import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Applied, Migration, load, pending
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.check import backup_file, check_file, verify_backup
from forq_trio.storage.sqlite.files.open import open_database
from forq_trio.storage.sqlite.files.restore import restore_file
from support.batches import do
from support.words import send

NEVER_CHANGED = {
    "sqlite": {
        23: "e210179cbbbdce24b8d65938ef2636c17b0a70a00341b2a63ef463d1a5bdf4f4",
        24: "67bf67a4aeec803255806e0cf4b747facfce2ac556d1671ba14f6c020019ed95",
        25: "198d4c3b7ded754751715dd013bca5a7fe0472817de41bb3b92115a1f2f2f24b",
        26: "fdbb7c55b7d3134ce6700549bd33da2c02c0a4b4e8876bff6d928eb5f8e8b89f",
    },
    "postgres": {
        11: "ae51096b9a8c84ce43f65e1ab35d26795aef53176ad41cc8f597476398b3854f",
        12: "fa2dc82397a991478b6a4fcd0587ddc3992227021eedba847c96e80291429103",
        13: "96e5863a8187e0fbfe43c01d23d7a7bc9ee860e726b10b26b4fae97f77319dda",
    },
}
"""The checksums of the migrations that databases have had; a later one is added with its release."""
LATEST = migrations.KNOWN[-1].version
SAME = "a" * 64
KNOWN = (
    Migration(3, "baseline", f"SELECT 3\n-- same as: {SAME}\n;"),
    Migration(4, "four", "SELECT 4"),
    Migration(5, "five", "SELECT 5"),
)
THREE, FOUR, FIVE = (Applied(migration.version, migration.name, migration.checksum) for migration in KNOWN)
STEPS = [Applied(1, "one", "1"), Applied(2, "two", "2"), Applied(3, "three", SAME)]
"""Of development, before there was a baseline."""


@pytest.mark.parametrize("engine", NEVER_CHANGED)
def test_what_databases_have_had_is_as_it_was(engine) -> None:
    never_changed = NEVER_CHANGED[engine]
    known = load(f"forq_trio.storage.{engine}")
    assert {each.version: each.checksum for each in known if each.version in never_changed} == never_changed
    assert known[0].version in never_changed


@pytest.mark.parametrize(("engine", "column"), [("sqlite", 0), ("postgres", 1)])
def test_every_migration_of_a_release_has_its_checksum(engine, column) -> None:
    """docs/upgrading.md says which tables each release has."""
    page = (Path(__file__).parents[3] / "docs" / "upgrading.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+\.\d+\.\d+ \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    released = max(int(row[column]) for row in rows)
    assert released in NEVER_CHANGED[engine]
    known = load(f"forq_trio.storage.{engine}")
    assert {each.version for each in known if each.version <= released} == NEVER_CHANGED[engine].keys()


@pytest.mark.parametrize(
    ("applied", "due"),
    [
        ([], KNOWN),
        ([THREE], KNOWN[1:]),
        ([THREE, FOUR], KNOWN[2:]),
        ([THREE, FOUR, FIVE], ()),
        (STEPS, KNOWN[1:]),
        ([*STEPS, FOUR, FIVE], ()),
    ],
)
def test_what_is_missing_is_due_in_order(applied, due) -> None:
    assert pending("forq.db", KNOWN, applied) == due


@pytest.mark.parametrize(
    ("applied", "complaint"),
    [
        ([FOUR], "forq.db has had migration 4 but not migration 3"),
        ([*STEPS[:2], FOUR], "forq.db has had migration 4 but not migration 3"),
        ([THREE, FIVE], "forq.db has had migration 5 but not migration 4"),
        ([THREE, FOUR, FIVE, Applied(6, "new", "")], "forq.db was written by a newer version of forq-trio"),
        ([THREE._replace(checksum="0")], "forq.db has had a migration 3 .baseline. that differs"),
        ([THREE, FOUR._replace(checksum=SAME)], "forq.db has had a migration 4 .four. that differs"),
        (STEPS[:1], "forq.db was written by an unreleased version .* version 1 .* releases begin with 3: "),
        (STEPS[:2], "forq.db was written by an unreleased version .* version 2 .* releases begin with 3: "),
    ],
)
def test_another_history_is_refused(applied, complaint) -> None:
    with pytest.raises(StorageOpenError, match=complaint):
        pending("forq.db", KNOWN, applied)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["1_one.sql"], "not named like a migration"),
        (["0001_one.sql", "0003_three.sql"], "not numbered one after the other"),
    ],
)
def test_files_that_are_not_a_sequence_are_refused(tmp_path, monkeypatch, names, complaint) -> None:
    (tmp_path / "some_engine" / "migrations").mkdir(parents=True)
    for name in names:
        (tmp_path / "some_engine" / "migrations" / name).write_text("SELECT 1;")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=complaint):
        load("some_engine")


def test_a_new_file_is_marked_and_a_second_start_changes_nothing(path, read) -> None:
    open_database(path, "full").close()
    first = read(path, "SELECT * FROM migrations")
    assert [row[:3] for row in first] == [
        (each.version, each.name, each.checksum) for each in migrations.KNOWN
    ]
    open_database(path, "full").close()
    assert read(path, "SELECT * FROM migrations") == first
    assert read(path, "PRAGMA application_id") == [(migrations.APPLICATION_ID,)]
    assert read(path, "PRAGMA user_version") == [(migrations.KNOWN[-1].version,)]


def test_a_migration_that_fails_leaves_nothing(path) -> None:
    connection = apsw.Connection(path)
    faulty = Migration(1, "faulty", "CREATE TABLE made_before_the_fault (x); SELECT * FROM not_there;")
    with pytest.raises(apsw.SQLError), migrations.immediate(connection):
        migrations.apply(connection, [faulty])
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == []
    assert connection.pragma("application_id") == 0
    connection.close()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("UPDATE migrations SET checksum = 'changed'", "differs from the one known here"),
        (
            "INSERT INTO migrations VALUES (99, 'later', '', 0)",
            f"had migration 99 but not migration {LATEST + 1}",
        ),
        (f"INSERT INTO migrations VALUES ({LATEST + 1}, 'later', '', 0)", "newer version of forq-trio"),
        ("DROP TABLE queue_counts", "tables of forq-trio are missing"),
    ],
)
def test_a_file_with_another_history_is_left_untouched(path, fingerprint, change, complaint) -> None:
    open_database(path, "full").close()
    connection = apsw.Connection(path)
    connection.execute(change)
    connection.close()
    before = fingerprint()
    with pytest.raises(StorageOpenError, match=complaint):
        open_database(path, "full")
    assert fingerprint() == before


def test_a_file_and_a_backup_of_an_earlier_version_are_sound_and_restored(
    path, tmp_path, monkeypatch
) -> None:
    """An operator upgrades, and then needs the backup of the night before."""
    backup, restored = (str(tmp_path / name) for name in ("backup.db", "restored.db"))
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        do(engine, send("before"))
    later = Migration(migrations.KNOWN[-1].version + 1, "later", "DELETE FROM queues")
    monkeypatch.setattr(migrations, "KNOWN", (*migrations.KNOWN, later))
    backup_file(path, backup)
    for report in (check_file(path), verify_backup(backup)):
        assert (report.problems, report.messages, report.schema_version) == ([], 1, later.version - 1)
        assert report.is_older
    restore_file(backup, restored)
    with closing(SqliteEngine(restored, EngineSettings(), "normal")) as engine:
        assert do(engine, send("new")).sequence == 2
    report = check_file(restored)
    assert (report.problems, report.messages, report.schema_version) == ([], 2, later.version)
    assert not report.is_older


def test_a_file_of_a_newer_version_is_not_called_damaged(path) -> None:
    open_database(path, "full").close()
    newer = Migration(migrations.KNOWN[-1].version + 1, "later", "SELECT 1")
    with closing(apsw.Connection(path)) as connection, migrations.immediate(connection):
        migrations.apply(connection, [newer])
    with pytest.raises(StorageOpenError, match="newer version of forq-trio"):
        check_file(path)
