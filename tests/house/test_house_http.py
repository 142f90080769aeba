"""The neutral HTTP modules spell nothing of a dialect: every dialect would inherit it."""

import ast
import re

import pytest

from forq_trio.http.forq_api.refusals import TRANSPORT_CODES
from forq_trio.http.sasquatch_api.errors import CODES as SASQUATCH_CODES
from forq_trio.model.forq_error import REASONS
from support.source import nodes, statements

DIALECTS = ("forq_api", "sasquatch_api", "sqs_api")
WORDS = re.compile(r"\bforq\.|x-forq|/api/v\d|bad_request|not_found\.|contract [FS]\d", re.IGNORECASE)
PATHS = re.compile(r"/(?:[a-z_]\w*(?:/|$))+")
SPELLED_CODES = {*REASONS, *SASQUATCH_CODES}
TRANSPORT_TEXTS = {code for code, _ in TRANSPORT_CODES.values()}


def texts(tree: ast.Module):
    """The string and bytes constants of a module, docstrings included."""
    for node in nodes(tree, ast.Constant):
        if isinstance(node.value, str | bytes):
            yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def spelled(text: str) -> bool:
    """Whether a text is a dialect's: a code, a body with one, a path, a header."""
    code = text in SPELLED_CODES or text in TRANSPORT_TEXTS or '"code"' in text or '"error"' in text
    return code or PATHS.fullmatch(text) is not None or WORDS.search(text) is not None


@pytest.fixture
def neutral(modules) -> dict[str, ast.Module]:
    """The modules of `http` that belong to no dialect."""
    return {
        name: tree
        for name, tree in modules.items()
        if name.startswith("http.") and name.split(".")[1] not in DIALECTS
    }


def test_there_are_neutral_modules(neutral) -> None:
    assert {"http.router", "http.access", "http.transport.config", "http.transport.h1"} <= set(neutral)


def test_no_neutral_module_spells_a_dialect(neutral) -> None:
    found = [f"{name}: {text!r}" for name, tree in neutral.items() for text in texts(tree) if spelled(text)]
    assert found == []


def test_no_neutral_module_imports_a_dialect(neutral) -> None:
    found = [
        f"{name} imports {target}"
        for name, tree in neutral.items()
        for node in statements(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in (
            [f"{node.module}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        if any(f"forq_trio.http.{dialect}" in target for dialect in DIALECTS)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("unauthorized", True),
        ("Forbidden", True),
        ("forq.overloaded", True),
        ("X-Forq-Receipt", True),
        ("/api/v1/queues/", True),
        ("/healthcheck", True),
        ('{"code":"internal"}', True),
        ("Raises Forbidden.", False),
        ("forq_trio.exchange", False),
        ("x-api-key", False),
        ("/", False),
    ],
)
def test_dialects_are_recognised(text, found) -> None:
    assert spelled(text) is found
