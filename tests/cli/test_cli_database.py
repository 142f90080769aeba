"""`forq migrate`, and `forq serve` on what it refuses: one sentence, exit code 2, no password."""

import json
import re
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from forq_trio.cli.exits import Exit
from forq_trio.storage.postgres.open import KNOWN as KNOWN_TO_POSTGRES
from forq_trio.storage.sqlite.files.migrations import KNOWN
from support.old_files import make_version_1

NOW, PG_NOW = len(KNOWN), len(KNOWN_TO_POSTGRES)
SECRET = "hunter2"


def test_a_file_is_brought_up_to_date_once(forq, tmp_path: Path):
    path = str(tmp_path / "old.db")
    make_version_1(path)
    for said in (f"brought up to date: from version 1 to {NOW}", f"up to date: version {NOW}"):
        done = forq("migrate", "--db", path)
        assert (done.code, done.out, done.err) == (0, f"{path} is {said}\n", "")


def test_the_schema_in_postgresql_is_made_once(forq, database, monkeypatch):
    monkeypatch.setenv("FORQ_DB_URL", database)
    done = [json.loads(forq("migrate", "--json").out) for _ in range(2)]
    assert [(each["before"], each["version"]) for each in done] == [(0, PG_NOW), (PG_NOW, PG_NOW)]


@pytest.fixture(params=["migrate", "serve"])
def refused(request, forq, monkeypatch, logging_as_before):
    """Runs the command on a database that it refuses; returns its sentence."""
    monkeypatch.setenv("FORQ_API_ADDR", "127.0.0.1:0")
    monkeypatch.setenv("FORQ_UI_ENABLED", "false")

    def run(url: str) -> str:
        monkeypatch.setenv("FORQ_DB_URL", url)
        done = forq(request.param)
        assert (done.code, done.out, done.err.count("\n")) == (Exit.USAGE, "", 1), done
        assert SECRET not in done.err
        return done.err

    return run


def test_a_server_that_is_not_there(refused):
    assert "queue at 127.0.0.1 cannot be used" in refused(f"postgresql://forq:{SECRET}@127.0.0.1:1/queue")


def test_a_typo_in_the_url(refused):
    assert "sslmodus" in refused(f"postgresql://forq:{SECRET}@127.0.0.1:1/queue?sslmodus=require")


def test_a_schema_that_is_not_ours(refused, database):
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA forq; CREATE TABLE forq.orders (id bigint)")
    assert re.search("has a schema `forq` that is not ours: .*; name another database", refused(database))


def test_a_schema_of_a_newer_version(forq, refused, database, monkeypatch):
    monkeypatch.setenv("FORQ_DB_URL", database)
    assert forq("migrate").code == 0
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO forq.migrations VALUES (%s, 'later', 'x')", [PG_NOW + 1])
    assert re.search("written by a newer version of forq-trio: .*; use the newer version", refused(database))


def test_a_role_without_rights(refused, database):
    with psycopg.connect(database) as connection:
        connection.execute(f"DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD '{SECRET}'")
    said = refused(database.replace("postgres@", f"reader:{SECRET}@", 1))
    assert re.search("permission denied for .*; let the role own the database", said)


def test_a_file_that_is_not_there_is_not_made(forq, tmp_path: Path):
    path = tmp_path / "typo.db"
    done = forq("migrate", "--db", str(path))
    assert (done.code, done.err) == (Exit.USAGE, f"forq: {path} does not exist\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_newer_version(forq, tmp_path: Path):
    path = str(tmp_path / "new.db")
    make_version_1(path)
    assert forq("migrate", "--db", path).code == 0
    with closing(apsw.Connection(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (?, 'later', 'x', 0)", [NOW + 1])
    done = forq("migrate", "--db", path)
    assert (done.code, done.err.count("\n")) == (Exit.USAGE, 1)
    assert "was written by a newer version" in done.err


def test_two_databases_are_one_too_many(forq, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("FORQ_DB_URL", "postgresql:///queue")
    done = forq("migrate", "--db", str(tmp_path / "a.db"))
    assert done.code == Exit.USAGE
    assert "FORQ_DB_URL: names another database than FORQ_DB_PATH" in done.err
