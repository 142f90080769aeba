"""The PostgreSQL of the tests: it is real, a database is a test's own, and it comes back after a restart."""

from pathlib import Path

import psycopg
import pytest

from support.postgres import Postgres, closed_to_others


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def test_a_database_is_empty_and_of_one_test(postgres, database) -> None:
    other = postgres.new_database()
    ask(database, "CREATE TABLE mine (x int)")
    assert ask(other, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'") == 0
    postgres.drop_database(other)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(other, "SELECT 1")


def test_a_restart_keeps_what_is_committed(postgres: Postgres, database) -> None:
    ask(database, "CREATE TABLE mine (x int)")
    ask(database, "INSERT INTO mine VALUES (7)")
    postgres.restart()
    assert ask(database, "SELECT x FROM mine") == 7


def test_a_directory_that_others_cannot_enter_is_named(tmp_path) -> None:
    bin = tmp_path / "install" / "bin"
    bin.mkdir(parents=True)
    (tmp_path / "install").chmod(0o700)
    tmp_path.chmod(0o755)
    closed = [each for each in (tmp_path / "install", *tmp_path.parents) if not each.stat().st_mode & 0o001]
    assert closed_to_others(bin) == closed[-1]
    assert closed_to_others(Path("/")) is None
