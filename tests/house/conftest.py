"""The source of the project, as the house's rules look at it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its name without "forq_trio."; packages by theirs ("" for the whole)."""
    package = ROOT / "forq_trio"
    parsed = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        parsed[name] = ast.parse(path.read_text(encoding="utf-8"))
    return parsed


@pytest.fixture(scope="session")
def python_files() -> list[Path]:
    """All Python we keep, tests included."""
    return sorted(
        path
        for folder in ("forq_trio", "tests", "bench", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    )
