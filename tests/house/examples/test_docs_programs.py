"""The Python in the documents: it can be compiled, and what it imports is there."""

import ast
import re
from pathlib import Path

PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def imports(program: str) -> list[str]:
    """The import statements of a program; raises SyntaxError if it is none. `await` may stand outside of a function."""
    compile(program, "program", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def test_what_the_documents_import_is_there(root: Path) -> None:
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    found = {
        (page.name, statement)
        for page in pages
        for program in PROGRAM.findall(page.read_text(encoding="utf-8"))
        for statement in imports(program)
    }
    assert len(found) >= 5
    broken = []
    for page, statement in sorted(found):
        try:
            exec(statement, {})
        except ImportError as problem:
            broken.append(f"{page}: {problem}")
    assert broken == []
