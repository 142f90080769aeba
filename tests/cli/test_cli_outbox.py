"""`forq outbox`: what was set aside, in a file of SQLite and in PostgreSQL."""

import json
import sqlite3
from contextlib import closing

import psycopg
import pytest

from forq_trio import outbox
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine

ROWS = [
    (number, "q", json.dumps({"content": f"m{number}"}), "bad_request", "it is wrong") for number in (1, 2, 3)
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> str:
    """An outbox that has set three messages aside."""
    if request.param == "sqlite":
        path = str(tmp_path / "shop.db")
        with closing(sqlite3.connect(path)) as file, file:
            outbox.create_table(file)
            file.executemany("INSERT INTO forq_outbox_set_aside VALUES (?, ?, ?, ?, ?)", ROWS)
        return path
    url = request.getfixturevalue("empty_tables")
    with closing(PostgresEngine(url, EngineSettings(), "normal")), psycopg.connect(url) as connection:
        connection.cursor().executemany("INSERT INTO forq.sent_set_aside VALUES (%s, %s, %s, %s, %s)", ROWS)
    return url


def contents(forq, database: str) -> list[str]:
    lines = forq("outbox", "refused", "--json", "--database", database).out.splitlines()
    return [json.loads(line)["message"]["content"] for line in lines]


def test_it_is_listed_sent_again_and_deleted(forq, database):
    head, first, *_ = forq("outbox", "refused", "--database", database).out.splitlines()
    assert head == "id\tqueue\tcode\treason\tcontent"
    assert first == "1\tq\tbad_request\tit is wrong\tm1"
    done = forq("outbox", "retry", "2", "--database", database)
    assert (done.code, done.out) == (0, "1 message sent again\n")
    assert contents(forq, database) == ["m1", "m3"]
    asked = forq("outbox", "delete", "3", "--database", database, terminal=True, stdin=b"n\n")
    assert asked.code == 1
    assert "Permanently delete 1 refused message?" in asked.err
    assert contents(forq, database) == ["m1", "m3"]
    assert forq("outbox", "delete", "3", "--database", database).code == 2
    done = forq("outbox", "delete", "--all", "--yes", "--database", database)
    assert (done.code, done.out) == (0, "2 messages deleted\n")
    assert contents(forq, database) == []
    assert "No message was set aside" in forq("outbox", "refused", "--database", database).err


LONG = "the attribute value of 'trace' has 1,100 characters, and 1,024 are allowed"


@pytest.mark.parametrize("reason", ["it is wrong", LONG])
def test_the_reason_is_whole_at_80_columns(forq, tmp_path, monkeypatch, reason):
    """Where it is too long for a row, each member has a line."""
    monkeypatch.setenv("COLUMNS", "80")
    path = str(tmp_path / "shop.db")
    row = (1234567, "orders.eu.created", json.dumps({"content": "x " * 90}), "bad_request.attributes", reason)
    with closing(sqlite3.connect(path)) as file, file:
        outbox.create_table(file)
        file.execute("INSERT INTO forq_outbox_set_aside VALUES (?, ?, ?, ?, ?)", row)
    shown = forq("outbox", "refused", "--database", path, terminal=True)
    assert reason in shown.out
    assert all(text in shown.out for text in ("1234567", "orders.eu.created"))
    lines = [line for line in shown.out.splitlines() if "reason" not in line]
    assert reason == LONG or max(map(len, lines)) <= 80
    assert "bad_request.attributes" in shown.out


@pytest.mark.parametrize("arguments", [("retry",), ("retry", "1", "--all"), ("delete", "--yes")])
def test_which_ones_has_to_be_said(forq, database, arguments):
    assert forq("outbox", *arguments, "--database", database).code == 2
    assert len(contents(forq, database)) == 3


def test_one_that_is_not_there_changes_nothing(forq, database):
    done = forq("outbox", "retry", "1", "9", "--database", database)
    assert (done.code, done.err) == (5, "forq: no message 9 was set aside\n")
    assert len(contents(forq, database)) == 3


@pytest.mark.parametrize(
    ("url", "code"), [("postgresql://anna:geheim@127.0.0.1:1/d", 3), ("nowhere/shop.db", 1)]
)
def test_a_database_that_is_none_is_one_sentence(forq, url, code):
    done = forq("outbox", "refused", "--database", url)
    assert (done.code, done.err.count("\n"), "geheim" in done.err) == (code, 1, False)


def test_a_database_without_a_queue(forq, postgres):
    url = postgres.new_database()
    assert forq("outbox", "refused", "--database", url).code == 5
    postgres.drop_database(url)
