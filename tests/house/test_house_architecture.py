"""ARCHITECTURE.md is short, its walk names functions that exist, and docs/decisions.md has its headings."""

import ast
import re

import pytest

from support.source import parsed, statements

WORDS_MAX = 4_500


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def defined_names(root) -> set[str]:
    """The functions and classes of the package, and its methods as `Class.method`."""
    names: set[str] = set()
    for path in (root / "forq_trio").rglob("*.py"):
        for node in statements(parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{each.name}" for each in node.body if hasattr(each, "name")}
    return names


def inherited(name: str, defined: set[str]) -> bool:
    """True for a method of `Broker`, which has most of its own from its parts."""
    return name.startswith("Broker.") and name.removeprefix("Broker.") in defined


def test_it_is_short(page) -> None:
    assert len(page.split()) <= WORDS_MAX


def test_the_walk_of_a_message_names_what_exists(page, root) -> None:
    named = set(re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)`", section(page, "One message, hop by hop")))
    assert len(named) > 25
    defined = defined_names(root)
    assert {name for name in named - defined if not inherited(name, defined)} == set()


def test_a_decision_at_length_has_one_in_short(page, root) -> None:
    short = re.findall(r"^\*\*(.+?)\.\*\* ", section(page, "Decisions"), re.MULTILINE)
    at_length = (root / "docs" / "decisions.md").read_text(encoding="utf-8")
    long = re.findall(r"^### (.+)$", at_length, re.MULTILINE)
    assert len(long) > 40
    assert [heading for heading in short if heading in long] == long


def test_the_rules_of_engines_are_where_their_table_of_contents_says(root) -> None:
    """storage/engine.py lists them; each file that it names begins with the rules that it keeps."""
    storage = root / "forq_trio/storage"
    page = ast.get_docstring(parsed(storage / "engine.py")) or ""
    named = {
        path if (storage / path).exists() else f"relational/{path}"
        for line in page.splitlines()
        for path in re.findall(r"\b[a-z_/]+\.py\b", line)
    }
    assert len(named) > 15
    for path in named:
        assert ast.get_docstring(parsed(storage / path)), path
