"""The shape of the code: sizes, words that must not stay, and async only where something waits."""

import ast
import re
from collections import defaultdict

import pytest

from support.source import FOLDERS, parsed, statements

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
TEMPLATE_COLUMNS_MAX = 160
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
WAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)

# "module.function": which protocol asks for an async function that this one has nothing to wait for in.
ASYNC_WITHOUT_WAITING = {"pgq.tables.offer": "Source.offer"}

UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b|pragma: no cover")
SLEEP = re.compile(r"\b(?:time|trio|asyncio|anyio)\.sleep(?:_until)?\(")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|work|farm|home/\w+|Users/\w+)/|[.]library/|/bash_(?:jobs)")
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".sql",
    ".toml",
    ".cfg",
    ".yaml",
    ".yml",
    ".html",
    ".css",
    ".js",
    ".json",
    ".lua",
    "",
}


def test_no_file_is_longer_than_one_can_hold_in_the_head(python_files, root) -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files}
    assert [f"{path.relative_to(root)}: {n}" for path, n in lines.items() if n > FILE_LINES_MAX] == []


def test_functions_can_be_seen_whole(python_files, root) -> None:
    long = []
    for path in python_files:
        for node in statements(parsed(path)):
            if isinstance(node, FUNCTION) and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                long.append(f"{path.relative_to(root)}:{node.lineno} {node.name}")
    assert long == []


def test_templates_can_be_read_without_scrolling_sideways(root) -> None:
    templates = sorted((root / "forq_trio/ui/templates").rglob("*.html"))
    lines = [
        f"{path.relative_to(root)}:{number}"
        for path in templates
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > TEMPLATE_COLUMNS_MAX
    ]
    assert templates
    assert lines == []


def own_nodes(function):
    """The nodes of a function, without those of the functions inside it."""
    pending = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*FUNCTION, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def is_declaration(function) -> bool:
    """Whether only the signature counts: the method is abstract, or the body is `...`, with or without a docstring."""
    if any(ast.unparse(decorator) == "abstractmethod" for decorator in function.decorator_list):
        return True
    last = function.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def is_demanded(function) -> bool:
    """Whether the language or the one protocol of all handlers decides that the function is async."""
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    answers = function.returns is not None and ast.unparse(function.returns) == "Response"
    return function.name in ("__aenter__", "__aexit__") or "asynccontextmanager" in decorators or answers


def test_async_means_that_it_may_wait(modules) -> None:
    idle = set()
    for name, tree in modules.items():
        for node in statements(tree):
            if not isinstance(node, ast.AsyncFunctionDef) or is_declaration(node) or is_demanded(node):
                continue
            if not any(isinstance(each, WAITS) or getattr(each, "is_async", 0) for each in own_nodes(node)):
                idle.add(f"{name}.{node.name}")
    assert sorted(idle - set(ASYNC_WITHOUT_WAITING)) == []
    assert sorted(set(ASYNC_WITHOUT_WAITING) - idle) == []


def test_nothing_is_left_unfinished(root) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for folder in ("forq_trio", "pyspark_forq", "bench", "examples", "script")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_tests_wait_for_the_thing_itself(root) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted((root / "tests").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if SLEEP.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("folder", [*FOLDERS, "."], ids=str)
def test_no_path_of_one_machine_is_written_down(root, folder) -> None:
    paths = (root / folder).glob("*") if folder == "." else (root / folder).rglob("*")
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in sorted(paths)
        if path.is_file() and path.suffix in TEXT_SUFFIXES and path.name != ".git"
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
        )
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_public_class_name_has_two_meanings(root) -> None:
    """The two clients, async and blocking, have the same classes by design."""
    places = defaultdict(set)
    for path in (root / "forq_trio").rglob("*.py"):
        for node in statements(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(re.sub(r"/(aio|sync)(?=[_.])", "/", str(path.relative_to(root))))
    assert {name: sorted(found) for name, found in places.items() if len(found) > 1} == {}
