"""The loader of named statements, and the rules it holds the files to."""

import re
from typing import get_args

import pytest

from forq_trio.storage.relational import row
from forq_trio.storage.relational import statements as sql


def test_statements_are_found_by_name() -> None:
    one = "-- name: one\n-- First.\nSELECT 1;\n"
    two = "-- name: two\n-- Second.\nSELECT 2 -- why\nFROM t;\n"
    assert sql.parse(f"-- A note.\n\n{one}\n{two}") == {"one": "SELECT 1", "two": "SELECT 2 -- why\nFROM t"}


def test_a_statement_may_be_marked(tmp_path, monkeypatch) -> None:
    one = "-- name: one\n-- First.\n-- rows of: one thing\nSELECT 1;\n"
    two = "-- name: two\n-- Second.\n-- rows: the first may be enough\nSELECT 2;\n"
    both = "-- name: both\n-- Third.\n-- rows of: one thing\n-- rows: the first may be enough\nSELECT 3;\n"
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "some.sql").write_text(f"-- A note.\n{one}{two}{both}")
    monkeypatch.setattr(sql, "files", lambda package: tmp_path)
    assert sql.load("some") == {"one": "SELECT 1", "two": "SELECT 2", "both": "SELECT 3"}
    assert sql.load_named("some") == {"one", "both"}
    assert sql.load_unbounded("some") == {"two", "both"}


def test_the_places_in_a_row_are_those_of_its_columns() -> None:
    statement = sql.load("engine")["select_ready"]
    columns = re.findall(
        r"\w+", statement.partition("FROM")[0].replace("CAST(bytes AS INTEGER) AS bytes", "bytes")
    )[1:]
    assert [getattr(row, name.upper()) for name in columns] == list(range(15))
    assert len(get_args(row.ReadyRow)) == 15


def test_columns_have_a_name_too() -> None:
    text = "-- columns: both\n-- Two.\na,\nb;\n-- name: one\n-- First.\nSELECT $both FROM t WHERE c = '{\"x$\"}';"
    assert sql.parse(text) == {"one": "SELECT a,\nb FROM t WHERE c = '{\"x$\"}'"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;\n-- name: one\n-- First.\nSELECT 1;", "SQL before the first name"),
        ("-- name: One\n-- First.\nSELECT 1;", "'One' is not a name"),
        ("-- name: one\n-- First.\nSELECT 1;\n-- name: one\n-- Again.\nSELECT 1;", "one is named twice"),
        ("-- name: one\nSELECT 1;", "one needs one line of description"),
        ("-- name: one\n-- First.\nSELECT $both;", r"one names \$both, which nothing above"),
        ("-- columns: one\n-- First.\na;\n-- name: one\n-- Again.\nSELECT 1;", "one is named twice"),
        ("-- name: one\n-- First.\n", "one needs one line of description"),
        ("-- name: one\n-- First.\n-- More.\nSELECT 1;", "one needs one line of description"),
        ("-- name: one\n-- First.\n-- rows of: a thing\nSELECT 1;", "one needs one line of description"),
    ],
)
def test_a_file_that_breaks_the_rules_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        sql.parse(text)


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        sql.load("no_such_file")


def test_the_file_is_named_in_the_complaint(tmp_path, monkeypatch) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "bad.sql").write_text("SELECT 1;")
    monkeypatch.setattr(sql, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"bad\.sql: SQL before the first name"):
        sql.load("bad")
