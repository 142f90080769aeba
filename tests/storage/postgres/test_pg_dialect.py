"""The statements of both dialects: the same names, and the same bindings."""

import re
from itertools import pairwise

import psycopg
import pytest

from forq_trio.storage.postgres.dialect import (
    ANEW,
    CHANGING,
    MANY,
    MANY_SUFFIX,
    SILENT,
    SQL,
    UPDATES_MANY,
    translated,
)
from forq_trio.storage.postgres.open import SESSION
from forq_trio.storage.relational.connection import STATEMENTS
from forq_trio.storage.relational.statements import bound_columns
from support.postgres import make_settings


def bindings(statement: str) -> set[int]:
    return {int(number) for number in re.findall(r"\$(\d+)", statement)}


def test_what_is_written_anew_has_the_bindings_of_the_shared_one():
    shared = {name: bindings(translated(STATEMENTS[name])) for name in ANEW}
    assert {name: bindings(statement) for name, statement in ANEW.items()} == shared != {}


def test_what_runs_once_for_many_has_an_array_for_each_binding():
    ones = {name: translated(STATEMENTS[name]) if name in STATEMENTS else SQL[name] for name in MANY}
    found = {name: bindings(SQL[name + MANY_SUFFIX]) for name in MANY}
    assert found == {name: bindings(one) for name, one in ones.items()} != {}


def test_bindings_without_numbers_are_counted():
    assert translated("SELECT ?, ?2, ?") == "SELECT $1, $2, $2"
    assert (
        translated("a IN (SELECT value FROM json_each(?))") == "a = ANY (translate($1, '[]', '{}')::bigint[])"
    )
    assert translated("b = 1 AND (?5 IS NULL OR a = ?5)") == "b = 1 AND (a = $5 OR $5 IS NULL)"


def test_the_server_takes_every_statement(open_one):
    """Their names and types are right; the conformance suite runs them."""
    connection = open_one().connection
    for name, statement in SQL.items():
        if not statement.startswith("CREATE"):
            connection._pg.send_prepare(f"taken_{name}".encode(), statement.encode())
            connection._sent.append(None)
    connection.wait()


def test_only_statements_without_rows_are_not_waited_for():
    assert {"insert_plain", "lease", "save_counts", "delete_message"} <= SILENT
    assert not {"expire_dedup", "take_wakes", "begin_stage", "select_ready", "begin", "commit"} & SILENT
    assert SILENT < CHANGING


@pytest.mark.parametrize("name", ["insert_plain", "insert_message", "insert_leased"])
def test_what_stores_many_messages_at_once_binds_the_same_columns(name):
    """Each binding is an array, which has the name of a letter."""
    named, values = re.findall(
        r"INSERT INTO messages \(([^()]*)\)\s+SELECT ([\w, ]+)", SQL[name + MANY_SUFFIX]
    )[0]
    bound: dict[str, str] = {}
    for column, value in zip(named.split(","), values.split(","), strict=True):
        if not value.strip().isdigit():
            bound.setdefault(value.strip(), column.strip())
    assert tuple(bound[letter] for letter in sorted(bound)) == bound_columns(STATEMENTS[name])


@pytest.mark.parametrize("name", sorted(UPDATES_MANY))
def test_an_update_of_many_looks_up_each_row_whatever_statistics_say(open_one, empty_tables, name):
    """A table that was empty when it was analyzed seems cheap to walk, and is long when the plan is used."""
    open_one()
    statement = SQL[name + MANY_SUFFIX]
    nothing = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", statement))))
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE forq.messages")
        make_settings(connection, SESSION)
        connection.execute(f"PREPARE many AS {statement}")
        plan = [line for (line,) in connection.execute(f"EXPLAIN EXECUTE many ({nothing})")]
    for line, below in pairwise([*plan, ""]):
        if "Scan" in line and " on messages" in line:
            assert "Cond:" in below, plan
