"""SQL lives in `.sql` files: named, one line of description each, all of it used, none of it in Python."""

import ast
import re

import pytest

from forq_trio.storage.relational import statements as sql
from support.source import nodes, statements

STATEMENT = re.compile(
    r"\s*(?:--.*\n\s*)*"
    r"(?:SELECT|INSERT|UPDATE|DELETE|REPLACE INTO|CREATE|ALTER|DROP|WITH\s+\w+(?:\(.*\))?\s+AS)\s"
)
ALL_STATEMENTS_ARE_RUN = {"check"}  # files.py goes through the whole file


def texts(tree: ast.Module):
    """The string constants of a module that are not docstrings, f-strings' parts included."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in (tree, *statements(tree))
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_there_is_no_sql_in_python(modules) -> None:
    found = [
        f"{name}: {text!r}" for name, tree in modules.items() for text in texts(tree) if STATEMENT.match(text)
    ]
    assert found == []


def test_every_statement_is_used(modules, root) -> None:
    engines = [tree for name, tree in modules.items() if name.startswith("storage.")]
    used = {text for tree in engines for text in texts(tree)}
    unused = [
        f"{path.name}: {name}"
        for package in ("relational", "sqlite", "postgres")
        for path in sorted((root / "forq_trio" / "storage" / package / "sql").glob("*.sql"))
        if path.stem not in ALL_STATEMENTS_ARE_RUN
        for name in sql.load(path.stem, f"forq_trio.storage.{package}")
        if name not in used
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1", True),
        ("\n  WITH n(i) AS (SELECT 1)", True),
        ("Select a queue", False),
        ("PRAGMA x", False),
    ],
)
def test_statements_are_recognised(text, found) -> None:
    assert bool(STATEMENT.match(text)) is found
