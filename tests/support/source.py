"""Our own Python as trees, for every rule that looks at it."""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

FOLDERS = (
    "forq_trio",
    "pyspark_forq",
    "tests",
    "bench",
    "examples",
    "script",
    "docs",
    "deploy",
    ".ci",
    ".github",
)
"""All that have files that we write."""
INSIDE = ("body", "orelse", "finalbody", "handlers", "cases")

Node = TypeVar("Node", bound=ast.AST)


@contextmanager
def _uncollected() -> Iterator[None]:
    """What the block makes stays out of garbage collections, which would take longer: trees have many nodes."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache
def parsed(path: Path) -> ast.Module:
    """A module, parsed once a process."""
    with _uncollected():
        return ast.parse(path.read_text(encoding="utf-8"))


def nodes(tree: ast.Module, kind: type[Node]) -> list[Node]:
    """The nodes of a kind, anywhere in a module. Of imports, functions and classes `statements` is quicker."""
    return _by_kind(tree).get(kind, [])  # type: ignore[return-value]


@cache
def _by_kind(tree: ast.Module) -> dict[type[ast.AST], list[ast.AST]]:
    """Each tree is walked through once a process, which takes about as long as to parse it."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    with _uncollected():
        for node in ast.walk(tree):
            found[type(node)].append(node)
    return dict(found)


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a tree and those inside them, which are a tenth of its nodes."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        pending += inside(node)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers and cases right inside a statement."""
    return (each for name in INSIDE for each in getattr(node, name, ()))
