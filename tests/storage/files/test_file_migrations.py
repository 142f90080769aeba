"""Migrations are ordered, checksummed and forward-only; a file that had others is refused."""

from hashlib import sha256

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.migrate import Applied, Migration, load, pending
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.open import open_database

RELEASED, DIGEST = 20, "db7da28df772776bf7329a6065325d22471d211af74353fc3e64765573fffdfb"
"""How many migrations databases have had that are in use, and the SHA-256 of their checksums: they never change."""
KNOWN = (Migration(1, "one", "SELECT 1"), Migration(2, "two", "SELECT 2"))
ONE, TWO = (Applied(migration.version, migration.name, migration.checksum) for migration in KNOWN)


def test_what_databases_have_had_is_as_it_was() -> None:
    checksums = "".join(migration.checksum for migration in migrations.KNOWN[:RELEASED])
    assert sha256(checksums.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(("applied", "due"), [([], KNOWN), ([ONE], KNOWN[1:]), ([ONE, TWO], ())])
def test_what_is_missing_is_due_in_order(applied, due) -> None:
    assert pending("forq.db", KNOWN, applied) == due


@pytest.mark.parametrize(
    ("applied", "complaint"),
    [
        ([TWO], "forq.db has had migration 2 but not migration 1"),
        ([ONE, TWO, Applied(3, "new", "")], "forq.db was written by a newer version of forq-trio"),
        ([ONE._replace(checksum="0")], "forq.db has had a migration 1 .one. that differs"),
    ],
)
def test_another_history_is_refused(applied, complaint) -> None:
    with pytest.raises(StorageOpenError, match=complaint):
        pending("forq.db", KNOWN, applied)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["1_one.sql"], "not named like a migration"),
        (["0001_one.sql", "0003_three.sql"], "not numbered 1, 2, 3"),
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
    assert [row[0] for row in first] == [migration.version for migration in migrations.KNOWN]
    open_database(path, "full").close()
    assert read(path, "SELECT * FROM migrations") == first
    assert read(path, "PRAGMA application_id") == [(migrations.APPLICATION_ID,)]
    assert read(path, "PRAGMA user_version") == [(len(first),)]


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
        ("DELETE FROM migrations WHERE version = 1", "has had migration 2 but not migration 1"),
        ("INSERT INTO migrations VALUES (99, 'later', '', 0)", "migration 99 but not|newer version"),
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
