"""Our own Python as trees, for every rule that looks at it."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

INSIDE = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def parsed(path: Path) -> ast.Module:
    """A module, parsed once a process. Its many nodes stay out of garbage collections, which would take longer."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a tree and those inside them, which are a tenth of its nodes."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        pending += (each for name in INSIDE for each in getattr(node, name, ()))
