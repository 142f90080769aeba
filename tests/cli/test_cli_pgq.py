"""`forq pgq`: tables in a database, and what is said where there is none."""

import psycopg
import pytest


def pgq(forq, database: str, *arguments: str, **more):
    return forq("pgq", *arguments, "--db-url", database, **more)


def test_a_table_is_made_checked_and_dropped(forq, database):
    for _ in range(2):
        done = pgq(forq, database, "create", "Orders/1")
        assert (done.code, done.out) == (0, "Orders/1 is there\n")
    assert pgq(forq, database, "check", "Orders/1").out == "Orders/1 has all that pgq needs\n"
    assert pgq(forq, database, "drop", "Orders/1").code == 2
    asked = pgq(forq, database, "drop", "Orders/1", terminal=True, stdin=b"n\n")
    assert asked.code == 1
    assert "Permanently delete the table Orders/1 with all its messages?" in asked.err
    assert asked.err.endswith("forq: nothing was removed\n")
    done = pgq(forq, database, "drop", "Orders/1", "--yes")
    assert (done.code, done.out) == (0, "Orders/1 is dropped\n")
    for arguments in (("drop", "Orders/1", "--yes"), ("check", "Orders/1")):
        done = pgq(forq, database, *arguments)
        assert (done.code, done.err) == (5, "forq: there is no table 'Orders/1' in the database\n")


def test_what_is_missing_is_named(forq, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE half (id uuid PRIMARY KEY, created_at timestamptz, payload jsonb)")
    for command in ("check", "create"):
        done = pgq(forq, database, command, "half")
        assert done.code == 1
        assert "the table 'half' lacks columns: started_at, locked_until, " in done.err


def test_an_old_function_of_the_trigger_is_told(forq, database):
    body = "BEGIN PERFORM pg_notify('forq_pgq', TG_TABLE_NAME); RETURN NULL; END"
    pgq(forq, database, "create", "orders")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"CREATE OR REPLACE FUNCTION forq_pgq_notify() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
        )
    done = pgq(forq, database, "check", "orders")
    assert done.code == 0
    assert "its trigger's function is of an earlier version" in done.out
    pgq(forq, database, "create", "orders")
    assert pgq(forq, database, "check", "orders").out == "orders has all that pgq needs\n"


def test_the_url_may_stand_in_the_environment(forq, database, monkeypatch):
    monkeypatch.setenv("FORQ_PG_URL", database)
    assert forq("pgq", "create", "orders", "--no-notify").code == 0
    assert forq("pgq", "check", "orders").code == 0


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("postgresql://anna:geheim@127.0.0.1:1/d", 3, "the database cannot be reached: "),
        ("postgresql://anna:geheim@heim@h/d", 2, "the URL of the database is not of the form postgresql://"),
        ("sqlite:///geheim", 2, "the URL of the database is not of the form postgresql://"),
    ],
)
def test_a_database_that_is_none_is_one_sentence_without_its_password(forq, url, code, said):
    done = pgq(forq, url, "check", "orders")
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert done.err.startswith(f"forq: {said}")
    assert "geheim" not in done.err


def test_a_name_that_is_too_long_is_refused(forq, database):
    done = pgq(forq, database, "create", "x" * 42)
    assert (done.code, done.err.count("\n")) == (2, 1)
