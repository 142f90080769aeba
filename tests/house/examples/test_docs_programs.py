"""The Python in the documents: it can be compiled, and what it imports is there."""

import ast
import re
from pathlib import Path

from support.django_tasks import for_this_django

PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^# (\w+)\.py$", re.MULTILINE)
"""The first line of a program that is one of several files."""


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
    programs = {page: PROGRAM.findall(page.read_text(encoding="utf-8")) for page in pages}
    files = tuple(f"from {name} import" for each in programs.values() for name in FILE.findall("".join(each)))
    found = {
        (page.name, statement)
        for page, each in programs.items()
        for program in each
        for statement in imports(program)
        if not statement.startswith(files)  # a page shows that file, too
    }
    assert len(found) >= 5
    broken = []
    for page, statement in sorted(found):
        try:
            exec(for_this_django(statement), {})
        except ImportError as problem:
            broken.append(f"{page}: {problem}")
    assert broken == []
